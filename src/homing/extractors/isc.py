"""The winner of the image similarity challenge's descriptor track (Yokoo, 2021); weights under the MIT license."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import timm
from torch import Tensor, nn

from homing.extractors.published import HALVES, published

DIM = 256


class IscNetwork(nn.Module):
    """EfficientNetV2-M, mean pooling, a projection and its normalization, named as in the authors' file."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = timm.create_model("tf_efficientnetv2_m", pretrained=False, features_only=True)
        self.fc = nn.Linear(self.backbone.feature_info.channels()[-1], DIM, bias=False)
        self.bn = nn.BatchNorm1d(DIM)

    def forward(self, pixels: Tensor) -> Tensor:
        """(B, 3, H, W) normalized pixels to (B, 256), not yet of unit norm."""
        # The authors' generalized mean, whose power is 1 in the network they submitted.
        pooled = self.backbone(pixels)[-1].clamp(min=1e-6).mean(dim=(2, 3))
        projected: Tensor = self.bn(self.fc(pooled))
        return projected


@published("isc_dt1", size=512, mean=HALVES, std=HALVES)
def isc_dt1(checkpoint: Mapping[str, Any]) -> nn.Module:
    """ISC-dt1, EfficientNetV2-M: first of the image similarity challenge, 256-d."""
    weights = {key.removeprefix("module."): value for key, value in checkpoint["state_dict"].items()}
    network = IscNetwork()
    network.load_state_dict(weights)
    return network
