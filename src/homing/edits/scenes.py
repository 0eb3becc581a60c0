"""Edits that put a photo into another picture: pasted, in a collage, on a screen that is photographed."""

from __future__ import annotations

import math

import numpy as np
import torch
from PIL import Image, ImageFilter, ImageOps
from torch import Tensor

from homing._tensors import cached_tensor
from homing.edits._registry import edit
from homing.edits._surroundings import Surroundings
from homing.edits._views import (
    Views,
    apply_separable,
    box_homographies,
    edit_image,
    homographies_between,
    paste,
    scaling,
)
from homing.edits._wild import WILD, normal, sample_parameter, sample_parameters, sample_ratio, sample_ratios, uniform
from homing.edits.pixel import gaussian_matrices
from homing.edits.spatial import find_homography

Box = tuple[float, float, float, float]
"""Left, top, right and bottom, in fractions of the sides."""

COLLAGES: dict[int, tuple[tuple[Box, ...], ...]] = {
    2: (((0, 0, 0.5, 1), (0.5, 0, 1, 1)), ((0, 0, 1, 0.5), (0, 0.5, 1, 1))),
    3: (
        ((0, 0, 0.5, 1), (0.5, 0, 1, 0.5), (0.5, 0.5, 1, 1)),
        ((0, 0, 1, 0.5), (0, 0.5, 0.5, 1), (0.5, 0.5, 1, 1)),
    ),
    4: (((0, 0, 0.5, 0.5), (0.5, 0, 1, 0.5), (0, 0.5, 0.5, 1), (0.5, 0.5, 1, 1)),),
}
"""Layouts of collages by the number of pictures."""


def _sides(ratio: float, long_side: int) -> tuple[int, int]:
    """Width and height of this ratio with this longer side."""
    return round(long_side * min(1.0, ratio)), round(long_side * min(1.0, 1 / ratio))


