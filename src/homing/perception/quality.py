"""How far the pixels of two photos are apart: PSNR, SSIM and the largest single change."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean

import torch
from torch import Tensor

from homing.errors import HomingError


@dataclass(frozen=True)
class Quality:
    """What a release cost: PSNR in dB, SSIM, and the largest change of any pixel in steps of 1/255."""

    psnr: float
    ssim: float
    linf: float

    def __str__(self) -> str:
        return f"PSNR {self.psnr:.1f} dB, SSIM {self.ssim:.3f}, L∞ {self.linf:.0f}"


def psnr(first: Tensor, second: Tensor) -> float:
    """Peak signal-to-noise ratio in dB of two (3, H, W) views; infinite when they are equal."""
    error = float((first - second).square().mean(dtype=torch.float64))
    return 10 * math.log10(1 / error) if error else math.inf


def measure(first: Tensor, second: Tensor) -> Quality:
    """PSNR, SSIM and L∞ of two (3, H, W) views in [0, 1]."""
    if first.shape != second.shape:
        sizes = " and ".join(f"{view.shape[2]}×{view.shape[1]}" for view in (first, second))
        raise HomingError(f"the two photos must have the same size, got {sizes}")
    from kornia.metrics import ssim  # slow to import, and many ways through homing never measure

    with torch.no_grad():
        # One channel after the other: of photos of many megapixels all three at once would take gigabytes.
        pairs = zip(first[:, None, None], second[:, None, None], strict=True)
        similarity = fmean(float(ssim(one, other, window_size=11).mean()) for one, other in pairs)
    return Quality(psnr(first, second), similarity, round(255 * float((first - second).abs().max()), 3))
