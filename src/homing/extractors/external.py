"""Networks of others: those that the paper compares, any timm model by its pooled features, and TorchScript files."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import timm
import torch
from huggingface_hub import constants, model_info, snapshot_download
from huggingface_hub.errors import LocalEntryNotFoundError
from torch import Tensor, nn

from homing.errors import HomingError, UnknownNameError
from homing.extractors.base import IMAGENET_MEAN, IMAGENET_STD, Extractor, NetworkExtractor
from homing.extractors.descriptor_network import DescriptorNetwork, NetworkConfig
from homing.extractors.published import published

TORCHSCRIPT_SIZE = 288  # input size of the paper's networks
SSCD = "https://dl.fbaipublicfiles.com/sscd-copy-detection"
DINO = "https://dl.fbaipublicfiles.com/dino"
ISC = "https://github.com/lyakaap/ISC21-Descriptor-Track-1st/releases/download"
SSCD_SIZE, DINO_SIZE = 288, 224
# SSCD's names of parameters in each of its two formats, and ours.
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


def timm_model(name: str, device: torch.device | str | None = None) -> Extractor:
    """Any timm model, such as timm:vit_small_patch16_dinov3.lvd1689m; weights are downloaded once by timm."""
    network = pretrained(name.removeprefix("timm:"))
    config = timm.data.resolve_model_data_config(network)
    size = config["input_size"][-1]
    return NetworkExtractor(network, name=name, size=size, mean=config["mean"], std=config["std"], device=device)


def pretrained(name: str) -> nn.Module:
    """The timm model of this name with its published weights, without its classifier."""
    architecture, _, tag = name.partition(".")
    if not timm.is_model(architecture):
        near = get_close_matches(architecture, timm.list_models(), n=5, cutoff=0)
        raise UnknownNameError("timm model", architecture, [*near, "… (timm.list_models() has all)"])
    if tag and name not in (tagged := timm.list_pretrained(f"{architecture}.*")):
        raise UnknownNameError("timm model", name, tagged or [architecture])
    try:
        _require_weights(timm.get_pretrained_cfg(name).hf_hub_id)
        network: nn.Module = timm.create_model(name, pretrained=True, num_classes=0)
    except Exception as error:  # network errors differ between versions of huggingface_hub
        reason = str(error).strip().split("\n")[0].rstrip(".")
        raise HomingError(
            f"cannot get the weights of timm model '{name}': {reason}; check the connection, or copy the folder "
            f"{constants.HF_HUB_CACHE} from a machine where this command has run"
        ) from error
    return network


def _require_weights(repository: str | None) -> None:
    """Raise an error at once if missing weights cannot be downloaded; timm would retry for a minute."""
    if not repository:  # a few models are hosted elsewhere
        return
    try:
        snapshot_download(repository, local_files_only=True)
    except LocalEntryNotFoundError:
        model_info(repository, timeout=10)


def torchscript(path: str, device: torch.device | str | None = None) -> Extractor:
    """Any TorchScript file; input of 288 px with ImageNet normalization."""
    path = str(Path(path).absolute())  # codebooks store the name, so it must be valid in any working directory
    if not Path(path).is_file():
        raise HomingError(f"no such TorchScript file: {path}")
    try:
        with warnings.catch_warnings():
            # TorchScript is deprecated, but published networks use it.
            warnings.filterwarnings("ignore", "`torch.jit")
            network = torch.jit.load(path, map_location="cpu")  # type: ignore[no-untyped-call]
    except RuntimeError as error:
        raise HomingError(
            f"{path} is not a TorchScript file; load published weights with: homing extractors fetch NAME --file {path}"
        ) from error
    try:
        extractor = NetworkExtractor(network, name=path, size=TORCHSCRIPT_SIZE, device=device)
        _try(extractor)
    except Exception as error:  # a script can raise anything
        reason = str(error).strip().split("\n")[-1]
        raise HomingError(
            f"{path} does not give every photo of {TORCHSCRIPT_SIZE} px a descriptor and a gradient: {reason}"
        ) from error
    return extractor


@torch.enable_grad()
def _try(extractor: Extractor) -> None:
    """Raise an error if two photos do not give two descriptors, or no gradient reaches them."""
    shape = (2, 3, extractor.size, extractor.size)
    images = torch.linspace(0, 1, math.prod(shape), device=extractor.device).view(shape).requires_grad_()
    descriptors = extractor(images)
    if len(descriptors) != 2:
        raise ValueError(f"two photos gave {len(descriptors)}")
    if not descriptors.isfinite().all():
        raise ValueError("its descriptors are not numbers")
    torch.autograd.backward(descriptors.sum())
    if images.grad is None or not images.grad.any():
        raise ValueError("its gradient does not reach the pixels")


# SSCD, a self-supervised descriptor for copy detection (Pizzi et al., CVPR 2022); weights under the MIT license.
@published("sscd_disc_mixup", f"{SSCD}/sscd_disc_mixup.torchvision.pt", size=SSCD_SIZE)
def sscd_disc_mixup(weights: Mapping[str, Tensor]) -> nn.Module:
    """SSCD ResNet-50, trained with strong edits and blends of photos, 512-d: the paper's network."""
    return _sscd("resnet50", 512, weights, TORCHVISION)