@edit("scene", bounds=(1, 100), whole=True)
def pasted(image: Image.Image, strength: int, rng: np.random.Generator, surroundings: Surroundings) -> Image.Image:
    """Paste the photo into another picture, on this percentage of its area or as much as fits."""
    settings = WILD["pasted"]
    scene = surroundings.pick(rng)
    scene = scene.resize(_sides(scene.width / scene.height, settings["long-side"]), Image.Resampling.BICUBIC)
    share = math.sqrt(strength / 100 * scene.width * scene.height / (image.width * image.height))
    share = min(share, scene.width / image.width, scene.height / image.height)
    size = max(1, round(share * image.width)), max(1, round(share * image.height))
    left, top = (round((whole - part) * rng.random()) for whole, part in zip(scene.size, size, strict=True))
    if rng.random() < settings["border-share"]:
        edge = max(2, min(size) // 50)
        scene.paste("white", (left - edge, top - edge, left + size[0] + edge, top + size[1] + edge))
    scene.paste(image.resize(size, Image.Resampling.BICUBIC, reducing_gap=3.0), (left, top))
    return scene


@pasted.differentiable
def _pasted(views: Views, strength: Tensor, generator: torch.Generator, surroundings: Tensor) -> Views:
    scenes, scene_ratio = _pick(views, surroundings, generator), (uniform(views, generator) * 1.2 - 0.6).exp()
    # In units of the scene's height.
    high = (strength / 100 * scene_ratio / views.ratio).sqrt()
    high = high.minimum(scene_ratio / views.ratio).clamp_max(1)
    across = high * views.ratio / scene_ratio
    left, top = (1 - across) * uniform(views, generator), (1 - high) * uniform(views, generator)
    window = box_homographies(torch.stack((left, top, left + across, top + high), dim=-1))
    return Views(paste(views.pixels, scenes, window), scene_ratio)


def _pick(views: Views, surroundings: Tensor, generator: torch.Generator) -> Tensor:
    """Random surroundings (B, 3, S, S)."""
    chosen = torch.randint(len(surroundings), (len(views),), generator=generator, device=views.pixels.device)
    return surroundings[chosen]


@edit("scene", bounds=(2, 4), whole=True)
def collage(image: Image.Image, strength: int, rng: np.random.Generator, surroundings: Surroundings) -> Image.Image:
    """Put the photo into a collage of this many pictures, each cut to its cell."""
    layouts = COLLAGES[strength]
    cells = layouts[int(rng.integers(len(layouts)))]
    own = int(rng.integers(len(cells)))
    left, top, right, bottom = cells[own]
    cell_ratio = image.width / image.height * sample_ratio(rng, "collage")
    width, height = _sides(cell_ratio * (bottom - top) / (right - left), WILD["collage"]["long-side"])
    gap = round(sample_parameter(rng, "collage", "gap") * max(width, height) / 2)
    result = Image.new(
        "RGB", (width, height), str(rng.choice(["white", "black", f"hsl({rng.integers(360)}, 30%, 80%)"]))
    )
    for number, (left, top, right, bottom) in enumerate(cells):
        corner = round(left * width) + gap, round(top * height) + gap
        size = max(2, round(right * width) - gap - corner[0]), max(2, round(bottom * height) - gap - corner[1])
        picture = image if number == own else surroundings.pick(rng)
        result.paste(ImageOps.fit(picture, size, Image.Resampling.BICUBIC), corner)
    return result


@cached_tensor
def _layouts(device: torch.device) -> Tensor:
    """Cells (3, 2, 4, 4) of two layouts for each number of pictures; a missing cell lies outside."""
    outside: Box = (2, 2, 3, 3)
    padded = [[[*cells, *(4 - len(cells)) * [outside]] for cells in (2 * layouts)[:2]] for layouts in COLLAGES.values()]
    return torch.tensor(padded, device=device, dtype=torch.float32)


@collage.differentiable
def _collage(views: Views, strength: Tensor, generator: torch.Generator, surroundings: Tensor) -> Views:
    count = strength.round().long().clamp(2, 4)
    layout = _layouts(views.pixels.device)[count - 2, (2 * uniform(views, generator)).long()].to(views.pixels)
    gap = sample_parameters(views, "collage", "gap", generator) / 2
    gaps = torch.stack((gap, gap, -gap, -gap), dim=-1)
    own = (uniform(views, generator) * count).long()
    rows = torch.arange(len(views), device=views.pixels.device)
    left, top, right, bottom = layout[rows, own].unbind(-1)
    cell_ratio = views.ratio * sample_ratios(views, "collage", generator)
    # The photo is cut to the ratio of its cell.
    cut = scaling((cell_ratio / views.ratio).clamp_max(1), (views.ratio / cell_ratio).clamp_max(1))
    result = uniform(views, generator).round()[:, None, None, None].expand_as(views.pixels)
    for number in range(4):
        window = box_homographies(layout[:, number] + gaps)
        other = _pick(views, surroundings, generator)
        mine = (own == number)[:, None, None]
        pixels = torch.where(mine[..., None], views.pixels, other)
        identity = torch.eye(3, device=window.device, dtype=window.dtype)
        result = paste(pixels, result, window, torch.where(mine, cut, identity))
    return Views(result, cell_ratio * (bottom - top) / (right - left))


@edit("scene")
def screen(image: Image.Image, rng: np.random.Generator, surroundings: Surroundings) -> Image.Image:
    """Photograph a screen that shows the photo: perspective, moire, glare, a color cast, noise."""
    generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
    one = Views(torch.zeros(1, 3, 1, 1), torch.tensor([image.width / image.height]))
    corners, scene_ratio = _screen_corners(one, generator)
    size = _sides(scene_ratio.item(), WILD["screen"]["long-side"])
    scene = ImageOps.fit(surroundings.pick(rng), size).filter(ImageFilter.GaussianBlur(max(size) / 100))
    edge = round(sample_parameter(rng, "screen", "bezel") * min(image.size))
    display = ImageOps.expand(image, edge, "#101010")
    if max(display.size) > 2 * max(size):
        display.thumbnail((2 * max(size), 2 * max(size)), Image.Resampling.BICUBIC)
    source = np.array([(0, 0), (1, 0), (1, 1), (0, 1)]) * display.size
    target = (corners[0].numpy().astype(float) + 1) / 2 * size
    coefficients = find_homography(target, source)
    mask = Image.new("L", display.size, 255).transform(size, Image.Transform.PERSPECTIVE, coefficients)
    warped = display.transform(size, Image.Transform.PERSPECTIVE, coefficients, Image.Resampling.BICUBIC)
    scene.paste(warped, mask=mask)
    blur = sample_parameter(rng, "screen", "blur") * max(size) / 1000
    return edit_image(_photograph, scene.filter(ImageFilter.GaussianBlur(blur)), rng)


@screen.differentiable
def _screen(views: Views, generator: torch.Generator, surroundings: Tensor) -> Views:
    corners, scene_ratio = _screen_corners(views, generator)
    scenes = apply_separable(
        _pick(views, surroundings, generator),
        gaussian_matrices(torch.full_like(views.ratio, views.side / 100), views.side),
    )
    square = torch.tensor([(-1, -1), (1, -1), (1, 1), (-1, 1)], device=corners.device, dtype=corners.dtype)
    window = homographies_between(corners, square.expand_as(corners))
    edge = 2 * sample_parameters(views, "screen", "bezel", generator)
    scenes = paste(torch.full_like(views.pixels, 16 / 255), scenes, window)
    # The bezel has the same width on all sides.
    inside = scaling(1 + edge / views.ratio.clamp_min(1), 1 + edge * views.ratio.clamp_max(1)) @ window
    display = paste(views.pixels, scenes, inside)
    sigma = sample_parameters(views, "screen", "blur", generator) * views.side / 1000
    display = apply_separable(display, gaussian_matrices(sigma, views.side))
    return Views(_photograph(Views(display, scene_ratio), generator).pixels, scene_ratio)


def _screen_corners(views: Views, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Corners (B, 4, 2) of a screen in a picture from (-1, -1) to (1, 1), and the picture's ratio (B,)."""
    settings = WILD["screen"]
    scene_ratio = views.ratio * (0.6 * uniform(views, generator) - 0.3).exp()
    relative = (views.ratio / scene_ratio).sqrt()
    share = sample_parameters(views, "screen", "area", generator).sqrt()
    half = torch.stack((share * relative, share / relative), dim=-1).clamp_max(0.94)  # of the width, of the height
    square = torch.tensor([(-1, -1), (1, -1), (1, 1), (-1, 1)], device=half.device, dtype=half.dtype)
    corners = square * half[:, None]
    angle = (settings["degrees"] * normal(views, generator=generator)).deg2rad()[:, None]
    cosine, sine = angle.cos(), angle.sin()
    x, y = corners[..., 0] * scene_ratio[:, None], corners[..., 1]
    corners = torch.stack(((cosine * x - sine * y) / scene_ratio[:, None], sine * x + cosine * y), dim=-1)
    center = (1 - half) * (2 * torch.stack((uniform(views, generator), uniform(views, generator)), dim=-1) - 1)
    offsets = (2 * settings["corners"] * normal(views, 4, 2, generator=generator)).clamp(-0.2, 0.2)
    return corners + center[:, None] + offsets, scene_ratio


def _photograph(views: Views, generator: torch.Generator) -> Views:
    """What a camera adds: stripes where its pixels meet the screen's, a reflection, a color cast, noise."""

    def value(key: str) -> Tensor:
        return sample_parameters(views, "screen", key, generator)[:, None, None]

    height, width = views.pixels.shape[-2:]
    down = torch.linspace(0, 1, height, device=views.pixels.device)[:, None]
    across = torch.linspace(0, 1, width, device=views.pixels.device)
    moire = torch.zeros_like(views.pixels[:, 0])
    for _ in range(2):
        angle = math.pi * uniform(views, generator)[:, None, None]
        waves = 2 * math.pi * 1000 / value("moire-period")
        bend = 0.05 * torch.sin(6 * (across + down) + 6 * angle)
        moire = moire + value("moire") * torch.sin(waves * (angle.cos() * across + angle.sin() * down + bend / 10))
    x, y = (uniform(views, generator)[:, None, None] for _ in range(2))
    distance = (across - x).square() + (down - y).square()
    glare = value("glare") * (-distance / (2 * value("glare-radius").square())).exp()
    gains = 1 + WILD["screen"]["cast"] * normal(views, 3, 1, 1, generator=generator)
    pixels = views.pixels.clamp(1e-3, 1) ** value("gamma")[:, None] * gains * (1 + moire[:, None])
    pixels = pixels + glare[:, None] * (1 - pixels)
    noise = value("noise")[:, None] * normal(views, *views.pixels.shape[1:], generator=generator)
    return Views(pixels + noise, views.ratio)
