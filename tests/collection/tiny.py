"""A tiny network, codebook and photos for fast tests."""

from __future__ import annotations

from functools import cache
from io import BytesIO
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn

from homing.activation import Recipe
from homing.codebooks import Codebook
from homing.extractors import NetworkExtractor, describe_images

SPEC = "IVF8,PQ12x4"
RECIPES = [Recipe(name=f"tiny-{steps}", summary="for tests", steps=steps, lr=1.0) for steps in (1, 2)]


@cache
def tiny_extractor() -> NetworkExtractor:
    """Photos scaled down to 6 × 6 pixels: 108 dimensions."""
    return NetworkExtractor(nn.AdaptiveAvgPool2d(6), name="tiny", size=48, device="cpu")


@cache
def tiny_codebook(spec: str = SPEC) -> Codebook:
    """A codebook trained on noise, like the photos."""
    noise = torch.rand(1000, 3, 6, 6, generator=torch.Generator().manual_seed(0))
    squares = nn.functional.interpolate(noise, (48, 48), mode="bicubic").clamp(0, 1)
    learned = describe_images(tiny_extractor(), list(squares)).numpy()
    return Codebook.train(learned, spec=spec, extractor=tiny_extractor(), name="tiny")


def tiny_photos(folder: Path, count: int, seed: int = 0) -> list[Path]:
    """Write smooth images of 64 × 48 pixels, alternating PNG and JPEG."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    paths = []
    for number in range(count):
        small = Image.fromarray(rng.integers(0, 256, (6, 6, 3), dtype=np.uint8))
        buffer = BytesIO()
        small.resize((64, 48), Image.Resampling.BICUBIC).save(buffer, "JPEG" if number % 2 else "PNG", quality=90)
        paths.append(folder / f"{number:04d}.{'jpg' if number % 2 else 'png'}")
        paths[-1].write_bytes(buffer.getvalue())
    return paths
