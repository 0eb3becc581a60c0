"""A query in all its turns: copies are mirrored, or laid on their side."""

from __future__ import annotations

import torch
from torch import Tensor

TURNS = 8


def turns(square: Tensor) -> list[Tensor]:
    """A (3, S, S) square as it is, in its three other quarter turns, and the mirror images of these four."""
    quarters = [torch.rot90(square, number, (1, 2)) for number in range(4)]
    return [*quarters, *(each.flip(2) for each in quarters)]
