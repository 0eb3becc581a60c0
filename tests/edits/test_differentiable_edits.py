"""Differentiable edits compared with exact edits."""

import inspect

import numpy as np
import pytest
import torch
from differentiable_views import SIDE, as_views, change, load, seed
from PIL import Image
from torch import Tensor

from homing.edits import KINDS, Edit, Views, parse
from homing.edits._views import homographies_between, warp
from homing.edits.spatial import find_homography

STRENGTHS = {
    "contrast": (0.5, 2.0),
    "brightness": (0.5, 1.6),
    "saturation": (0.3, 3.0),
    "hue": (-0.3, 0.2),
    "blur": (0.8, 4.0),
    "jpeg": (10, 60),
    "palette": (3, 12),
    "pixelate": (0.2, 0.37),
    "shuffle": (0.1, 0.3),
    "rotation": (-70, 25),
    "crop": (0.3, 0.5),
    "part": (0.3, 0.6),
    "resize": (0.1, 0.5),
    "aspect": (0.5, 2.0),
    "perspective": (30, 60),
    "text": (0.1, 0.3),
    "emoji": (0.4, 0.8),
}
"""Two strengths of an edit, both visible; other edits are tested at a quarter and at half of their range."""

NAMES = [name for name, kind in KINDS.items() if kind.views_function]
AGREEMENT = {
    "contrast": 0.005,
    "brightness": 0.005,
    "saturation": 0.005,
    "hue": 0.01,
    "grayscale": 0.005,
    "blur": 0.005,
    "jpeg": 0.01,
    "edges": 0.005,
    "pixelate": 0.005,
    "resize": 0.005,
    "flip": 0.001,
    "rotation-90": 0.001,
}
"""Largest mean difference of an edit, at one strength or at all, from the exact one; of others, 0.015."""

COMPARED = """
    contrast-0.5 contrast-2.0 brightness-0.5 brightness-1.6 saturation-0.3 saturation-3.0 hue-0.2 hue--0.3 grayscale
    blur-0.8 blur-4.0 blur-10.0 jpeg-5 jpeg-20 jpeg-60 edges pixelate-0.2 pixelate-0.37 rotation-90 rotation--25
    rotation-130 crop-0.5 resize-0.1 resize-0.5 flip
"""

every_differentiable_edit = pytest.mark.parametrize("name", NAMES)


def strengths_of(name: str) -> tuple[float, float] | None:
    if KINDS[name].bounds is None:
        return None
    low, high = KINDS[name].bounds
    quarter, half = (low + share * (high - low) for share in (0.25, 0.5))
    return STRENGTHS.get(name) or ((int(quarter), int(half)) if KINDS[name].whole else (quarter, half))


def two_strengths(name: str) -> Tensor | None:
    strengths = strengths_of(name)
    return None if strengths is None else torch.tensor(strengths, dtype=torch.float32)


def draws_numbers(name: str) -> bool:
    return "generator" in inspect.signature(KINDS[name].views_function).parameters


def edits_to_compare() -> list[Edit]:
    """Edits that give the same pixels for every seed; palette, aspect and pad are compared in tests of their own."""
    bundled = list(map(parse, COMPARED.split()))
    compared = {"identity", "palette", "aspect", "pad", *(edit.name for edit in bundled)}
    others = [name for name in NAMES if not KINDS[name].random and name not in compared]
    return [*bundled, *(Edit(name, strength) for name in others for strength in strengths_of(name) or (None,))]


@pytest.fixture(scope="module")
def views() -> Views:
    """A square flower and a temple in landscape format."""
    return as_views(load("flower.jpg"), load("china.jpg", 144, 96))


def test_every_edit_but_random_has_a_differentiable_version():
    assert set(NAMES) == set(KINDS) - {"random"}


@every_differentiable_edit
def test_views_stay_views(name, views):
    before = views.pixels.clone(), views.ratio.clone()
    result = KINDS[name].edit_views(views, two_strengths(name), seed())
    assert torch.equal(views.pixels, before[0]) and torch.equal(views.ratio, before[1])
    assert result.pixels.shape == views.pixels.shape and result.ratio.shape == views.ratio.shape
    assert result.pixels.dtype == views.pixels.dtype
    assert result.pixels.min() >= 0 and result.pixels.max() <= 1
    assert (result.ratio > 0).all()
    if name not in ("identity", "aspect"):
        # Both views change, except the square one under `pad`.
        assert all(change(*pair) > 0.001 for pair in zip(result.pixels, views.pixels, strict=True)) or name == "pad"


