"""The just-noticeable-difference map: how large a change of each pixel the eye does not see.

Luminance adaptation and contrast masking (Chou & Li 1995, combined as Wu et al. 2017). The authors of Active Image
Indexing printed other constants than they used: their formula drops the +3 of the dark branch and so jumps at 127.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

LUMA = (0.299, 0.587, 0.114)


class Constants(NamedTuple):
    """What the two variants do not share; levels are of 255."""

    patch: tuple[int, int, int]  # the weights of the squares of 5, 3 and 1 pixels whose mean is the background
    dark: float  # bound left where the dark branch ends
    masking: float  # how much texture hides
    floor: float  # the least bound anywhere


USED = Constants(
    patch=(1, 1, -2),  # the inner ring counts twice, the pixel itself not at all
    dark=3,
    masking=0.117,
    floor=5,  # in flat mid-tones the model alone would leave almost no bound
)
# "The mean of a local patch" is all that is said of the background.
PRINTED = Constants(patch=(1, 0, 0), dark=0, masking=0.115, floor=0)


def jnd_map(images: Tensor, constants: Constants = USED) -> Tensor:
    """The just noticeable luminance change of every pixel: (B, 3, H, W) in [0, 1] gives (B, 1, H, W) in [0, 1]."""
    red, green, blue = images.chunk(3, dim=1)
    luma = (LUMA[0] * red).add_(green, alpha=LUMA[1]).add_(blue, alpha=LUMA[2]).mul_(255)
    background, squared = _background_and_contrast(luma, constants.patch)
    # In place, as nothing takes longer here than to get memory: 17 (1 − √(B/127)) + dark, and 3 (B − 127)/128 + 3.
    dark = (background.clamp(min=0) / 127).sqrt_().mul_(-17).add_(17 + constants.dark)
    bright = (background - 127).mul_(3 / 128).add_(3)
    adaptation = torch.where(background < 127, dark, bright)
    # The contrast to the power of 2.4, over its square + 26².
    masking = squared.pow(1.2).mul_(16 * constants.masking).div_(squared.add_(26**2))
    combined = torch.minimum(adaptation, masking).mul_(-0.3).add_(adaptation).add_(masking)
    return combined.clamp_(min=constants.floor).div_(255)


def _background_and_contrast(luma: Tensor, patch: tuple[int, int, int]) -> tuple[Tensor, Tensor]:
    """The mean around each pixel of (B, 1, H, W), and the squared length of its Sobel gradient.

    Sums of shifted slices: on a CPU several times as fast as convolutions of one channel.
    """
    wide = F.pad(luma, (2, 2, 2, 2), mode="replicate")  # so that a frame is not taken for an edge
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
    """A pixel's neighbors along an axis, first to last, for all pixels that have so many."""
    size = plane.shape[axis] - count + 1
    return [plane.narrow(axis, start, size) for start in range(count)]
