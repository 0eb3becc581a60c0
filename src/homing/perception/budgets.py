"""How far pixels may move, stated as a strength or as a PSNR to meet."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from homing.errors import HomingError
from homing.perception.jnd import LUMA, jnd_map

# Inverse to what each channel adds to luminance: blue may move most.
_CHANNELS = tuple(0.072 / share for share in LUMA)
# The paper's alpha counts in pixels divided by ImageNet's standard deviations; ours are in [0, 1].
_UNITS = (0.229, 0.224, 0.225)
# After the loop most of the change sits near its bound; this share of it is what a PSNR is first met with.
_TYPICAL = 0.8


@dataclass(frozen=True, kw_only=True)
class JND:
    """Pixels move in proportion to the just-noticeable-difference map.

    Give `psnr` (in dB; the strength is then found for each photo, on the file as written) or `alpha` (the paper's
    strength, 3 by default there; their network reads every fourth pixel or so, ours reads all, so that the same alpha
    costs some dB more here).
    """

    psnr: float | None = None
    alpha: float | None = None

    def __post_init__(self) -> None:
        if (self.psnr is None) == (self.alpha is None):
            raise HomingError(f"a budget takes either psnr or alpha, got psnr={self.psnr} and alpha={self.alpha}")
        if self.psnr is not None and not 20 <= self.psnr <= 80:
            raise HomingError(f"psnr must lie between 20 and 80 dB, got {self.psnr:g}")
        if self.alpha is not None and not 0 < self.alpha <= 100:
            raise HomingError(f"alpha must lie between 0 and 100, got {self.alpha:g}")

    def room(self, view: Tensor) -> Tensor:
        """How far each pixel of a (3, H, W) view may move either way, in [0, 1] units.

        (3, H, W); for a view without colour (1, H, W), all channels moving as one, so that grey stays grey.
        """
        shape = view.new_tensor([unit * share for unit, share in zip(_UNITS, _CHANNELS, strict=True)])
        if torch.equal(view[0], view[1]) and torch.equal(view[1], view[2]):
            shape = shape @ view.new_tensor(LUMA)[:, None]  # the same change of luminance
        shape = shape[:, None, None] * jnd_map(view[None])[0]
        return self._strength(shape) * shape

    def _strength(self, shape: Tensor) -> float:
        if self.alpha is not None:
            return self.alpha
        assert self.psnr is not None
        moved = math.sqrt(float(shape.square().mean()))
        return 10 ** (-self.psnr / 20) / (moved * _TYPICAL)

    def __str__(self) -> str:
        return f"JND at {self.psnr:g} dB" if self.psnr is not None else f"JND with alpha {self.alpha:g}"