@every_differentiable_edit
def test_same_seed_same_views(name, views):
    edit, strength = KINDS[name].edit_views, two_strengths(name)
    first, again, other = (edit(views, strength, seed(number)) for number in (1, 1, 2))
    assert torch.equal(first.pixels, again.pixels) and torch.equal(first.ratio, again.ratio)
    assert torch.equal(first.pixels, other.pixels) != draws_numbers(name)


@pytest.mark.parametrize("name", [name for name in NAMES if not draws_numbers(name)])
def test_a_batch_equals_its_photos_one_by_one(name, views):
    strength = two_strengths(name)
    together = KINDS[name].edit_views(views, strength, seed())
    for row in (slice(0, 1), slice(1, 2)):
        alone = KINDS[name].edit_views(views[row], None if strength is None else strength[row], seed())
        assert torch.allclose(alone.pixels, together.pixels[row], atol=1e-4)
        assert torch.equal(alone.ratio, together.ratio[row])


@every_differentiable_edit
def test_a_gradient_reaches_the_pixels(name, views):
    pixels = views.pixels.clone().requires_grad_()
    result = KINDS[name].edit_views(Views(pixels, views.ratio), two_strengths(name), seed())
    result.pixels.square().sum().backward()
    assert pixels.grad is not None and pixels.grad.isfinite().all()
    assert (pixels.grad.abs().amax(dim=(1, 2, 3)) > 0).all()


def test_tensors_cached_in_inference_mode_work_with_gradients():
    views = as_views(load("flower.jpg").resize((48, 48)))
    views = Views(views.pixels[..., :48, :48], views.ratio)
    for name in ("jpeg", "perspective", "meme"):
        strength = None if name == "meme" else torch.tensor([40.0])
        with torch.inference_mode():
            KINDS[name].edit_views(views, strength, seed())
        pixels = views.pixels.clone().requires_grad_()
        KINDS[name].edit_views(Views(pixels, views.ratio), strength, seed()).pixels.sum().backward()


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.neutral is not None])
def test_the_neutral_strength_changes_nothing(name, views):
    result = KINDS[name].edit_views(views, torch.full((2,), float(KINDS[name].neutral)), seed())
    assert (result.pixels - views.pixels).abs().max() < 1e-4
    assert torch.allclose(result.ratio, views.ratio)


@pytest.mark.parametrize("photo", ["flower.jpg", "china.jpg"])
@pytest.mark.parametrize("edit", edits_to_compare(), ids=lambda edit: edit.label)
def test_differentiable_edits_agree_with_the_exact_edits(photo, edit):
    image = load(photo)
    before, exact = as_views(image), as_views(edit(image))
    strength = None if edit.strength is None else torch.tensor([float(edit.strength)])
    result = edit.kind.edit_views(before, strength, seed())
    difference = change(result.pixels, exact.pixels)
    assert difference < AGREEMENT.get(edit.label, AGREEMENT.get(edit.name, 0.015))
    assert difference < 0.3 * change(before.pixels, exact.pixels)


def test_jpeg_pads_blocks_as_libjpeg_does():
    image = load("china.jpg").crop((0, 0, SIDE - 6, SIDE - 6))
    before, exact = (
        torch.from_numpy(np.array(each)).permute(2, 0, 1)[None].float() / 255
        for each in (image, parse("jpeg-20")(image))
    )
    result = KINDS["jpeg"].edit_views(Views(before, torch.ones(1)), torch.tensor([20.0]), seed())
    assert result.pixels.shape == before.shape
    for part in (slice(None), slice(-12, None)):  # the whole photo, and the padded blocks
        difference = change(result.pixels[..., part, part], exact[..., part, part])
        assert difference < 0.01
        assert difference < 0.3 * change(before[..., part, part], exact[..., part, part])


