"""Views of one size are worked on together: a GPU is told once what to do with all of them, and waited for once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

_PIXELS = 8_000_000  # of a stack


def in_stacks(work: Callable[..., Tensor], *tensors: Sequence[Tensor]) -> list[Tensor]:
    """What `work` makes of (B, C, H, W) stacks, one for each sequence of (C, H, W) tensors; one by one."""
    results: dict[int, Tensor] = {}
    for places in _alike(tensors):
        stacks = (_stack([some[place] for place in places]) for some in tensors)
        results.update(zip(places, work(*stacks), strict=True))
    return [results[place] for place in range(len(results))]


def _stack(tensors: list[Tensor]) -> Tensor:
    return torch.stack(tensors) if len(tensors) > 1 else tensors[0][None]


def _alike(tensors: Sequence[Sequence[Tensor]]) -> Iterator[list[int]]:
    """The places at which all sequences have tensors of the same sizes, some at a time."""
    places: dict[tuple[torch.Size, ...], list[int]] = {}
    for place, each in enumerate(zip(*tensors, strict=True)):
        places.setdefault(tuple(one.shape for one in each), []).append(place)
    for shapes, some in places.items():
        count = _at_once(max(shape[-2:].numel() for shape in shapes), tensors[0][0].device)
        yield from (some[start : start + count] for start in range(0, len(some), count))


def _at_once(pixels: int, device: torch.device) -> int:
    """How many of so many pixels each: on a CPU one alone, as what is made of it then stays in the caches."""
    return max(1, _PIXELS // pixels) if device.type == "cuda" else 1
