"""Differentiable overlays and frames compared with the exact edits."""

import numpy as np
import pytest
import torch
from differentiable_views import SIDE, as_views, change, load, seed
from PIL import Image
from torch import Tensor

from homing.edits import KINDS, Edit, Views
from homing.edits.mixed import RANGES


def covered(black: Tensor, white: Tensor) -> float:
    """Fraction of a photo that is covered."""
    return 1 - (white - black).mean().item()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["text", "emoji"])
def test_overlays_cover_as_much_as_in_the_exact_edit(name):
    blanks = [Image.new("RGB", (2 * SIDE, 2 * SIDE), level) for level in ("black", "white")]
    low, high = RANGES[name]
    middle, shares = (low + high) / 2, []
    for half in (np.linspace(low, middle, 120), np.linspace(middle, high, 120)):
        edits = [Edit(name, strength) for strength in half]
        exact = covered(
            *(as_views(*(edit(blank, seed=number) for number, edit in enumerate(edits))).pixels for blank in blanks)
        )
        every = torch.from_numpy(half).float()
        shares.append(
            covered(*(KINDS[name].edit_views(as_views(*[blank] * 120), every, seed()).pixels for blank in blanks))
        )
        assert shares[-1] == pytest.approx(exact, rel=0.25)
    assert shares[1] > 1.5 * shares[0]


def window(name: str, ratio: float, number: int) -> tuple[Tensor, tuple[slice, slice], float]:
    """The result of a differentiable edit on a photo of a ratio, the part with the photo, and the result's ratio."""
    photo = as_views(load("china.jpg")).pixels
    canvases = torch.cat((photo, torch.zeros_like(photo), torch.ones_like(photo)))
    ratios = torch.tensor([ratio])
    seen, black, white = (
        KINDS[name].edit_views(Views(canvas[None], ratios), None, seed(number)).pixels[0] for canvas in canvases
    )
    shows = (white - black).amin(dim=0) > 0.99
    rows, columns = shows.any(dim=1).nonzero(), shows.any(dim=0).nonzero()
    box = slice(int(rows[0]), int(rows[-1]) + 1), slice(int(columns[0]), int(columns[-1]) + 1)
    return seen, box, KINDS[name].edit_views(Views(photo, ratios), None, seed(number)).ratio.item()


@pytest.mark.parametrize("ratio", [0.6, 1.0, 1.8])
@pytest.mark.parametrize("name", ["meme", "screenshot"])
def test_frames_contain_the_whole_photo(name, ratio):
    seen, (rows, columns), whole = window(name, ratio, number=3)
    inside = seen[:, rows, columns]
    height, width = inside.shape[1:]
    expected = np.asarray(load("china.jpg").resize((width, height), Image.Resampling.BILINEAR)) / 255
    assert np.corrcoef(inside.permute(1, 2, 0).flatten(), expected.flatten())[0, 1] > 0.97
    # The frame keeps the photo's ratio approximately.
    assert whole * width / height == pytest.approx(ratio, rel=0.25)


@pytest.mark.parametrize("name", ["meme", "screenshot"])
def test_frames_look_like_the_exact_edits(name):
    image = load("china.jpg", 2 * SIDE, 2 * SIDE)
    exact = as_views(*(Edit(name)(image, seed=number) for number in range(250)))
    result = KINDS[name].edit_views(as_views(*[image] * 250), None, seed())
    assert result.ratio.mean().item() == pytest.approx(exact.ratio.mean().item(), rel=0.1)
    averages = result.pixels.mean(dim=0), exact.pixels.mean(dim=0)
    assert np.corrcoef(averages[0].flatten(), averages[1].flatten())[0, 1] > 0.9
    assert change(as_views(image).pixels[0], averages[1]) > 3 * change(*averages)


def test_a_meme_has_a_white_bar_at_the_top():
    seen, (rows, columns), _ = window("meme", 1.0, number=0)
    bar = seen[:, : rows.start - 1]
    assert 8 < rows.start < 50 and rows.stop == SIDE and columns == slice(0, SIDE)
    assert (bar > 0.9).float().mean() > 0.5 and (bar < 0.5).float().mean() > 0.02
