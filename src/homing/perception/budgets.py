"""Pixel budgets: bounds on the change of each pixel, given as a strength or as a target PSNR.

Most are in proportion to the just-noticeable-difference map: the largest change of each pixel that the eye does not
see, by luminance adaptation and contrast masking (Chou & Li 1995, combined as Wu et al. 2017). The constants printed in
the Active Image Indexing paper differ from those of its code: the printed formula omits the +3 of the dark branch and
so is discontinuous at 127.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from statistics import fmean
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from homing._tensors import constant
from homing.errors import HomingError, UnknownNameError, check_type
from homing.perception.quality import rms

LUMA = (0.299, 0.587, 0.114)
# Inverse to each channel's share of luminance: blue may change most.
_CHANNEL_WEIGHTS = tuple(0.072 / share for share in LUMA)
# The paper's alpha applies to pixels divided by ImageNet's standard deviations; here pixels are in [0, 1].
_IMAGENET_STD = (0.229, 0.224, 0.225)
# Optimized changes are mostly close to their bound. The first strength meets the PSNR for this share of the bound.
TYPICAL_SHARE = 0.8


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


def is_grayscale(images: Tensor) -> Tensor:
    """Which of (B, 3, H, W) images are entirely gray: (B,)."""
    red, green, blue = images.unbind(dim=1)
    return ((red == green) & (green == blue)).all(dim=2).all(dim=1)


@dataclass(frozen=True, kw_only=True)
class Budget(ABC):
    """Bound on the change of each pixel: alpha · H, where the map H of the photo depends on the kind of budget.

    Give either `alpha` or `psnr` in dB; with `psnr` the strength is found for each photo, on the written file.
    """

    name: ClassVar[str]
    label: ClassVar[str]  # used in sentences
    channels: ClassVar[tuple[float, ...]]  # bound of each channel where the map is 1

    psnr: float | None = None
    alpha: float | None = None

    def __post_init__(self) -> None:
        if (self.psnr is None) == (self.alpha is None):
            raise HomingError(f"a budget takes either psnr or alpha, got psnr={self.psnr} and alpha={self.alpha}")
        for name, value in (("psnr", self.psnr), ("alpha", self.alpha)):
            if value is not None:
                check_type(name, value, "a number")
        if self.psnr is not None and not 20 <= self.psnr <= 80:
            raise HomingError(f"psnr must be between 20 and 80 dB, got {self.psnr:g}")
        if self.alpha is not None and not 0 < self.alpha <= 100:
            raise HomingError(f"alpha must be above 0 and at most 100, got {self.alpha:g}")

    @abstractmethod
    def maps(self, images: Tensor) -> Tensor:
        """The map H of (B, 3, H, W) images: (B, 1, H, W)."""

    def pixel_bound(self, image: Tensor) -> Tensor:
        """The bound of each pixel of a (3, H, W) image in [0, 1], in either direction: (3, H, W).

        In a gray image all channels have the same bound, so that it stays gray.
        """
        return self.pixel_bounds(image[None])[0]

    def pixel_bounds(self, images: Tensor) -> Tensor:
        """The pixel bounds of (B, 3, H, W) images: (B, 3, H, W)."""
        channels, luma = constant(self.channels, images.device), constant(LUMA, images.device)
        gray = (channels @ luma).expand(3)  # the same change of luminance
        unscaled = torch.where(is_grayscale(images)[:, None], gray, channels)[:, :, None, None] * self.maps(images)
        return unscaled * self._strengths(unscaled)

    def _strengths(self, unscaled: Tensor) -> Tensor | float:
        """The factor of (B, 3, H, W) unscaled bounds that meets the budget: (B, 1, 1, 1), or a number."""
        if self.alpha is not None:
            return self.alpha
        assert self.psnr is not None
        typical_rms = TYPICAL_SHARE * rms(unscaled)[:, None, None, None]
        return torch.where(typical_rms > 0, 10 ** (-self.psnr / 20) / typical_rms, 0)

    def __str__(self) -> str:
        return (
            f"{self.label} at {self.psnr:g} dB" if self.psnr is not None else f"{self.label} with alpha {self.alpha:g}"
        )


@dataclass(frozen=True, kw_only=True)
class JND(Budget):
    """Pixel bounds in proportion to the just-noticeable-difference map.

    `alpha` is the paper's strength (3 by default there). The paper's network reads about every fourth pixel and
    homing's reads all of them, so the same alpha costs a few dB more here.
    """

    name = "jnd"
    label = "JND"
    channels = tuple(unit * share for unit, share in zip(_IMAGENET_STD, _CHANNEL_WEIGHTS, strict=True))
    constants: ClassVar[Constants] = USED

    def maps(self, images: Tensor) -> Tensor:
        """The JND map."""
        return jnd_map(images, self.constants)


@dataclass(frozen=True, kw_only=True)
class PrintedJND(JND):
    """JND with the map printed in the paper, where pixels in flat mid-tones hardly change."""

    name = "jnd-printed"
    label = "printed JND"
    constants = PRINTED


@dataclass(frozen=True, kw_only=True)
class UniformJND(JND):
    """The JND map with the same bound for all channels.

    In the paper blue may change five times as much as green. The eye hardly sees it, but PSNR weights all channels
    equally, networks depend least on blue, and JPEG removes most of it. An `alpha` costs as many dB as with JND.
    """

    name = "jnd-uniform"
    label = "uniform JND"
    channels = (math.sqrt(fmean(channel**2 for channel in JND.channels)),) * 3


@dataclass(frozen=True, kw_only=True)
class Linf(Budget):
    """The same bound for every channel of every pixel; `alpha` is in steps of 1/255."""

    name = "linf"
    label = "L∞"
    channels = (1 / 255,) * 3

    def maps(self, images: Tensor) -> Tensor:
        """A map of ones."""
        return torch.ones_like(images[:, :1])


BUDGETS: dict[str, type[Budget]] = {kind.name: kind for kind in (JND, PrintedJND, UniformJND, Linf)}
"""Kinds of budgets by name."""


def budget_named(name: str) -> type[Budget]:
    """The kind of budget of this name."""
    if name not in BUDGETS:
        raise UnknownNameError("budget", name, BUDGETS)
    return BUDGETS[name]
