"""Training of descriptor networks and codebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from homing._imports import import_lazily

if TYPE_CHECKING:
    from homing.training.codebooks import TrainedCodebook as TrainedCodebook, train_codebook as train_codebook
    from homing.training.data import PhotoArray as PhotoArray, load_photo_array as load_photo_array
    from homing.training.descriptors import DescriptorTrainer as DescriptorTrainer
    from homing.training.run import Run as Run
    from homing.training.settings import DescriptorSettings as DescriptorSettings

# Imported on first use: they need PyTorch.
_MODULES = {
    "TrainedCodebook": "codebooks",
    "train_codebook": "codebooks",
    "DescriptorTrainer": "descriptors",
    "PhotoArray": "data",
    "load_photo_array": "data",
    "Run": "run",
    "DescriptorSettings": "settings",
}
__all__ = sorted(_MODULES)
__getattr__ = import_lazily(__name__, _MODULES)


def __dir__() -> list[str]:
    return __all__
