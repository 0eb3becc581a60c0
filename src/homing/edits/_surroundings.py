"""Pictures around a photo in pages, collages and photos of screens: photos of a folder, or drawn ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch import Tensor

from homing._tensors import cached_tensor
from homing.edits._assets import draw_emoji

POOL = 64
"""Number of drawn pictures."""

SIDE = 256


@dataclass(frozen=True)
class Surroundings:
    """Files of pictures to choose from; without any, pictures are drawn."""

    files: Sequence[Path] = ()

    def pick(self, rng: np.random.Generator) -> Image.Image:
        """A random one of the files, in RGB, or a drawn picture."""
        if not self.files:
            return _generated()[int(rng.integers(POOL))]
        with Image.open(self.files[int(rng.integers(len(self.files)))]) as file:
            picture: Image.Image = file.convert("RGB")
        return picture


GENERATED = Surroundings()


@cached_tensor
def generated_pixels(side: int, device: torch.device) -> Tensor:
    """Drawn pictures (POOL, 3, side, side) in [0, 1]; deterministic."""
    pictures = [np.asarray(picture.resize((side, side), Image.Resampling.BICUBIC)) for picture in _generated()]
    return torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2).to(device).float() / 255


@cache
def _generated() -> list[Image.Image]:
    rng = np.random.default_rng(0)
    return [_draw_picture(rng) for _ in range(POOL)]


def _draw_picture(rng: np.random.Generator) -> Image.Image:
    """Clouds of color with shapes and emojis on them: varied and detailed, but no photo."""
    width, height = (SIDE, SIDE * 2 // 3) if rng.random() < 0.7 else (SIDE * 2 // 3, SIDE)
    clouds = np.zeros((height, width, 3), np.float32)
    for cells, weight in ((2, 0.5), (6, 0.3), (24, 0.2), (96, 0.1)):
        coarse = Image.fromarray(rng.integers(256, size=(cells, cells, 3), dtype=np.uint8))
        clouds += weight * np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC), np.float32)
    picture = Image.fromarray(clouds.clip(0, 255).astype(np.uint8))
    draw = ImageDraw.Draw(picture)
    for _ in range(int(rng.integers(3, 9))):
        left, top = rng.uniform(-0.2, 0.9, 2) * (width, height)
        right, bottom = (left, top) + rng.uniform(0.1, 0.5, 2) * (width, height)
        shape = draw.ellipse if rng.random() < 0.5 else draw.rectangle
        shape((left, top, right, bottom), fill=tuple(rng.integers(256, size=3).tolist()))
    emoji = draw_emoji(rng).resize((SIDE // 4, SIDE // 4), Image.Resampling.BICUBIC)
    picture.paste(emoji, (int(rng.integers(width - SIDE // 4)), int(rng.integers(height - SIDE // 4))), emoji)
    return picture
