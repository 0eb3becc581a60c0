"""Properties of every registered edit; new edits are tested automatically."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from PIL import Image

from homing.edits import KINDS, PAPER, Edit, Kind


def edits_of(kind: Kind) -> list[Edit]:
    """The weakest, a middle and the strongest edit of a kind."""
    if kind.bounds is None:
        return [Edit(kind.name)]
    low, high = kind.bounds
    middle = (low + high) // 2 if kind.whole else (low + high) / 2
    return [Edit(kind.name, strength) for strength in (low, middle, high)]


def strengths(kind: Kind) -> st.SearchStrategy[float | None]:
    if kind.bounds is None:
        return st.none()
    return st.integers(*kind.bounds) if kind.whole else st.floats(*kind.bounds)


def noise(width: int, height: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(0).integers(256, size=(height, width, 3), dtype=np.uint8))


def is_sane(image: Image.Image) -> bool:
    return image.mode == "RGB" and min(image.size) >= 1 and np.asarray(image).dtype == np.uint8


every_edit = pytest.mark.parametrize(
    "edit", [edit for kind in KINDS.values() for edit in edits_of(kind)], ids=lambda edit: edit.label
)
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)


@every_edit
def test_same_seed_gives_the_same_pixels(edit):
    image = noise(48, 40)
    assert edit(image, seed=7) == edit(image, seed=7)


@every_kind
def test_random_edits_depend_on_the_seed(kind):
    edit = edits_of(kind)[len(edits_of(kind)) // 2]
    image = noise(48, 40)
    outcomes = {(result.size, result.tobytes()) for result in (edit(image, seed=seed) for seed in range(8))}
    assert (len(outcomes) > 1) == kind.random


@every_edit
def test_numpys_global_random_state_is_not_used(edit):
    image = noise(40, 40)
    state = np.random.get_state()[1].copy()
    edit(image)
    assert np.array_equal(np.random.get_state()[1], state)


@every_edit
def test_the_input_stays_untouched(edit):
    image = noise(40, 56)
    before = image.tobytes()
    result = edit(image)
    result.paste((1, 2, 3), (0, 0, *result.size))
    assert image.tobytes() == before


@every_edit
def test_metadata_is_ignored_and_dropped(edit):
    image, tagged = noise(40, 48), noise(40, 48)
    exif = Image.Exif()
    exif[0x0112] = 6  # orientation
    tagged.info = {"exif": exif.tobytes(), "transparency": (1, 2, 3), "icc_profile": b"none", "dpi": (72, 72)}
    result = edit(tagged)
    assert result.info == {}
    assert result == edit(image)
    assert "exif" in tagged.info


@pytest.mark.parametrize("kind", [kind for kind in KINDS.values() if kind.neutral is not None], ids=lambda k: k.name)
def test_neutral_strength_keeps_the_pixels(kind):
    image = noise(45, 37)
    low, high = kind.bounds
    assert low <= kind.neutral <= high
    assert Edit(kind.name, kind.neutral)(image) == image


@every_kind
@settings(max_examples=25, deadline=None)
@given(data=st.data(), width=st.integers(1, 90), height=st.integers(1, 90), seed=st.integers(0, 2**63))
def test_any_size_works_at_any_strength(kind, data, width, height, seed):
    edit = Edit(kind.name, data.draw(strengths(kind)))
    assert is_sane(edit(noise(width, height), seed=seed))


@every_edit
@pytest.mark.parametrize("size", [(32, 1500), (1500, 32)], ids=str)
def test_extreme_shapes_work(edit, size):
    assert is_sane(edit(noise(*size)))


@pytest.mark.parametrize("edit", PAPER, ids=lambda edit: edit.label)
def test_megapixels_work(edit):
    assert is_sane(edit(noise(2000, 1500)))
