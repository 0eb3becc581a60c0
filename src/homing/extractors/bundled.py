"""Networks inside the package. The model card of homing-1 is docs/reference/homing-1.md."""

from __future__ import annotations

from importlib.resources import files

import timm
import torch
from safetensors.torch import load as load_safetensors
from torch import Tensor, nn

from homing.extractors.base import Extractor, NetworkExtractor
from homing.extractors.descriptor_network import DescriptorNetwork, NetworkConfig, as_extractor, network_from_bytes
from homing.extractors.registry import register

# imagenet-lite0. Its mean and std are TensorFlow's convention for this family: (255 x - 127) / 128
TRUNK, DIM, SIZE = "tf_efficientnet_lite0", 256, 224
MEAN, STD = (127 / 255,) * 3, (128 / 255,) * 3


@register("homing-1")
def homing_1(device: torch.device | str | None = None) -> Extractor:
    """EfficientNet-Lite0 trained on COCO to match photos and edited copies, 512-d; inside the package."""
    return as_extractor(*homing_1_network(), name="homing-1", device=device)


@register("imagenet-lite0")
def imagenet_lite0(device: torch.device | str | None = None) -> Extractor:
    """EfficientNet-Lite0 trained on ImageNet, half-whitened to 256-d on COCO; inside the package."""
    network = imagenet_lite0_network()
    network.load_state_dict(load_safetensors(_read("imagenet-lite0")))  # stored in half precision, copied into single
    return NetworkExtractor(network, name="imagenet-lite0", size=SIZE, mean=MEAN, std=STD, device=device)


def homing_1_network() -> tuple[DescriptorNetwork, NetworkConfig]:
    """The default network and its config, to initialize training."""
    return network_from_bytes(_read("homing-1"), origin="homing-1")


def imagenet_lite0_network() -> nn.Sequential:
    """EfficientNet-Lite0 up to its pooled 1280 features, then the projection that half-whitens them to 256."""
    trunk = timm.create_model(TRUNK, pretrained=False, num_classes=0)
    return nn.Sequential(trunk, nn.Linear(trunk.num_features, DIM))


def imagenet_lite0_trunk() -> dict[str, Tensor]:
    """The weights of the trunk of imagenet-lite0, from which homing-1 was trained."""
    weights = load_safetensors(_read("imagenet-lite0"))
    return {key.removeprefix("0."): value for key, value in weights.items() if key.startswith("0.")}


def _read(name: str) -> bytes:
    return files("homing.extractors").joinpath(f"data/{name}.safetensors").read_bytes()
