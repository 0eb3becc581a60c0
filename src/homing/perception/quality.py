"""Quality metrics of a changed photo: PSNR, SSIM, the largest change of a pixel, and LPIPS."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError

import torch
import torch.nn.functional as F
from torch import Tensor

from homing._imports import load_extra
from homing._tensors import default_device, map_by_shape
from homing.errors import HomingError

_RADIUS, _SIGMA = 5, 1.5  # of the Gaussian window of 11 pixels
_STABILIZERS = (0.01**2, 0.03**2)
# Pixels per band; on a CPU the intermediate results of a band fit in the cache.
_BAND, _BAND_ON_GPU = 48_000, 8_000_000

Distance = Callable[[Tensor, Tensor], float]


@dataclass(frozen=True)
class Quality:
    """PSNR in dB, SSIM, and the largest change of any pixel in steps of 1/255."""

    psnr: float
    ssim: float
    linf: float

    def __str__(self) -> str:
        return f"PSNR {self.psnr:.1f} dB, SSIM {self.ssim:.3f}, L∞ {self.linf:.0f}"


UNCHANGED = Quality(math.inf, 1.0, 0.0)


def rms(changes: Tensor) -> Tensor:
    """The root of the mean square of (…, C, H, W) changes: (…)."""
    return changes.square().mean(dim=(-3, -2, -1)).sqrt()


def psnr_batch(firsts: Sequence[Tensor], seconds: Sequence[Tensor]) -> list[float]:
    """Peak signal-to-noise ratio in dB of pairs of (3, H, W) images, infinite if they are equal.

    All images are on one device, which is synchronized once.
    """
    with torch.inference_mode():
        errors = torch.stack(map_by_shape(_errors, firsts, seconds)).tolist() if firsts else []
    return [psnr_from_error(error, first.numel()) for error, first in zip(errors, firsts, strict=True)]


def measure(first: Tensor, second: Tensor) -> Quality:
    """PSNR, SSIM and L∞ of two (3, H, W) images in [0, 1]."""
    if first.shape != second.shape:
        sizes = " and ".join(f"{image.shape[2]}×{image.shape[1]}" for image in (first, second))
        raise HomingError(f"the two photos must have the same size, got {sizes}")
    return measure_batch([first], [second])[0]


def measure_batch(firsts: Sequence[Tensor], seconds: Sequence[Tensor]) -> list[Quality]:
    """Quality of many pairs of (3, H, W) images on one device, which is synchronized once."""
    with torch.inference_mode():
        measured = torch.stack(map_by_shape(_measured, firsts, seconds)).tolist() if firsts else []
    return [
        Quality(psnr_from_error(error, count), ssim / count, round(255 * most, 3)) if error else UNCHANGED
        for (error, ssim, most), count in zip(measured, map(Tensor.numel, firsts), strict=True)
    ]


def _measured(first: Tensor, second: Tensor) -> Tensor:
    """Squared error, sum of SSIM and largest change of each pair of (B, 3, H, W) images: (B, 3)."""
    largest = [(one - other).abs_().amax(dim=(1, 2, 3)) for one, other in _bands(first, second)]
    similar = [
        _similarity(one, other).sum(dim=(1, 2, 3), dtype=torch.float64) for one, other in _bands(first, second, _RADIUS)
    ]
    max_change = torch.stack(largest).amax(dim=0).double()
    return torch.stack([_errors(first, second), torch.stack(similar).sum(dim=0), max_change], dim=1)


def _errors(first: Tensor, second: Tensor) -> Tensor:
    """The sum of squared differences of (B, 3, H, W) images: (B,)."""
    bands = [
        (one - other).square_().sum(dim=3).sum(dim=(1, 2), dtype=torch.float64) for one, other in _bands(first, second)
    ]
    return torch.stack(bands).sum(dim=0)


def psnr_from_error(error: float, count: int) -> float:
    """The PSNR of `count` values with this sum of squared errors."""
    return 10 * math.log10(count / error) if error else math.inf


def _bands(first: Tensor, second: Tensor, radius: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
    """Split two (B, 3, H, W) batches into bands of rows, with `radius` mirrored rows around each band."""
    count, _, height, width = first.shape
    rows = max((_BAND_ON_GPU if first.is_cuda else _BAND) // (count * width), 16)
    for top in range(0, height, rows):
        bottom = min(top + rows, height)
        if not radius:
            yield first[:, :, top:bottom], second[:, :, top:bottom]
            continue
        rows_with_border = torch.arange(top - radius, bottom + radius, device=first.device).abs()
        rows_with_border = torch.where(rows_with_border < height, rows_with_border, 2 * height - 2 - rows_with_border)
        yield first.index_select(2, rows_with_border), second.index_select(2, rows_with_border)


def _similarity(first: Tensor, second: Tensor) -> Tensor:
    """SSIM of every pixel, (B, 3, H - 10, W), of (B, 3, H, W).

    Equal to kornia's, which uses a non-separable window and is many times slower on a CPU.
    """
    window = torch.arange(-_RADIUS, _RADIUS + 1, device=first.device, dtype=first.dtype)
    window = torch.softmax(-(window**2) / (2 * _SIGMA**2), dim=0).expand(12, 1, 1, -1)
    squares = (first * first).addcmul_(second, second)
    fields = F.pad(torch.cat([first, second, squares, first * second], dim=1), (_RADIUS, _RADIUS, 0, 0), mode="reflect")
    # On a CPU, depthwise convolutions are fast only in channels-last memory. On a GPU that format makes cuDNN plan
    # them again for every size of photo, which takes longer than the convolutions.
    fields = fields if fields.is_cuda else fields.contiguous(memory_format=torch.channels_last)
    means = F.conv2d(F.conv2d(fields, window.transpose(2, 3), groups=12), window, groups=12)
    one, other, squares, products = means.contiguous().chunk(4, dim=1)
    both, squared = one * other, (one * one).addcmul_(other, other)
    covariance = products.sub_(both).mul_(2).add_(_STABILIZERS[1])
    variance = squares.sub_(squared).add_(_STABILIZERS[1])
    return both.mul_(2).add_(_STABILIZERS[0]).mul_(covariance).div_(squared.add_(_STABILIZERS[0]).mul_(variance))


def load_lpips() -> Distance:
    """Load LPIPS with AlexNet: a function of two (3, H, W) images of one size, 0 if they are equal.

    LPIPS (Zhang et al., 2018) is a learned distance; it needs the extra `lpips`.
    """
    lpips = load_extra("lpips", extra="lpips")
    from torchvision.models import AlexNet_Weights

    address = AlexNet_Weights.DEFAULT.url
    file = Path(torch.hub.get_dir(), "checkpoints", Path(address).name)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="torchvision")  # lpips uses a deprecated argument
            network = lpips.LPIPS(net="alex", verbose=False).to(default_device())
    except OSError as error:
        reason = getattr(error, "reason", error)
        raise HomingError(
            f"LPIPS needs AlexNet's weights, which could not be downloaded: {reason}; "
            f"download {address} on a connected machine and put it at {file}"
        ) from error
    except (RuntimeError, EOFError, UnpicklingError) as error:
        raise HomingError(f"AlexNet's weights, which LPIPS needs, are damaged; remove {file}") from error

    def distance(first: Tensor, second: Tensor) -> float:
        with torch.inference_mode():
            pair = (image[None].to(default_device()) for image in (first, second))
            return float(network(*pair, normalize=True))

    return distance
