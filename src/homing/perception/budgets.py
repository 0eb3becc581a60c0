"""Pixel budgets: bounds on the change of each pixel, given as a strength or as a target PSNR."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from statistics import fmean
from typing import ClassVar

import torch
from torch import Tensor

from homing._tensors import cached_tensor
from homing.errors import HomingError, UnknownNameError, check_type
from homing.perception.jnd import LUMA, PRINTED, jnd_map
from homing.perception.quality import rms

# Inverse to each channel's share of luminance: blue may change most.
_CHANNEL_WEIGHTS = tuple(0.072 / share for share in LUMA)
# The paper's alpha applies to pixels divided by ImageNet's standard deviations; here pixels are in [0, 1].
_IMAGENET_STD = (0.229, 0.224, 0.225)
# Optimized changes are mostly close to their bound. The first strength meets the PSNR for this share of the bound.
TYPICAL_SHARE = 0.8


@cached_tensor
def _as_tensor(values: tuple[float, ...], device: torch.device) -> Tensor:
    return torch.tensor(values, device=device)


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
        channels, luma = _as_tensor(self.channels, images.device), _as_tensor(LUMA, images.device)
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

    def maps(self, images: Tensor) -> Tensor:
        """The JND map with the constants of the authors' code."""
        return jnd_map(images)


@dataclass(frozen=True, kw_only=True)
class PrintedJND(JND):
    """JND with the map printed in the paper, where pixels in flat mid-tones hardly change."""

    name = "jnd-printed"
    label = "printed JND"

    def maps(self, images: Tensor) -> Tensor:
        """The JND map with the constants printed in the paper."""
        return jnd_map(images, PRINTED)


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
