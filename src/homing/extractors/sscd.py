"""SSCD, a self-supervised descriptor for copy detection (Pizzi et al., CVPR 2022); weights under the MIT license."""

from __future__ import annotations

import re
from collections.abc import Mapping

from torch import Tensor, nn

from homing.extractors.descriptor_network import DescriptorNetwork, NetworkConfig
from homing.extractors.published import IMAGENET_MEAN, IMAGENET_STD, published

SIZE = 288
# The authors' names of parameters, and ours.
TORCHVISION = {r"^backbone\.fc\.": "head.", r"^backbone\.": "trunk."}
CLASSY_VISION = {
    r"^backbone\.initial_block\._module\.0\.": "trunk.conv1.",
    r"^backbone\.initial_block\._module\.1\.": "trunk.bn1.",
    r"^backbone\.blocks\.0\.block0-": "trunk.layer1.",
    r"^backbone\.blocks\.1\.block1-": "trunk.layer2.",
    r"^backbone\.blocks\.2\.block2-": "trunk.layer3.",
    r"^backbone\.blocks\.3\.block3-": "trunk.layer4.",
    r"\.convolutional_block\.0\.": ".conv1.",
    r"\.convolutional_block\.1\.": ".bn1.",
    r"\.convolutional_block\.3\.": ".conv2.",
    r"\.convolutional_block\.4\.": ".bn2.",
    r"\.convolutional_block\.6\.": ".conv3.",
    r"\.bn\.": ".bn3.",
    r"^embeddings\.1\.": "head.",
}


@published("sscd_disc_mixup", size=SIZE)
def sscd_disc_mixup(weights: Mapping[str, Tensor]) -> nn.Module:
    """SSCD ResNet-50, trained with strong edits and blends of photos, 512-d: the paper's network."""
    return _network("resnet50", 512, weights, TORCHVISION)


@published("sscd_disc_advanced", size=SIZE)
def sscd_disc_advanced(weights: Mapping[str, Tensor]) -> nn.Module:
    """SSCD ResNet-50, trained with strong edits, 512-d."""
    return _network("resnet50", 512, weights, TORCHVISION)


@published("sscd_disc_large", size=SIZE)
def sscd_disc_large(weights: Mapping[str, Tensor]) -> nn.Module:
    """SSCD ResNeXt-101 32x4d, trained with strong edits and blends of photos, 1024-d."""
    return _network("resnext101_32x4d", 1024, weights, CLASSY_VISION)


def _network(trunk: str, dim: int, weights: Mapping[str, Tensor], names: Mapping[str, str]) -> nn.Module:
    """The SSCD network; pooling and projection are those of `DescriptorNetwork`."""
    network = DescriptorNetwork(NetworkConfig(trunk=trunk, dim=dim, size=SIZE, mean=IMAGENET_MEAN, std=IMAGENET_STD))
    network.load_state_dict({_renamed(key, names): value for key, value in weights.items()})
    return network


def _renamed(key: str, names: Mapping[str, str]) -> str:
    for theirs, ours in names.items():
        key = re.sub(theirs, ours, key)
    return key
