"""Helpers for tests of benches: the command, small photos, and a small network."""

from __future__ import annotations

import warnings
from importlib.resources import files
from io import BytesIO
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn
from typer.testing import CliRunner

from homing.cli import app
from homing.extractors import Extractor
from homing.imaging import to_image, to_pixels
from homing.photo import Photo

SOURCES = ("astronaut.png", "coffee.png", "chelsea.png", "rocket.jpg", "coins.png", "brick.png")


def homing(*arguments: object, code: int = 0) -> str:
    """The output of a command, which must end with this exit code."""
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == code, done.output
    return done.stdout


def skimage_photos(folder: Path, names: tuple[str, ...]) -> Path:
    """Write photos of skimage into a folder."""
    for name in names:
        folder.joinpath(name).write_bytes(files("skimage.data").joinpath(name).read_bytes())
    return folder


def small_network(folder: Path, side: int = 6) -> Path:
    """A TorchScript file of a network that scales photos down to 6 × 6 pixels: 108 dimensions; or to another side."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`torch.jit")  # deprecated, but what authors still publish
        scripted = torch.jit.script(nn.AdaptiveAvgPool2d(side))
    scripted.save(str(folder / "small.pt"))
    return folder / "small.pt"


def small_photos(folder: Path, names: list[str], seed: int) -> Path:
    """Random crops of photos of skimage, 144 × 108 pixels, as JPEG files of these names."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    for number, name in enumerate(names):
        data = files("skimage.data").joinpath(SOURCES[number % len(SOURCES)]).read_bytes()
        with Image.open(BytesIO(data)) as source:
            width, height = 144, 108
            left, top = (int(rng.integers(space)) for space in (source.width - width, source.height - height))
            crop = source.convert("RGB").crop((left, top, left + width, top + height))
        crop.save(folder / f"{name}.jpg", quality=95)
    return folder


def describe_file(extractor: Extractor, file: Path, edits: tuple = (), seed: int = 0) -> np.ndarray:
    """The descriptor (1, D) of a photo, or those (E, D) of its edited copies."""
    pixels = Photo.load(file).pixels()
    images = [to_pixels(edit(to_image(pixels), seed)) for edit in edits] or [pixels]
    with torch.inference_mode():
        return torch.cat([extractor(each[None]) for each in images]).numpy()
