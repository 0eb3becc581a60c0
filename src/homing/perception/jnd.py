"""The just-noticeable-difference map: the largest change of each pixel that the eye does not see.

Luminance adaptation and contrast masking (Chou & Li 1995, combined as Wu et al. 2017). The constants printed in the
Active Image Indexing paper differ from those of its code: the printed formula omits the +3 of the dark branch and so
is discontinuous at 127.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

LUMA = (0.299, 0.587, 0.114)


class Constants(NamedTuple):
    """Constants that differ between the two variants, on a scale of 0 to 255."""

    patch: tuple[int, int, int]  # weights of the 5 × 5, 3 × 3 and 1 × 1 sums whose mean is the background
    dark: float  # bound at the end of the dark branch
    masking: float  # strength of contrast masking
    floor: float  # minimum bound


USED = Constants(
    patch=(1, 1, -2),  # the inner ring counts twice, the pixel itself not at all
    dark=3,
    masking=0.117,
    floor=5,  # without it the bound in flat mid-tones is almost zero
)
# The paper defines the background only as "the mean of a local patch".
PRINTED = Constants(patch=(1, 0, 0), dark=0, masking=0.115, floor=0)


def jnd_map(images: Tensor, constants: Constants = USED) -> Tensor:
    """The just noticeable luminance change of every pixel: (B, 3, H, W) in [0, 1] gives (B, 1, H, W) in [0, 1]."""
    red, green, blue = images.chunk(3, dim=1)
    luma = (LUMA[0] * red).add_(green, alpha=LUMA[1]).add_(blue, alpha=LUMA[2]).mul_(255)
    background, squared = _background_and_contrast(luma, constants.patch)
    # 17 (1 − √(B/127)) + dark, and 3 (B − 127)/128 + 3; in place, because allocating memory takes longest here.
    dark = (background.clamp(min=0) / 127).sqrt_().mul_(-17).add_(17 + constants.dark)
    bright = (background - 127).mul_(3 / 128).add_(3)
    adaptation = torch.where(background < 127, dark, bright)
    # contrast^2.4 / (contrast² + 26²)
    masking = squared.pow(1.2).mul_(16 * constants.masking).div_(squared.add_(26**2))
    combined = torch.minimum(adaptation, masking).mul_(-0.3).add_(adaptation).add_(masking)
    return combined.clamp_(min=constants.floor).div_(255)


def _background_and_contrast(luma: Tensor, patch: tuple[int, int, int]) -> tuple[Tensor, Tensor]:
    """The mean around each pixel of (B, 1, H, W), and the squared length of its Sobel gradient.

    Sums of shifted slices are several times as fast on a CPU as single-channel convolutions.
    """
    wide = F.pad(luma, (2, 2, 2, 2), mode="replicate")  # so that the border is not an edge
    near = wide[..., 1:-1, 1:-1]
    of_five, of_three, of_one = patch
    total = _sum(_sum(wide, 3, 5), 2, 5).mul_(of_five).add_(luma, alpha=of_one)
    if of_three:
        total.add_(_sum(_sum(near, 3, 3), 2, 3), alpha=of_three)
    (left, _, right), (above, _, below) = _shifted(_smoothed(near, 2), 3, 3), _shifted(_smoothed(near, 3), 2, 3)
    across, down = right - left, below - above
    return total.div_(25 * of_five + 9 * of_three + of_one), across.square_().addcmul_(down, down)


def _smoothed(plane: Tensor, axis: int) -> Tensor:
    before, itself, after = _shifted(plane, axis, 3)
    return (before + after).add_(itself, alpha=2)


def _sum(plane: Tensor, axis: int, count: int) -> Tensor:
    first, second, *others = _shifted(plane, axis, count)
    return functools.reduce(Tensor.add_, others, first + second)


def _shifted(plane: Tensor, axis: int, count: int) -> list[Tensor]:
    """The `count` neighbors of each pixel along an axis, first to last, where all of them exist."""
    size = plane.shape[axis] - count + 1
    return [plane.narrow(axis, start, size) for start in range(count)]
