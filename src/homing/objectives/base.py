"""What an objective is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import ClassVar, TypeVar

from torch import Tensor

Made = TypeVar("Made", bound="Objective")


class Objective(ABC):
    """Made for the original descriptors of a batch; called with the moved ones, gives one loss per photo."""

    of_each: ClassVar[tuple[str, ...]]
    """The names of the tensors that have a row for each photo."""

    @abstractmethod
    def __call__(self, descriptors: Tensor) -> Tensor:
        """The loss of each of (B, D) descriptors: (B,), differentiable."""

    def of_copies(self, descriptors: Tensor) -> Tensor:
        """The same for edited copies of the photos: they may be asked for less."""
        return self(descriptors)

    def at(self: Made, places: Tensor) -> Made:
        """The objective of the photos at these places (N,) of the batch, which may come more than once."""
        some = copy(self)
        for name in self.of_each:
            setattr(some, name, getattr(self, name)[places])
        return some
