"""Templates: drawings that differentiable edits lay over or around photos.

The exact edits text, emoji, sticker, overlay-text, meme, screenshot and page draw on blank images once; their
differentiable versions composite these templates with photos.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from homing._tensors import cached_tensor
from homing.edits._registry import KINDS, Edit
from homing.edits._views import Views, box_homographies, warp
from homing.edits.mixed import RANGES as RANDOM_RANGES, Ranges

COUNT = 512
"""Number of templates of an edit: dozens nearly fit any photo and strength, too many for a network to memorize."""

COUNTS = {"page": 256}
"""Number of templates of an edit that takes longer to draw."""

SUPERSAMPLING = 2
"""Templates are drawn this many times larger than the views, because letters have a smallest size."""

RANGES: Ranges = {**RANDOM_RANGES, "sticker": (0.1, 0.6), "page": (10, 60)}
"""Strengths of the templates."""

MISFIT_TOLERANCE = 0.5
"""Largest misfit of a chosen template beyond that of the best fitting one, as a fraction of the range."""


@dataclass(frozen=True, kw_only=True)
class Templates:
    """N drawings at a network's input size, for photos of many ratios and, if the edit has strengths, rising ones."""

    color: Tensor
    """(N, 3, S, S): the drawing on black, as bytes to save memory."""

    transparency: Tensor
    """(N, 1, S, S): visibility of the photo, from 0 to 255."""

    window: Tensor
    """(N, 3, 3): homographies that map the photo into its window."""

    photo_ratio: Tensor
    """(N,): the ratio of the photo that the template is drawn for."""

    ratio: Tensor
    """(N,): the ratio of the whole drawing."""

    fraction: Tensor
    """(N,): the strength, from 0 at the lower end of its range to 1 at the upper one."""

    def choose(self, ratio: Tensor, fraction: Tensor | None, generator: torch.Generator) -> Tensor:
        """Index (B,) of a random template for each photo that nearly fits its ratio and strength."""
        misfit = (ratio.log()[:, None] - self.photo_ratio.log()).abs() / math.log(4)
        if fraction is not None:
            misfit = misfit + (fraction[:, None] - self.fraction).abs()
        noise = torch.rand(misfit.shape, generator=generator, device=misfit.device)
        return (misfit + MISFIT_TOLERANCE * noise).argmin(dim=1)

    def composite(self, number: Tensor, pixels: Tensor) -> Tensor:
        """Composite the photos (B, 3, S, S) with the templates of these indices (B,)."""
        return (pixels * self.transparency[number].to(pixels) + self.color[number].to(pixels)) / 255


def draw_over(name: str, views: Views, strength: Tensor | None, generator: torch.Generator) -> Views:
    """Draw over the photos, which stay in place."""
    templates = draw_templates(name, views.side, views.pixels.device)
    number = templates.choose(views.ratio, _fraction(name, strength), generator)
    return Views(templates.composite(number, views.pixels), views.ratio)


def draw_around(
    name: str, views: Views, strength: Tensor | None, generator: torch.Generator, samples: int = 1
) -> Views:
    """Draw around the photos, which are put into the window."""
    templates = draw_templates(name, views.side, views.pixels.device)
    number = templates.choose(views.ratio, _fraction(name, strength), generator)
    # `transparency` already fades at the window's border; black from outside would darken it twice.
    warped = warp(views.pixels, templates.window[number], outside="border", samples=samples)
    return Views(templates.composite(number, warped), templates.ratio[number])


def _fraction(name: str, strength: Tensor | None) -> Tensor | None:
    span = RANGES.get(name)
    if strength is None or span is None:
        return None
    return (strength - span[0]) / (span[1] - span[0])


@cached_tensor
def draw_templates(name: str, side: int, device: torch.device) -> Templates:
    """Templates of an edit for views of this side; deterministic."""
    rng = np.random.default_rng(0)
    span = RANGES.get(name)
    count = COUNTS.get(name, COUNT)
    photo_ratios = np.exp(rng.uniform(-math.log(2), math.log(2), count))
    fractions = np.linspace(0, 1, count)
    blacks, whites, boxes, ratios = [], [], [], []
    for number, (fit, fraction) in enumerate(zip(photo_ratios, fractions, strict=True)):
        edit = Edit(name, None if span is None else _strength(name, span[0] + fraction * (span[1] - span[0])))
        size = round(SUPERSAMPLING * side * math.sqrt(fit)), round(SUPERSAMPLING * side / math.sqrt(fit))
        black, white = (edit(Image.new("RGB", size, blank), seed=number) for blank in ("black", "white"))
        boxes.append(_find_window(black, white))
        ratios.append(black.width / black.height)
        blacks.append(_squash(black, side))
        whites.append(_squash(white, side))

    color = torch.stack(blacks)
    transparency = (torch.stack(whites).float() - color).mean(dim=1, keepdim=True).clamp_min(0).round().byte()
    return Templates(
        color=color.to(device),
        transparency=transparency.to(device),
        window=box_homographies(torch.tensor(boxes, dtype=torch.float32)).to(device),
        photo_ratio=torch.tensor(photo_ratios, dtype=torch.float32, device=device),
        ratio=torch.tensor(ratios, device=device),
        fraction=torch.tensor(fractions, dtype=torch.float32, device=device),
    )


def _strength(name: str, strength: float) -> float:
    return round(strength) if KINDS[name].whole else strength


def _squash(image: Image.Image, side: int) -> Tensor:
    small = np.array(image.resize((side, side), Image.Resampling.BILINEAR))
    return torch.from_numpy(small).permute(2, 0, 1)


def _find_window(black: Image.Image, white: Image.Image) -> tuple[float, ...]:
    """Left, top, right and bottom of the window: where black and white photos give different pixels."""
    shows = (np.asarray(black) != np.asarray(white)).any(axis=2)
    columns, rows = np.flatnonzero(shows.any(axis=0)), np.flatnonzero(shows.any(axis=1))
    right, bottom = columns[-1] + 1, rows[-1] + 1
    return columns[0] / black.width, rows[0] / black.height, right / black.width, bottom / black.height
