"""DINO, self-supervised networks on ImageNet (Caron et al., ICCV 2021); weights under the Apache license 2.0."""

from __future__ import annotations

from collections.abc import Mapping

import timm
from torch import Tensor, nn

from homing.extractors.published import published

SIZE = 224


@published("dino_r50", size=SIZE)
def dino_r50(weights: Mapping[str, Tensor]) -> nn.Module:
    """DINO ResNet-50, its mean-pooled maps, 2048-d."""
    return _network("resnet50", weights)


@published("dino_vits16", size=SIZE)
def dino_vits16(weights: Mapping[str, Tensor]) -> nn.Module:
    """DINO ViT-S/16, its class token, 384-d."""
    return _network("vit_small_patch16_224", weights)


def _network(trunk: str, weights: Mapping[str, Tensor]) -> nn.Module:
    network: nn.Module = timm.create_model(trunk, pretrained=False, num_classes=0)
    network.load_state_dict(weights)
    return network
