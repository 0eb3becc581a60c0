"""Photos and views for the tests of the differentiable edits."""

from importlib import resources

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from homing.edits import Views

SIDE = 96


def load(name: str, width: int = SIDE, height: int = SIDE) -> Image.Image:
    path = resources.files("sklearn.datasets.images") / name
    with path.open("rb") as file:
        return Image.open(file).convert("RGB").resize((width, height), Image.Resampling.BILINEAR)


def as_views(*images: Image.Image) -> Views:
    """Views of these images, resized to squares."""
    squares = [np.array(image.resize((SIDE, SIDE), Image.Resampling.BILINEAR)) for image in images]
    pixels = torch.from_numpy(np.stack(squares)).permute(0, 3, 1, 2).float() / 255
    return Views(pixels, torch.tensor([image.width / image.height for image in images]))


def seed(number: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(number)


def change(first: Tensor, second: Tensor) -> float:
    """The mean absolute difference."""
    return (first - second).abs().mean().item()
