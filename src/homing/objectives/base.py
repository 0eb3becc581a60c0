"""What an objective is."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor


class Objective(ABC):
    """Made for the original descriptors of a batch; called with the moved ones, gives one loss per photo."""

    @abstractmethod
    def __call__(self, descriptors: Tensor) -> Tensor:
        """The loss of each of (B, D) descriptors: (B,), differentiable."""

    def of_copies(self, descriptors: Tensor) -> Tensor:
        """The same for edited copies of the photos: they may be asked for less."""
        return self(descriptors)
