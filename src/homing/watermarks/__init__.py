"""Watermarks for comparison with activation: an identifier hidden in a photo."""

from __future__ import annotations

from typing import TYPE_CHECKING

from homing._imports import import_lazily

if TYPE_CHECKING:
    from homing.watermarks.base import Watermark, identifier
    from homing.watermarks.embedding import MarkedPhoto, mark
    from homing.watermarks.hidden import HiddenWatermark
    from homing.watermarks.ssl import SSLWatermark

__all__ = [
    "HiddenWatermark",
    "MarkedPhoto",
    "SSLWatermark",
    "Watermark",
    "identifier",
    "mark",
]

# Imported on first use: they need PyTorch.
_MODULES = {
    "Watermark": "base",
    "identifier": "base",
    "MarkedPhoto": "embedding",
    "mark": "embedding",
    "HiddenWatermark": "hidden",
    "SSLWatermark": "ssl",
}
__getattr__ = import_lazily(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted(__all__)
