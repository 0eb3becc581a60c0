"""imagenet-lite0: a small ImageNet classifier inside the package, from which homing-1 was trained."""

from __future__ import annotations

from importlib.resources import files

import timm
import torch
from safetensors.torch import load as load_safetensors
from torch import Tensor, nn

from homing.extractors.base import Extractor, NetworkExtractor
from homing.extractors.registry import register

TRUNK = "tf_efficientnet_lite0"
DIM = 256
SIZE = 224
# TensorFlow's convention for this family: (255 x - 127) / 128
MEAN = (127 / 255,) * 3
STD = (128 / 255,) * 3


def architecture() -> nn.Sequential:
    """EfficientNet-Lite0 up to its pooled 1280 features, then the projection that half-whitens them to 256."""
    trunk = timm.create_model(TRUNK, pretrained=False, num_classes=0)
    return nn.Sequential(trunk, nn.Linear(trunk.num_features, DIM))


@register("imagenet-lite0")
def imagenet_lite0(device: torch.device | str | None = None) -> Extractor:
    """EfficientNet-Lite0 trained on ImageNet, half-whitened to 256-d on COCO; inside the package."""
    network = architecture()
    network.load_state_dict(_weights())  # stored in half precision, copied into single
    return NetworkExtractor(network, name="imagenet-lite0", size=SIZE, mean=MEAN, std=STD, device=device)


def trunk_weights() -> dict[str, Tensor]:
    """The weights of the trunk, to initialize training."""
    return {key.removeprefix("0."): value for key, value in _weights().items() if key.startswith("0.")}


def _weights() -> dict[str, Tensor]:
    return load_safetensors(files("homing.extractors").joinpath("data/imagenet-lite0.safetensors").read_bytes())
