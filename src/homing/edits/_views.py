"""Views: photos as network inputs, and the linear maps that differentiable edits apply to them.

Homographies are in coordinates relative to the center: the left and top borders are at -1, the right and bottom ones at
1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor


@dataclass(frozen=True)
class Views:
    """Photos as network inputs: (B, 3, S, S) squares in [0, 1].

    `ratio` (B,) is each photo's width over its height before it was resized to a square.
    """

    pixels: Tensor
    ratio: Tensor

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, rows: slice | Tensor) -> Views:
        return Views(self.pixels[rows], self.ratio[rows])

    def repeat(self, times: int) -> Views:
        """Repeat the whole batch this many times."""
        return Views(self.pixels.repeat(times, 1, 1, 1), self.ratio.repeat(times))

    @property
    def side(self) -> int:
        """Side of the squares in pixels."""
        return self.pixels.shape[-1]


def edit_image(
    function: Callable[[Views, torch.Generator], Views], image: Image.Image, rng: np.random.Generator
) -> Image.Image:
    """Apply a differentiable edit that only changes values, and needs no square, to an image at its own size."""
    pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1)[None].float() / 255
    generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
    result = function(Views(pixels, torch.tensor([image.width / image.height])), generator).pixels
    return Image.fromarray((255 * result[0].clamp(0, 1)).round().byte().permute(1, 2, 0).numpy())


def apply_separable(pixels: Tensor, matrices: Tensor) -> Tensor:
    """Multiply the columns, then the rows, of (B, 3, S, S) by each photo's matrix of (B, S, S)."""
    for _ in range(2):
        # Stacked channels avoid a copy of the matrix per channel.
        pixels = (pixels.flatten(1, 2) @ matrices.mT).view(pixels.shape).mT
    return pixels


def warp(
    pixels: Tensor, homographies: Tensor, outside: Literal["zeros", "border"] = "zeros", samples: int = 1
) -> Tensor:
    """Warp (B, 3, S, S): each point takes its color from where the photo's (B, 3, 3) homography maps it.

    Outside the photo is black, or its border is repeated. Sampling is bilinear; where a photo shrinks by much more than
    two, each pixel is the mean of `samples` by `samples` points.
    """
    side = samples * pixels.shape[-1]
    ticks = (2 * torch.arange(side, device=pixels.device, dtype=pixels.dtype) + 1) / side - 1
    x, y = ticks[None, None, :], ticks[None, :, None]
    entries = homographies.to(pixels)[..., None, None]
    # Term by term: a matrix product may run in TF32, whose ten bits are off by a tenth of a pixel.
    across, down, depth = (entries[:, row, 0] * x + (entries[:, row, 1] * y + entries[:, row, 2]) for row in range(3))
    grid = torch.stack((across / depth, down / depth), dim=-1)
    warped = F.grid_sample(pixels, grid, mode="bilinear", padding_mode=outside, align_corners=False)
    return warped if samples == 1 else F.avg_pool2d(warped, samples)


def affine(xx: Tensor, xy: Tensor, x: Tensor, yx: Tensor, yy: Tensor, y: Tensor) -> Tensor:
    """Affine maps (B, 3, 3) from entries (B,): (X, Y) maps to (xx X + xy Y + x, yx X + yy Y + y)."""
    zero, one = torch.zeros_like(xx), torch.ones_like(xx)
    return torch.stack((xx, xy, x, yx, yy, y, zero, zero, one), dim=-1).view(-1, 3, 3)


def scaling(across: Tensor, down: Tensor) -> Tensor:
    """Scalings (B, 3, 3) about the center, from factors (B,)."""
    zero = torch.zeros_like(across)
    return affine(across, zero, zero, zero, down, zero)


def box_homographies(boxes: Tensor) -> Tensor:
    """Homographies (B, 3, 3) from boxes (B, 4), left, top, right and bottom in fractions of the sides.

    Each maps its box to the whole square.
    """
    left, top, right, bottom = (2 * boxes - 1).unbind(-1)
    across, down = 2 / (right - left), 2 / (bottom - top)
    zero = torch.zeros_like(left)
    return affine(across, zero, -across * (left + right) / 2, zero, down, -down * (top + bottom) / 2)


def paste(pixels: Tensor, onto: Tensor, windows: Tensor, cut: Tensor | None = None) -> Tensor:
    """Paste photos (B, 3, S, S) onto pictures of that shape.

    The homographies `windows` map each photo's window to the whole square, and `cut` maps the square to the part of the
    photo that is visible.
    """
    mask = warp(torch.ones_like(pixels[:, :1]), windows, samples=3)
    visible = warp(pixels, windows if cut is None else cut @ windows, outside="border", samples=3)
    return torch.lerp(onto, visible, mask)


def homographies_between(source: Tensor, target: Tensor) -> Tensor:
    """Homographies (B, 3, 3) that map four points (B, 4, 2) to four others."""
    (x, y), (u, v) = source.unbind(-1), target.unbind(-1)
    zero, one = torch.zeros_like(x), torch.ones_like(x)
    for_u = torch.stack((x, y, one, zero, zero, zero, -u * x, -u * y), dim=-1)
    for_v = torch.stack((zero, zero, zero, x, y, one, -v * x, -v * y), dim=-1)
    # `solve` would synchronize with the GPU to check for singular systems.
    entries, _ = torch.linalg.solve_ex(torch.cat((for_u, for_v), dim=1), torch.cat((u, v), dim=1))
    return torch.cat((entries, torch.ones_like(entries[:, :1])), dim=1).view(-1, 3, 3)
