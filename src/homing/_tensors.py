"""Tensors: the device to compute on, transfers to it, images of one size as one batch, constants made once."""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from functools import cache, wraps
from importlib.util import find_spec
from pathlib import Path
from typing import ParamSpec, TypeVar, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_MAX_PIXELS = 8_000_000  # per stack
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # of malloc.h


def default_device() -> torch.device:
    """The GPU if there is one, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def supports_bfloat16(device: torch.device) -> bool:
    """Whether the device supports bfloat16 in hardware."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    can = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}  # only in recent PyTorch
    return bool(can.get("avx512_bf16") or can.get("amx_bf16"))


def compile_on_gpu(
    function: Callable[..., Tensor], device: torch.device, *, dynamic: bool | None = None
) -> Callable[..., Tensor]:
    """Compile a function for a GPU; return it unchanged on a CPU, an old GPU, or without Triton."""
    can = device.type == "cuda" and find_spec("triton") is not None
    if not can or torch.cuda.get_device_capability(device) < (7, 0):
        return function
    compiled: Callable[..., Tensor] = torch.compile(function, dynamic=dynamic)
    return compiled


@cache
def tune_malloc() -> None:
    """Make malloc keep up to 512 MB of freed memory in one arena for all threads. Only with glibc, on Linux.

    A network frees and allocates memory in each layer; fresh pages took a third of the time.
    """
    if platform.libc_ver()[0] != "glibc":
        return
    library = ctypes.CDLL(None)
    # Older glibc accepts at most 32 MB as the first setting; without it the others slow the process down.
    if any(library.mallopt(_MMAP_THRESHOLD, size * 2**20) for size in (128, 32)):
        library.mallopt(_TRIM_THRESHOLD, 512 * 2**20)
        library.mallopt(_ARENA_MAX, 1)


def to_device(numbers: np.ndarray, device: torch.device) -> Tensor:
    """Copy an array to the device without waiting for it, so that a GPU always has work."""
    tensor = torch.from_numpy(numbers)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


def to_numpy(tensors: Sequence[Tensor]) -> list[np.ndarray]:
    """Convert tensors on one device to arrays, with one synchronization."""
    if not tensors or not tensors[0].is_cuda:
        return [tensor.numpy() for tensor in tensors]
    copies = [torch.empty_like(each, device="cpu", pin_memory=True).copy_(each, non_blocking=True) for each in tensors]
    torch.cuda.current_stream(tensors[0].device).synchronize()
    return [each.numpy() for each in copies]


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


@cached_tensor
def constant(values: tuple[float, ...] | tuple[tuple[float, ...], ...], device: torch.device) -> Tensor:
    """Numbers as a tensor on a device."""
    return torch.tensor(values, device=device)


def hardware() -> str:
    """The processor's name and number of cores, and the GPU's name if there is one."""
    names = [platform.processor() or platform.machine()]
    about = Path("/proc/cpuinfo")
    if about.exists():  # platform.processor() returns only the architecture on Linux
        lines = (line.partition(":") for line in about.read_text().splitlines())
        names = [value.strip() for key, _, value in lines if key.strip() == "model name"][:1] or names
    names[0] += f", {os.cpu_count()} cores"
    if torch.cuda.is_available():
        names.append(torch.cuda.get_device_name())
    return " / ".join(names)


def memory_in_use(*, peak: bool = False) -> int:
    """Resident memory of this process, or its peak, in bytes (Linux); getrusage includes the parent's peak."""
    lines = (line.split() for line in Path("/proc/self/status").read_text().splitlines())
    return next(1024 * int(words[1]) for words in lines if words[0] == ("VmHWM:" if peak else "VmRSS:"))
