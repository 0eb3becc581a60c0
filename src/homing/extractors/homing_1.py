"""homing-1, the default network, trained to match photos and edited copies. Model card: docs/reference/homing-1.md."""

from __future__ import annotations

from importlib.resources import files

import torch

from homing.extractors.base import Extractor
from homing.extractors.descriptor_network import DescriptorNetwork, NetworkConfig, as_extractor, network_from_bytes
from homing.extractors.registry import register


@register("homing-1")
def homing_1(device: torch.device | str | None = None) -> Extractor:
    """EfficientNet-Lite0 trained on COCO to match photos and edited copies, 512-d; inside the package."""
    return as_extractor(*bundled_network(), name="homing-1", device=device)


def bundled_network() -> tuple[DescriptorNetwork, NetworkConfig]:
    """The network and its config, to initialize training."""
    data = files("homing.extractors").joinpath("data/homing-1.safetensors").read_bytes()
    return network_from_bytes(data, origin="homing-1")
