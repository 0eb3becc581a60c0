"""Tensors: images of one size are processed together, and constants are made once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, wraps
from typing import ParamSpec, TypeVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_MAX_PIXELS = 8_000_000  # per stack


def map_by_shape(work: Callable[..., Tensor], *tensors: Sequence[Tensor], size_multiple: int = 1) -> list[Tensor]:
    """Apply `work` to stacks (B, C, H, W) of (C, H, W) tensors of one size; gives one result per image.

    Sizes are rounded up to multiples of `size_multiple` pixels: smaller tensors are padded below and to the right with
    their edge pixels, and `work` must leave the padding out.
    """
    results: dict[int, Tensor] = {}
    for indices in _group_by_shape(tensors, size_multiple):
        stacks = (_stack([tensor[index] for index in indices]) for tensor in tensors)
        results.update(zip(indices, work(*stacks), strict=True))
    return [results[index] for index in range(len(results))]


def _stack(tensors: list[Tensor]) -> Tensor:
    if len(tensors) == 1:
        return tensors[0][None]
    if len({each.shape for each in tensors}) > 1:
        height, width = (max(each.shape[side] for each in tensors) for side in (-2, -1))
        more = ((0, width - each.shape[-1], 0, height - each.shape[-2]) for each in tensors)
        tensors = [F.pad(each, pad, mode="replicate") for each, pad in zip(tensors, more, strict=True)]
    return torch.stack(tensors)


def _group_by_shape(tensors: Sequence[Sequence[Tensor]], size_multiple: int) -> Iterator[list[int]]:
    """Indices of tensors of one size, rounded up to `size_multiple`, split into stacks."""
    indices: dict[tuple[torch.Size, ...], list[int]] = {}
    for index, each in enumerate(zip(*tensors, strict=True)):
        indices.setdefault(tuple(_rounded_up(one.shape, size_multiple) for one in each), []).append(index)
    for shapes, group in indices.items():
        count = _stack_size(max(shape[-2:].numel() for shape in shapes), tensors[0][0].device)
        yield from (group[start : start + count] for start in range(0, len(group), count))


def _rounded_up(shape: torch.Size, size_multiple: int) -> torch.Size:
    return torch.Size([*shape[:-2], *(-(-side // size_multiple) * size_multiple for side in shape[-2:])])


def _stack_size(pixels: int, device: torch.device) -> int:
    """The number of images per stack: 1 on a CPU, where a single image fits the caches better."""
    return max(1, _MAX_PIXELS // pixels) if device.type == "cuda" else 1


def cached_tensor(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Cache a function's results per arguments, computed outside of inference mode.

    A tensor made in inference mode cannot take part in a gradient. Copying constants to a GPU again blocks the host.
    """

    @wraps(function)
    def make(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with torch.inference_mode(False):
            return function(*args, **kwargs)

    return cast("Callable[Arguments, Result]", cache(make))
