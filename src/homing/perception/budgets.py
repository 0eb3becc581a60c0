"""Pixel budgets: bounds on the change of each pixel, given as a strength or as a target PSNR."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from statistics import fmean
from typing import ClassVar

import torch
from torch import Tensor

from homing._tensor_cache import cached_tensor
from homing.errors import HomingError, UnknownNameError
from homing.perception.jnd import LUMA, PRINTED, jnd_map
from homing.perception.quality import rms

# Inverse to what each channel adds to luminance: blue may move most.
_CHANNEL_WEIGHTS = tuple(0.072 / share for share in LUMA)
# The paper's alpha counts in pixels divided by ImageNet's standard deviations; ours are in [0, 1].
_IMAGENET_STD = (0.229, 0.224, 0.225)
# After the loop most of the change sits near its bound; this share of it is what a PSNR is first met with.
TYPICAL_SHARE = 0.8


@cached_tensor
def _as_tensor(values: tuple[float, ...], device: torch.device) -> Tensor:
    return torch.tensor(values, device=device)


def is_grayscale(images: Tensor) -> Tensor:
    """Which of (B, 3, H, W) images are gray throughout: (B,)."""
    red, green, blue = images.unbind(dim=1)
    return ((red == green) & (green == blue)).all(dim=2).all(dim=1)


@dataclass(frozen=True, kw_only=True)
class Budget(ABC):
    """Pixels move by at most alpha · H, where `H` is a map of the photo: each kind of budget has its own.

    Give `psnr` (in dB; the strength is then found for each photo, on the file as written) or `alpha`.
    """

    name: ClassVar[str]
    label: ClassVar[str]  # in sentences
    channels: ClassVar[tuple[float, ...]]  # how far each may move where the map is 1

    psnr: float | None = None
    alpha: float | None = None

    def __post_init__(self) -> None:
        if (self.psnr is None) == (self.alpha is None):
            raise HomingError(f"a budget takes either psnr or alpha, got psnr={self.psnr} and alpha={self.alpha}")
        if self.psnr is not None and not 20 <= self.psnr <= 80:
            raise HomingError(f"psnr must lie between 20 and 80 dB, got {self.psnr:g}")
        if self.alpha is not None and not 0 < self.alpha <= 100:
            raise HomingError(f"alpha must be above 0 and at most 100, got {self.alpha:g}")

    @abstractmethod
    def maps(self, images: Tensor) -> Tensor:
        """How the bound is spread over (B, 3, H, W) images: (B, 1, H, W)."""

    def pixel_bound(self, image: Tensor) -> Tensor:
        """How far each pixel of a (3, H, W) image may move either way, in [0, 1] units: (3, H, W).

        All channels of an image without color have the same bound, as they are to move as one.
        """
        return self.pixel_bounds(image[None])[0]

    def pixel_bounds(self, images: Tensor) -> Tensor:
        """The same of (B, 3, H, W) images."""
        channels, luma = _as_tensor(self.channels, images.device), _as_tensor(LUMA, images.device)
        gray = (channels @ luma).expand(3)  # the same change of luminance
        unscaled = torch.where(is_grayscale(images)[:, None], gray, channels)[:, :, None, None] * self.maps(images)
        return unscaled * self._strengths(unscaled)

    def _strengths(self, unscaled: Tensor) -> Tensor | float:
        """Of (B, 3, H, W) unscaled bounds, (B, 1, 1, 1): as much as meets the budget."""
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
    """Pixels move in proportion to the just-noticeable-difference map.

    `alpha` is the paper's strength, 3 by default there; their network reads every fourth pixel or so, ours reads all,
    so that the same alpha costs some dB more here.
    """

    name = "jnd"
    label = "JND"
    channels = tuple(unit * share for unit, share in zip(_IMAGENET_STD, _CHANNEL_WEIGHTS, strict=True))

    def maps(self, images: Tensor) -> Tensor:
        """The map with the constants that the authors used."""
        return jnd_map(images)


@dataclass(frozen=True, kw_only=True)
class PrintedJND(JND):
    """The same with the map as the paper prints it: in flat mid-tones pixels may hardly move."""

    name = "jnd-printed"
    label = "printed JND"

    def maps(self, images: Tensor) -> Tensor:
        """The map with the constants that were printed."""
        return jnd_map(images, PRINTED)


@dataclass(frozen=True, kw_only=True)
class UniformJND(JND):
    """Ours: the same map, and all channels may move by the same.

    In the paper blue may move five times as far as green. The eye hardly sees it, but a PSNR counts it like any other
    channel, networks look at it least, and JPEG takes most of it away. An `alpha` costs as many dB as that of JND.
    """

    name = "jnd-uniform"
    label = "uniform JND"
    channels = (math.sqrt(fmean(channel**2 for channel in JND.channels)),) * 3


@dataclass(frozen=True, kw_only=True)
class Linf(Budget):
    """Every channel of every pixel may move by the same, wherever it is; `alpha` counts in steps of 1/255."""

    name = "linf"
    label = "L∞"
    channels = (1 / 255,) * 3

    def maps(self, images: Tensor) -> Tensor:
        """A map of ones."""
        return torch.ones_like(images[:, :1])


BUDGETS: dict[str, type[Budget]] = {kind.name: kind for kind in (JND, PrintedJND, UniformJND, Linf)}
"""Every kind of budget by name."""


def budget_named(name: str) -> type[Budget]:
    """The kind of budget of this name."""
    if name not in BUDGETS:
        raise UnknownNameError("budget", name, BUDGETS)
    return BUDGETS[name]
