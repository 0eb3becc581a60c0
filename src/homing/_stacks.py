"""Views of one size are worked on together: a GPU is told once what to do with all of them, and waited for once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

_PIXELS = 8_000_000  # of a stack


def in_stacks(work: Callable[..., Tensor], *tensors: Sequence[Tensor], grain: int = 1) -> list[Tensor]:
    """What `work` makes of (B, C, H, W) stacks, one for each sequence of (C, H, W) tensors; one by one.

    Sizes that are the same in units of `grain` pixels are taken for one: the smaller ones are continued below and to
    the right with what lies at the edge, and it is for `work` to leave that out.
    """
    results: dict[int, Tensor] = {}
    for places in _alike(tensors, grain):
        stacks = (_stack([some[place] for place in places]) for some in tensors)
        results.update(zip(places, work(*stacks), strict=True))
    return [results[place] for place in range(len(results))]


def _stack(tensors: list[Tensor]) -> Tensor:
    if len(tensors) == 1:
        return tensors[0][None]
    if len({each.shape for each in tensors}) > 1:
        height, width = (max(each.shape[side] for each in tensors) for side in (-2, -1))
        more = ((0, width - each.shape[-1], 0, height - each.shape[-2]) for each in tensors)
        tensors = [F.pad(each, pad, mode="replicate") for each, pad in zip(tensors, more, strict=True)]
    return torch.stack(tensors)


def _alike(tensors: Sequence[Sequence[Tensor]], grain: int) -> Iterator[list[int]]:
    """The places at which all sequences have tensors of the same sizes, in units of the grain; some at a time."""
    places: dict[tuple[torch.Size, ...], list[int]] = {}
    for place, each in enumerate(zip(*tensors, strict=True)):
        places.setdefault(tuple(_rounded_up(one.shape, grain) for one in each), []).append(place)
    for shapes, some in places.items():
        count = _at_once(max(shape[-2:].numel() for shape in shapes), tensors[0][0].device)
        yield from (some[start : start + count] for start in range(0, len(some), count))


def _rounded_up(shape: torch.Size, grain: int) -> torch.Size:
    return torch.Size([*shape[:-2], *(-(-side // grain) * grain for side in shape[-2:])])


def _at_once(pixels: int, device: torch.device) -> int:
    """How many of so many pixels each: on a CPU one alone, as what is made of it then stays in the caches."""
    return max(1, _PIXELS // pixels) if device.type == "cuda" else 1