@published("sscd_disc_advanced", f"{SSCD}/sscd_disc_advanced.torchvision.pt", size=SSCD_SIZE)
def sscd_disc_advanced(weights: Mapping[str, Tensor]) -> nn.Module:
    """SSCD ResNet-50, trained with strong edits, 512-d."""
    return _sscd("resnet50", 512, weights, TORCHVISION)


@published("sscd_disc_large", f"{SSCD}/sscd_disc_large.classy.pt", size=SSCD_SIZE)
def sscd_disc_large(weights: Mapping[str, Tensor]) -> nn.Module:
    """SSCD ResNeXt-101 32x4d, trained with strong edits and blends of photos, 1024-d."""
    return _sscd("resnext101_32x4d", 1024, weights, CLASSY_VISION)


def _sscd(trunk: str, dim: int, weights: Mapping[str, Tensor], names: Mapping[str, str]) -> nn.Module:
    """The SSCD network; pooling and projection are those of `DescriptorNetwork`."""
    config = NetworkConfig(trunk=trunk, dim=dim, size=SSCD_SIZE, mean=IMAGENET_MEAN, std=IMAGENET_STD)
    network = DescriptorNetwork(config)
    for theirs, ours in names.items():
        weights = {re.sub(theirs, ours, key): value for key, value in weights.items()}
    network.load_state_dict(weights)
    return network


# DINO, self-supervised networks on ImageNet (Caron et al., ICCV 2021); weights under the Apache license 2.0.
@published("dino_r50", f"{DINO}/dino_resnet50_pretrain/dino_resnet50_pretrain.pth", size=DINO_SIZE)
def dino_r50(weights: Mapping[str, Tensor]) -> nn.Module:
    """DINO ResNet-50, its mean-pooled maps, 2048-d."""
    return _dino("resnet50", weights)


@published("dino_vits16", f"{DINO}/dino_deitsmall16_pretrain/dino_deitsmall16_pretrain.pth", size=DINO_SIZE)
def dino_vits16(weights: Mapping[str, Tensor]) -> nn.Module:
    """DINO ViT-S/16, its class token, 384-d."""
    return _dino("vit_small_patch16_224", weights)


def _dino(trunk: str, weights: Mapping[str, Tensor]) -> nn.Module:
    network: nn.Module = timm.create_model(trunk, pretrained=False, num_classes=0)
    network.load_state_dict(weights)
    return network


class IscNetwork(nn.Module):
    """EfficientNetV2-M, mean pooling, a projection and its normalization, named as in the authors' file."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = timm.create_model("tf_efficientnetv2_m", pretrained=False, features_only=True)
        self.fc = nn.Linear(self.backbone.feature_info.channels()[-1], 256, bias=False)
        self.bn = nn.BatchNorm1d(256)

    def forward(self, pixels: Tensor) -> Tensor:
        """(B, 3, H, W) normalized pixels to (B, 256), not yet of unit norm."""
        # The authors' generalized mean, whose power is 1 in the network they submitted.
        pooled = self.backbone(pixels)[-1].clamp(min=1e-6).mean(dim=(2, 3))
        projected: Tensor = self.bn(self.fc(pooled))
        return projected


# The winner of the challenge's descriptor track (Yokoo, 2021); weights under the MIT license.
@published("isc_dt1", f"{ISC}/v1.0.1/isc_ft_v107.pth.tar", size=512, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5))
def isc_dt1(checkpoint: Mapping[str, Any]) -> nn.Module:
    """ISC-dt1, EfficientNetV2-M: first of the image similarity challenge, 256-d."""
    network = IscNetwork()
    network.load_state_dict({key.removeprefix("module."): value for key, value in checkpoint["state_dict"].items()})
    return network
