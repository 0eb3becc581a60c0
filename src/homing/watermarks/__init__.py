"""Watermarks for comparison with activation: an identifier hidden in a photo."""

from __future__ import annotations

from typing import TYPE_CHECKING

from homing._imports import import_lazily

if TYPE_CHECKING:
    from homing.watermarks.base import (
        MarkedPhoto as MarkedPhoto,
        Watermark as Watermark,
        identifier as identifier,
        mark as mark,
    )
    from homing.watermarks.hidden import HiddenWatermark as HiddenWatermark
    from homing.watermarks.ssl import SSLWatermark as SSLWatermark

# Imported on first use: they need PyTorch.
_MODULES = {
    "HiddenWatermark": "hidden",
    "MarkedPhoto": "base",
    "SSLWatermark": "ssl",
    "Watermark": "base",
    "identifier": "base",
    "mark": "base",
}
__all__ = sorted(_MODULES)
__getattr__ = import_lazily(__name__, _MODULES)


def __dir__() -> list[str]:
    return __all__
