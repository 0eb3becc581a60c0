"""The set "wild": frozen, and each edit does what its label says, exactly and differentiably."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from differentiable_views import as_views, load, seed
from PIL import Image
from torch import Tensor

from homing.edits import KINDS, WILD, Surroundings, Views, parse
from homing.edits._assets import DATA

GREEN = (0, 255, 0)
COPIES = json.loads(Path(__file__).with_name("wild_copies.json").read_text())


def green_share(image: Image.Image) -> float:
    """Share of the pixels that are green."""
    red, green, blue = np.asarray(image).astype(int).transpose(2, 0, 1)
    return float(((green > 200) & (red < 60) & (blue < 60)).mean())


@pytest.fixture(scope="module")
def surroundings(tmp_path_factory) -> Surroundings:
    """Two gray pictures."""
    folder = tmp_path_factory.mktemp("surroundings")
    for number, size in enumerate([(300, 200), (200, 300)]):
        Image.new("RGB", size, (90 + 40 * number,) * 3).save(folder / f"{number}.png")
    return Surroundings(tuple(sorted(folder.glob("*.png"))))


def test_the_set_is_frozen():
    """Figures of different versions are compared: another set gets another name."""
    assert hashlib.sha256((DATA / "wild.toml").read_bytes()).hexdigest() == (
        "da4faba616e3e22f5a46939b167796417203cd91f12dc367edc6bdd917402f39"
    )
    assert [edit.label for edit in WILD] == [
        "fragment-25",
        "fragment-10",
        "pasted-30",
        "page-35",
        "page-20",
        "collage-2",
        "collage-4",
        "screen",
        "sticker-0.33",
        "overlay-text",
        "filter",
        "thumbnail",
        "rotated-fragment-35",
    ]


def outline(label: str, number: int) -> dict[str, list[int]]:
    """Size, and 4 x 4 mean levels of gray, of a copy of a photo."""
    copy = parse(label)(load("china.jpg", 640, 427), seed=number)
    small = copy.convert("L").resize((4, 4), Image.Resampling.BOX)
    return {"size": list(copy.size), "gray": np.asarray(small).ravel().tolist()}


@pytest.mark.parametrize("label", [edit.label for edit in WILD])
def test_copies_are_frozen(label):
    """What the code holds besides the file: layouts, shares, and the order of random numbers."""
    for number, expected in enumerate(COPIES[label]):
        found = outline(label, number)
        assert found["size"] == expected["size"]
        # Versions of Pillow and PyTorch may round differently.
        assert np.abs(np.subtract(found["gray"], expected["gray"])).max() <= 3


@pytest.mark.parametrize("size", [(600, 400), (400, 600), (900, 300)])
@pytest.mark.parametrize("label", ["fragment-25", "fragment-10"])
def test_fragments_have_the_given_area_any_aspect_and_any_position(label, size):
    across, down = np.meshgrid(np.arange(size[0]), np.arange(size[1]))
    numbered = np.stack((across // 4, down // 4, 0 * across), axis=2).astype(np.uint8)
    copies = [parse(label)(Image.fromarray(numbered), seed=number) for number in range(60)]
    area = parse(label).strength / 100
    assert all(copy.width * copy.height == pytest.approx(area * size[0] * size[1], rel=0.02) for copy in copies)
    ratios = np.array([copy.width / copy.height for copy in copies]) * size[1] / size[0]
    assert ratios.min() < 0.7 and ratios.max() > 1.4 and ratios.min() > 0.48 and ratios.max() < 2.1
    corners = np.array([np.asarray(copy)[0, 0, :2] for copy in copies])
    assert (corners.min(axis=0) <= 0.1 * corners.max(axis=0)).all()
    assert len({copy.size for copy in copies}) > 20


def test_rotated_fragments_show_nothing_from_outside_the_photo():
    white = Image.new("RGB", (500, 300), "white")
    copies = [parse("rotated-fragment-35")(white, seed=number) for number in range(60)]
    assert all(np.asarray(copy)[1:-1, 1:-1].min() == 255 for copy in copies)
    areas = np.array([copy.width * copy.height for copy in copies]) / (500 * 300)
    assert areas.max() < 0.36 and areas.mean() > 0.25


@pytest.mark.parametrize(("label", "share"), [("pasted-30", 0.3), ("page-35", 0.35), ("page-20", 0.2)])
@pytest.mark.parametrize("size", [(400, 400), (450, 300), (300, 400)])
def test_the_photo_covers_the_given_share(label, share, size, surroundings):
    photo = Image.new("RGB", size, GREEN)
    shares = [green_share(parse(label)(photo, seed=number, surroundings=surroundings)) for number in range(12)]
    assert np.median(shares) == pytest.approx(share, abs=0.03)
    assert max(shares) < share + 0.03


@pytest.mark.parametrize("count", [2, 3, 4])
def test_a_collage_has_the_photo_once(count, surroundings):
    photo = Image.new("RGB", (400, 300), GREEN)
    shares = [
        green_share(parse(f"collage-{count}")(photo, seed=number, surroundings=surroundings)) for number in range(12)
    ]
    expected = {2: [0.5], 3: [0.25, 0.5], 4: [0.25]}[count]
    assert all(min(abs(share - one) for one in expected) < 0.08 for share in shares)


def test_surroundings_are_used_if_given_and_drawn_otherwise(surroundings):
    photo = load("flower.jpg")
    for edit in WILD:
        generated, given = edit(photo, seed=1), edit(photo, seed=1, surroundings=surroundings)
        assert (
            np.asarray(generated).shape != np.asarray(given).shape
            or bool((np.asarray(generated) != np.asarray(given)).any())
        ) == (edit.kind.takes_surroundings)
    assert {edit.name for edit in WILD if edit.kind.takes_surroundings} == {"pasted", "page", "collage", "screen"}


def test_a_thumbnail_is_small_and_a_sticker_has_its_side():
    assert max(parse("thumbnail")(load("china.jpg", 640, 427)).size) == 160
    photo = Image.new("RGB", (300, 200), GREEN)
    covered = [1 - green_share(parse("sticker-0.33")(photo, seed=number)) for number in range(40)]
    assert max(covered) <= (0.33 * 200) ** 2 / (300 * 200) + 0.01
    assert np.mean(covered) > 0.03


def shows(name: str, strength: float | None, ratio: float, number: int) -> tuple[Tensor, float]:
    """Where a differentiable edit shows the photo, and the ratio of the result."""
    ones = torch.ones(1, 3, 96, 96)
    kind, strengths = KINDS[name], None if strength is None else torch.tensor([float(strength)])
    pool = torch.full((2, 3, 96, 96), 0.5)
    black, white = (
        kind.edit_views(Views(level * ones, torch.tensor([ratio])), strengths, seed(number), pool) for level in (0, 1)
    )
    return (white.pixels - black.pixels)[0].amin(dim=0), white.ratio.item()


@pytest.mark.parametrize(
    ("name", "strength", "share"),
    [("pasted", 30, 0.3), ("page", 35, 0.35), ("page", 20, 0.2), ("collage", 2, 0.48), ("collage", 4, 0.24)],
)
def test_the_differentiable_edit_shows_the_photo_on_as_much(name, strength, share):
    covered = [shows(name, strength, 1.0, number)[0].mean().item() for number in range(12)]
    assert np.mean(covered) == pytest.approx(share, abs=0.04)


@pytest.mark.parametrize("ratio", [0.6, 1.7])
def test_a_pasted_photo_keeps_its_ratio(ratio):
    for number in range(6):
        visible, scene = shows("pasted", 30, ratio, number)
        rows, columns = (visible > 0.5).any(dim=1).sum(), (visible > 0.5).any(dim=0).sum()
        assert scene * columns / rows == pytest.approx(ratio, rel=0.1)


def test_differentiable_fragments_have_the_given_area_and_the_ratio_of_their_cut():
    ramp = ((torch.arange(96) + 0.5) / 96).expand(96, 96)
    many = Views(torch.stack((ramp, ramp.T, ramp)).expand(64, -1, -1, -1), torch.full((64,), 1.5))
    result = KINDS["fragment"].edit_views(many, torch.full((64,), 25.0), seed())
    # The outermost pixels are half a pixel inside.
    across = (result.pixels[:, 0, :, -1] - result.pixels[:, 0, :, 0]).mean(dim=1) * 96 / 95
    down = (result.pixels[:, 1, -1] - result.pixels[:, 1, 0]).mean(dim=1) * 96 / 95
    assert torch.allclose(across * down, torch.tensor(0.25), atol=0.01)
    assert torch.allclose(result.ratio, 1.5 * across / down, rtol=0.05)
    assert result.ratio.min() < 1.2 < 2.2 < result.ratio.max()


@pytest.mark.parametrize("name", ["filter", "screen"])
def test_random_looks_agree_on_average(name):
    image = load("china.jpg", 192, 192)
    exact = as_views(*(parse(name)(image, seed=number) for number in range(60))).pixels
    many = as_views(*[image] * 60)
    result = KINDS[name].edit_views(many, None, seed()).pixels
    assert (exact.mean(dim=0) - result.mean(dim=0)).abs().mean() < 0.06
    assert exact.std(dim=0).mean().item() == pytest.approx(result.std(dim=0).mean().item(), rel=0.25)


def test_labels_with_dashes_are_read():
    assert parse("rotated-fragment-35").name == "rotated-fragment"
    assert parse("overlay-text").strength is None
    assert parse("rotation--30").strength == -30
