"""The just-noticeable-difference map: how large a change of each pixel the eye does not see.

Luminance adaptation and contrast masking (Chou & Li 1995, combined as Wu et al. 2017). The authors of Active Image
Indexing printed other constants than they used: their formula drops the +3 of the dark branch and so jumps at 127.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

LUMA = (0.299, 0.587, 0.114)
_SOBEL = [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]


class Constants(NamedTuple):
    """What the two variants do not share; levels are of 255."""

    patch: list[list[int]]  # the weights of the pixels whose mean is the background
    dark: float  # room left where the dark branch ends
    masking: float  # how much texture hides
    floor: float  # the least room anywhere


USED = Constants(
    patch=[[1, 1, 1, 1, 1], [1, 2, 2, 2, 1], [1, 2, 0, 2, 1], [1, 2, 2, 2, 1], [1, 1, 1, 1, 1]],
    dark=3,
    masking=0.117,
    floor=5,  # in flat mid-tones the model alone would leave almost no room
)
# "The mean of a local patch" is all that is said of the background.
PRINTED = Constants(patch=[[1] * 5] * 5, dark=0, masking=0.115, floor=0)


def jnd_map(images: Tensor, constants: Constants = USED) -> Tensor:
    """The just noticeable luminance change of every pixel: (B, 3, H, W) in [0, 1] gives (B, 1, H, W) in [0, 1]."""
    luma = 255 * torch.einsum("bchw,c->bhw", images, images.new_tensor(LUMA))[:, None]
    background = _filter(luma, constants.patch) / sum(map(sum, constants.patch))
    sobel = torch.tensor(_SOBEL)
    contrast = torch.hypot(_filter(luma, sobel.tolist()), _filter(luma, sobel.T.tolist()))

    dark = 17 * (1 - torch.sqrt(background.clamp(min=0) / 127)) + constants.dark
    bright = 3 * (background - 127) / 128 + 3
    adaptation = torch.where(background < 127, dark, bright)
    masking = constants.masking * 16 * contrast**2.4 / (contrast**2 + 26**2)
    combined = adaptation + masking - 0.3 * torch.minimum(adaptation, masking)
    return combined.clamp(min=constants.floor) / 255


def _filter(plane: Tensor, kernel: list[list[int]]) -> Tensor:
    """Correlate (B, 1, H, W) with a kernel; borders repeat, so that a frame is not taken for an edge."""
    weights = plane.new_tensor(kernel)[None, None]
    reach = weights.shape[-1] // 2
    return F.conv2d(F.pad(plane, (reach,) * 4, mode="replicate"), weights)
