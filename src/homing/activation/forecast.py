"""The PSNR that a JPEG file will have, without the file: libjpeg's arithmetic on the tables it is written with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from homing._constant import constant
from homing._machine import send
from homing._stacks import in_stacks
from homing.edits.differentiable.jpeg import cosines
from homing.perception.quality import decibels
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
_GRAIN = 64  # pixels: photos of about the same size are told of together


class Forecast:
    """Of one photo that is written as a JPEG file; view and change, (3, H, W), lie on one device."""

    def __init__(self, photo: Photo, view: Tensor, change: Tensor, coding: Coding) -> None:
        self.shown, self.change = photo.as_stored(view), photo.as_stored(change)
        if len(coding.steps) == 1:
            self.shown, self.change = self.shown[:1], self.change.mean(dim=0, keepdim=True)
        self.steps = send(np.array(coding.steps, np.float32).reshape(-1, 1, 8, 1, 8), view.device)
        self.sampling = coding.sampling

    @classmethod
    def of(
        cls, photo: Photo, view: Tensor, change: Tensor, format: str | None = None, finer: bool = False
    ) -> Forecast | None:
        """Of the photo in a format, with finer tables or its own; None where the arithmetic is not known."""
        coding = photo.coding(format, finer)
        return None if coding is None else cls(photo, view, change, coding)


@torch.inference_mode()
def foretell(forecasts: Sequence[Forecast], strengths: Sequence[float]) -> list[float]:
    """The PSNR of each file with so many times its change; the device is waited for once."""
    asked = [(strength, *each.shown.shape[1:]) for each, strength in zip(forecasts, strengths, strict=True)]
    sent = send(np.array(asked, np.float32), forecasts[0].shown.device)[:, None, None]
    errors: dict[int, Tensor] = {}
    for sampling in dict.fromkeys(each.sampling for each in forecasts):
        some = {place: each for place, each in enumerate(forecasts) if each.sampling == sampling}
        given = [(each.shown, each.change, each.steps, sent[place]) for place, each in some.items()]
        told = in_stacks(partial(_errors, sampling=sampling), *zip(*given, strict=True), grain=_GRAIN)
        errors.update(zip(some, told, strict=True))
    off = torch.stack([errors[place] for place in range(len(forecasts))]).tolist()
    return [decibels(error / 255**2, each.shown.numel()) for error, each in zip(off, forecasts, strict=True)]


def _errors(shown: Tensor, change: Tensor, steps: Tensor, asked: Tensor, *, sampling: tuple[int, int]) -> Tensor:
    """The sum of squares, in levels, of what files of (B, C, H, W) pictures are off by: (B,).

    Of each is asked a strength, and for so many of its rows and columns: (B, 1, 1, 3).
    """
    strength, height, width = torch.split(asked, 1, dim=3)
    down, across = (torch.arange(side, device=shown.device) for side in shown.shape[2:])
    inside = (down[:, None] < height) & (across < width)
    rows = max(_BAND // (len(shown) * shown.shape[3]) // 16 * 16, 16)
    errors = []
    for before, more, counts in zip(*(torch.split(each, rows, dim=2) for each in (shown, change, inside)), strict=True):
        levels = (255 * before).round_()
        moved = levels.addcmul(more, strength, value=255).round_().clamp_(0, 255)
        off = _written(moved, steps, sampling).sub_(levels).square_().mul_(counts)
        errors.append(off.sum(dim=3).sum(dim=(1, 2), dtype=torch.float64))
    return torch.stack(errors).sum(dim=0)


def _written(levels: Tensor, steps: Tensor, sampling: tuple[int, int]) -> Tensor:
    """(B, C, H, W) levels as they are read from files that they were written to."""
    height, width = levels.shape[2:]
    planes = F.pad(levels, (0, -width % (8 * sampling[1]), 0, -height % (8 * sampling[0])), mode="replicate")
    if levels.shape[1] == 1:
        return _coded(planes.sub_(128), steps).add_(128)[..., :height, :width]
    planes = _mixed(planes, _SPLIT)
    planes[:, 1:] -= _TIE
    planes.round_()
    bright, tint = _coded(planes[:, :1] - 128, steps[:, :1]).add_(128), planes[:, 1:]
    if sampling != (1, 1):
        tint = _rounded_down(F.avg_pool2d(tint, sampling), _SHARED[sampling])
    tint = _coded(tint, steps[:, 1:])
    if sampling != (1, 1):
        tint = F.interpolate(tint, scale_factor=sampling, mode="bilinear", align_corners=False)
        tint = _rounded_down(tint, _PARTED[sampling])
    return _mixed(torch.cat([bright, tint], dim=1), _JOIN).round_().clamp_(0, 255)[..., :height, :width]


def _mixed(planes: Tensor, shares: tuple[tuple[float, ...], ...]) -> Tensor:
    """(B, 3, H, W) planes made anew of shares of each."""
    return (_numbers(shares, planes.device) @ planes.flatten(2)).view_as(planes)


def _coded(planes: Tensor, steps: Tensor) -> Tensor:
    """(B, C, H, W) around 0 after their frequencies, block by block, were rounded to multiples of their steps."""
    height, width = planes.shape[2:]
    strips, blocks = (-1, steps.shape[1], height // 8, 8, width), (-1, steps.shape[1], height // 8, 8, width // 8, 8)
    transform = cosines(8, planes.device, planes.dtype)
    eighths = ((transform @ planes.reshape(strips)).view(blocks) @ transform.mT).mul_(8).round_()  # as libjpeg has them
    # Halves go away from 0.
    multiples = eighths.abs().add_(4 * steps + 0.5).div_(8 * steps).floor_().copysign_(eighths).mul_(steps)
    # Back it goes by columns first, and what it has then is rounded, too.
    columns = (transform.mT @ multiples.view(strips)).mul_(_FINE).round_().div_(_FINE)
    rows = columns.view(blocks) @ transform
    return rows.view(planes.shape).add_(_TIE).round_().clamp_(-128, 127)


def _rounded_down(planes: Tensor, more: tuple[float, float]) -> Tensor:
    return planes.add_(_numbers(more, planes.device).repeat(planes.shape[3] // 2)).floor_()


@constant
def _numbers(values: tuple[float, ...] | tuple[tuple[float, ...], ...], device: torch.device) -> Tensor:
    return torch.tensor(values, device=device)
