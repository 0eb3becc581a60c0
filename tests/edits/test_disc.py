"""The random edit follows the recipe of DISC."""

import numpy as np
import pytest

from homing.edits import KINDS, Edit, sample_edits
from homing.edits.disc import COUNTS, RANGES


@pytest.fixture(scope="module")
def sequences() -> list[tuple[Edit, ...]]:
    rng = np.random.default_rng(0)
    return [sample_edits(rng) for _ in range(2000)]


def test_edits_come_from_four_families():
    assert {KINDS[name].family for name in RANGES} == {"color", "overlay", "pixel", "spatial"}


def test_numbers_of_edits_have_the_stated_probabilities(sequences):
    lengths = np.bincount([len(sequence) for sequence in sequences], minlength=5) / len(sequences)
    assert lengths[0] == 0
    # Four standard deviations of a share of 2,000 draws are at most 0.045.
    assert lengths[1:] == pytest.approx(COUNTS, abs=0.045)


def test_no_family_is_sampled_twice(sequences):
    for sequence in sequences:
        families = [edit.kind.family for edit in sequence]
        assert len(set(families)) == len(families)


def test_crop_comes_first_and_palette_last(sequences):
    for sequence in sequences:
        names = [edit.name for edit in sequence]
        assert "fragment" not in names[1:]
        assert "palette" not in names[:-1]


def test_every_edit_is_drawn_over_its_whole_range(sequences):
    strengths: dict[str, list[float | None]] = {name: [] for name in RANGES}
    for edit in (edit for sequence in sequences for edit in sequence):
        strengths[edit.name].append(edit.strength)
    for name, span in RANGES.items():
        if span is None:
            assert set(strengths[name]) == {None}
            continue
        low, high = span
        slack = 0.1 * (high - low)
        assert low <= min(strengths[name]) <= low + slack
        assert high - slack <= max(strengths[name]) <= high
        assert np.mean(strengths[name]) == pytest.approx((low + high) / 2, abs=slack)


def test_families_are_drawn_evenly(sequences):
    last = [edit.kind.family for sequence in sequences for edit in sequence if len(sequence) == 1]
    _, counts = np.unique(last, return_counts=True)
    assert counts / len(last) == pytest.approx([0.25] * 4, abs=0.13)
