"""The just-noticeable-difference map: how large a change of each pixel the eye does not see.

Luminance adaptation and contrast masking (Chou & Li 1995, combined as Wu et al. 2017). Constants follow the authors of
Active Image Indexing, not the formula they printed: that one drops the +3 of the dark branch and so jumps at 127.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

LUMA = (0.299, 0.587, 0.114)
_BACKGROUND = [[1, 1, 1, 1, 1], [1, 2, 2, 2, 1], [1, 2, 0, 2, 1], [1, 2, 2, 2, 1], [1, 1, 1, 1, 1]]
_SOBEL = [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]
_FLOOR = 5.0  # of 255: in flat mid-tones the model alone would leave almost no room


def jnd_map(images: Tensor) -> Tensor:
    """The just noticeable luminance change of every pixel: (B, 3, H, W) in [0, 1] gives (B, 1, H, W) in [0, 1]."""
    luma = 255 * torch.einsum("bchw,c->bhw", images, images.new_tensor(LUMA))[:, None]
    background = _filter(luma, _BACKGROUND) / 32
    sobel = torch.tensor(_SOBEL)
    contrast = torch.hypot(_filter(luma, sobel.tolist()), _filter(luma, sobel.T.tolist()))

    dark = 17 * (1 - torch.sqrt(background.clamp(min=0) / 127)) + 3
    bright = 3 * (background - 127) / 128 + 3
    adaptation = torch.where(background < 127, dark, bright)
    masking = 0.117 * 16 * contrast**2.4 / (contrast**2 + 26**2)
    combined = adaptation + masking - 0.3 * torch.minimum(adaptation, masking)
    return combined.clamp(min=_FLOOR) / 255


def _filter(plane: Tensor, kernel: list[list[int]]) -> Tensor:
    """Correlate (B, 1, H, W) with a kernel; borders repeat, so that a frame is not taken for an edge."""
    weights = plane.new_tensor(kernel)[None, None]
    reach = weights.shape[-1] // 2
    return F.conv2d(F.pad(plane, (reach,) * 4, mode="replicate"), weights)
