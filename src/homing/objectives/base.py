"""What an objective is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import ClassVar, TypeVar

from torch import Tensor

ObjectiveType = TypeVar("ObjectiveType", bound="Objective")


class Objective(ABC):
    """Made for the original descriptors of a batch; called with the changed ones, gives one loss per photo."""

    per_photo: ClassVar[tuple[str, ...]]
    """The names of the tensors that have a row for each photo."""

    @abstractmethod
    def __call__(self, descriptors: Tensor) -> Tensor:
        """The loss of each of (B, D) descriptors: (B,), differentiable."""

    def copy_loss(self, descriptors: Tensor) -> Tensor:
        """The same for edited copies of the photos: they may be asked for less."""
        return self(descriptors)

    def select(self: ObjectiveType, indices: Tensor) -> ObjectiveType:
        """The objective of the photos with these indices (N,) of the batch, which may come more than once."""
        selected = copy(self)
        for name in self.per_photo:
            setattr(selected, name, getattr(self, name)[indices])
        return selected
