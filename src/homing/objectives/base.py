"""The interface of objectives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import ClassVar, TypeVar

from torch import Tensor

ObjectiveType = TypeVar("ObjectiveType", bound="Objective")


class Objective(ABC):
    """Loss per photo: built from the original descriptors of a batch, called with the changed descriptors."""

    per_photo: ClassVar[tuple[str, ...]]
    """Names of the attributes that have one row per photo."""

    @abstractmethod
    def __call__(self, descriptors: Tensor) -> Tensor:
        """The loss of each of (B, D) descriptors: (B,), differentiable."""

    def copy_loss(self, descriptors: Tensor) -> Tensor:
        """The loss of edited copies (B, D) of the photos; by default that of the photos."""
        return self(descriptors)

    def select(self: ObjectiveType, indices: Tensor) -> ObjectiveType:
        """The objective of the photos with these indices (N,) of the batch, which may repeat."""
        selected = copy(self)
        for name in self.per_photo:
            setattr(selected, name, getattr(self, name)[indices])
        return selected