@pytest.mark.parametrize("size", [(192, 96), (72, 120)])
@pytest.mark.parametrize("label", ["rotation-25", "rotation--90", "rotation-160", "pad", "aspect-0.7"])
def test_edits_agree_on_photos_that_are_not_square(label, size):
    # Four times larger than the views, so that rounding of the exact edit's canvas is small.
    image = load("china.jpg", 4 * size[0], 4 * size[1])
    before, edit = as_views(image), parse(label)
    exact = as_views(edit(image))
    strength = None if edit.strength is None else torch.tensor([float(edit.strength)])
    result = KINDS[edit.name].edit_views(before, strength, seed())
    assert change(result.pixels, exact.pixels) < 0.02
    assert torch.allclose(result.ratio, exact.ratio, rtol=0.02)
    assert abs(result.ratio.log() - before.ratio.log()) > 0.1


def test_aspect_changes_only_the_ratio(views):
    result = KINDS["aspect"].edit_views(views, torch.tensor([0.5, 2.0]), seed())
    assert torch.equal(result.pixels, views.pixels)
    assert result.ratio.tolist() == [0.5, 2.0]


@pytest.mark.parametrize("count", [2, 5, 16])
def test_palette_is_as_accurate_as_the_exact_edit(count):
    image = load("china.jpg")
    before = as_views(image)
    exact = as_views(Edit("palette", count)(image)).pixels
    result = KINDS["palette"].edit_views(before, torch.tensor([float(count)]), seed()).pixels
    # Straight-through sums may differ in the last bit.
    assert len((255 * result).round().flatten(2)[0].T.unique(dim=0)) <= count
    assert change(result, before.pixels) < 1.1 * change(exact, before.pixels)


def test_shuffle_moves_the_given_fraction_and_adds_no_colors():
    numbered = torch.linspace(0, 1, SIDE**2).view(1, 1, SIDE, SIDE).repeat(2, 3, 1, 1)
    result = KINDS["shuffle"].edit_views(Views(numbered, torch.ones(2)), torch.tensor([0.1, 0.3]), seed()).pixels
    displaced = (result != numbered).float().mean(dim=(1, 2, 3))
    assert displaced.tolist() == pytest.approx([0.1, 0.3], abs=0.02)
    assert torch.isin(result, numbered).all()
    assert torch.equal(result[:, 0], result[:, 1])


def test_fragments_have_the_given_side_and_random_positions():
    ramp = ((torch.arange(SIDE) + 0.5) / SIDE).expand(SIDE, SIDE)
    position = torch.stack((ramp, ramp.T, ramp))
    many = Views(position.expand(64, -1, -1, -1), torch.ones(64))
    result = KINDS["part"].edit_views(many, torch.full((64,), 0.4), seed()).pixels
    left, right = result[:, 0, :, 0].mean(dim=1), result[:, 0, :, -1].mean(dim=1)
    top, bottom = result[:, 1, 0].mean(dim=1), result[:, 1, -1].mean(dim=1)
    assert torch.allclose(right - left, torch.tensor(0.4), atol=0.01)
    assert torch.allclose(bottom - top, torch.tensor(0.4), atol=0.01)
    for start in (left, top):
        assert start.min() < 0.06 and start.max() > 0.54
    assert abs(np.corrcoef(left, top)[0, 1]) < 0.4


def test_homographies_equal_those_of_the_exact_edit():
    image = load("china.jpg")
    corners = np.array([(0, 0), (1, 0), (1, 1), (0, 1)], dtype=float)
    displaced = corners + np.array([(0.1, 0.05), (-0.2, 0.12), (0.03, -0.1), (-0.05, -0.2)])
    exact = image.transform(
        image.size,
        Image.Transform.PERSPECTIVE,
        find_homography(displaced * SIDE, corners * SIDE),
        Image.Resampling.BILINEAR,
    )
    source, target = (torch.tensor(2 * points - 1, dtype=torch.float32)[None] for points in (displaced, corners))
    before = as_views(image).pixels
    assert change(warp(before, homographies_between(source, target)), as_views(exact).pixels) < 0.01
    assert change(before, as_views(exact).pixels) > 0.1


@pytest.mark.parametrize("strength", [30, 60])
def test_perspective_moves_corners_as_far_as_the_exact_edit(strength):
    white = Image.new("RGB", (SIDE, SIDE), "white")
    exact = as_views(*(Edit("perspective", strength)(white, seed=number) for number in range(200))).pixels
    result = (
        KINDS["perspective"].edit_views(as_views(*[white] * 200), torch.full((200,), float(strength)), seed()).pixels
    )
    assert 1 - result.mean().item() == pytest.approx(1 - exact.mean().item(), rel=0.2)
