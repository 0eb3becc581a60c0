"""The PSNR that a JPEG file will have, without the file: libjpeg's arithmetic on the tables it is written with."""

from __future__ import annotations

import math
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from homing.edits.differentiable.jpeg import cosines
from homing.photo import Coding, Photo

# To brightness, bluish and reddish; libjpeg's numbers.
_SPLIT = ((0.299, 0.587, 0.114), (-0.168736, -0.331264, 0.5), (0.5, -0.418688, -0.081312))
_JOIN = ((1.0, 0.0, 1.402), (1.0, -0.344136, -0.714136), (1.0, 1.772, 0.0))
# What libjpeg adds before it rounds down, in even and in odd columns: where colours are shared, and where they part.
_SHARED = {(1, 2): (0.0, 0.5), (2, 2): (0.25, 0.5)}
_PARTED = {(1, 2): (0.25, 0.5), (2, 2): (0.5, 0.4375)}
_TIE = 1e-3  # sums of whole numbers end in exactly a half so often that which way they go decides; ours are not exact
_FINE = 4 * math.sqrt(8)  # what libjpeg counts in on the way back from frequencies, in parts of a level
_BAND = 4_000_000  # pixels at a time, so that memory does not grow with the photo


class Forecast:
    """Of one photo that is written as a JPEG file; view and change, (3, H, W), lie on one device."""

    def __init__(self, photo: Photo, view: Tensor, change: Tensor, coding: Coding) -> None:
        self._levels, self._change = (255 * photo.as_stored(each) for each in (view, change))
        self._levels.round_()
        if len(coding.steps) == 1:
            self._levels, self._change = self._levels[:1], self._change.mean(dim=0, keepdim=True)
        self._steps = view.new_tensor(coding.steps).view(-1, 1, 8, 1, 8)
        self._sampling = coding.sampling

    @classmethod
    def of(
        cls, photo: Photo, view: Tensor, change: Tensor, format: str | None = None, finer: bool = False
    ) -> Forecast | None:
        """Of the photo in a format, with finer tables or its own; None where the arithmetic is not known."""
        coding = photo.coding(format, finer)
        return None if coding is None else cls(photo, view, change, coding)

    @torch.inference_mode()
    def __call__(self, strength: float) -> float:
        """The PSNR in dB of the file with so many times the change."""
        rows = max(_BAND // self._levels.shape[2] // 16 * 16, 16)
        levels, changes = (torch.split(each, rows, dim=1) for each in (self._levels, self._change))
        errors = [self._error(*band, strength) for band in zip(levels, changes, strict=True)]
        error = float(torch.stack(errors).sum())
        return 10 * math.log10(255**2 * self._levels.numel() / error) if error else math.inf

    def _error(self, levels: Tensor, change: Tensor, strength: float) -> Tensor:
        """The sum of squares of what a band of rows is off by."""
        moved = levels.add(change, alpha=strength).round_().clamp_(0, 255)
        return _written(moved, self._steps, self._sampling).sub_(levels).square_().sum(dim=2).sum(dtype=torch.float64)


def _written(levels: Tensor, steps: Tensor, sampling: tuple[int, int]) -> Tensor:
    """(C, H, W) levels as they are read from a file that they were written to."""
    height, width = levels.shape[1:]
    planes = F.pad(levels, (0, -width % (8 * sampling[1]), 0, -height % (8 * sampling[0])), mode="replicate")
    if len(levels) == 1:
        return _coded(planes.sub_(128), steps).add_(128)[:, :height, :width]
    planes = torch.tensordot(_numbers(_SPLIT, levels.device), planes, dims=1)
    planes[1:] -= _TIE
    planes.round_()
    bright, tint = _coded(planes[:1] - 128, steps[:1]).add_(128), planes[1:]
    if sampling != (1, 1):
        tint = _rounded_down(F.avg_pool2d(tint, sampling), _SHARED[sampling])
    tint = _coded(tint, steps[1:])
    if sampling != (1, 1):
        tint = F.interpolate(tint[None], scale_factor=sampling, mode="bilinear", align_corners=False)[0]
        tint = _rounded_down(tint, _PARTED[sampling])
    joined: Tensor = torch.tensordot(_numbers(_JOIN, levels.device), torch.cat([bright, tint]), dims=1)
    return joined.round_().clamp_(0, 255)[:, :height, :width]


def _coded(planes: Tensor, steps: Tensor) -> Tensor:
    """(C, H, W) planes around 0 after their frequencies, block by block, were rounded to multiples of their steps."""
    count, height, width = planes.shape
    strips, blocks = (count, height // 8, 8, width), (count, height // 8, 8, width // 8, 8)
    transform = cosines(8, planes.device, planes.dtype)
    eighths = ((transform @ planes.reshape(strips)).view(blocks) @ transform.mT).mul_(8).round_()  # as libjpeg has them
    # Halves go away from 0.
    multiples = eighths.abs().add_(4 * steps + 0.5).div_(8 * steps).floor_().copysign_(eighths).mul_(steps)
    # Back it goes by columns first, and what it has then is rounded, too.
    columns = (transform.mT @ multiples.view(strips)).mul_(_FINE).round_().div_(_FINE)
    rows = columns.view(blocks) @ transform
    return rows.view(planes.shape).add_(_TIE).round_().clamp_(-128, 127)


def _rounded_down(planes: Tensor, more: tuple[float, float]) -> Tensor:
    return planes.add_(_numbers(more, planes.device).repeat(planes.shape[2] // 2)).floor_()


@lru_cache(maxsize=32)  # to send them to a GPU anew would make the host wait
def _numbers(values: tuple[float, ...] | tuple[tuple[float, ...], ...], device: torch.device) -> Tensor:
    return torch.tensor(values, device=device)
