"""Random edits of images, which follow the recipe of DISC, and of batches."""

from collections import Counter

import numpy as np
import pytest
import torch

from homing.edits import KINDS, Edit, Views, random_edits, sample_edits
from homing.edits.mixed import COUNTS, RANGES, UNIFORM, _choose_edits, _strengths


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
        assert "part" not in names[1:]
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


def views(count: int) -> Views:
    return Views(torch.rand(count, 3, 64, 64), torch.linspace(0.5, 2, count))


def test_one_to_four_edits_of_different_families() -> None:
    chosen = _choose_edits(20_000, RANGES, np.random.default_rng(0), {"rotation": 3.0}, UNIFORM, COUNTS)
    counts = Counter((chosen != "").sum(axis=1).tolist())
    for number, share in enumerate(COUNTS, start=1):
        assert abs(counts[number] / 20_000 - share) < 0.01
    for column in chosen.T:
        assert len({KINDS[name].family for name in column if name}) == 1
    sampled = Counter(chosen.ravel().tolist())
    assert set(sampled) - {""} == set(RANGES)
    assert sampled["rotation"] > 2 * sampled["pad"]


def test_counts_set_the_number_of_edits() -> None:
    chosen = _choose_edits(1000, RANGES, np.random.default_rng(0), UNIFORM, UNIFORM, (0.0, 1.0))
    assert ((chosen != "").sum(axis=1) == 2).all()


def test_strengths_stay_in_their_range_and_half_the_rotations_are_quarter_turns() -> None:
    rng = np.random.default_rng(0)
    for name, span in RANGES.items():
        if span is not None:
            sampled = _strengths(name, span, 1000, rng)
            assert span[0] - 0.5 <= sampled.min() and sampled.max() <= span[1] + 0.5
            assert not KINDS[name].whole or (sampled == np.rint(sampled)).all()
    turns = _strengths("rotation", (-180, 180), 4000, rng)
    assert 0.45 < ((turns % 90 == 0) & (turns != 0)).mean() < 0.56
    assert 0 < np.abs(_strengths("rotation", (-20, 20), 1000, rng)).max() <= 20


@pytest.mark.slow
def test_the_same_numbers_give_the_same_copies_and_originals_stay() -> None:
    originals = views(12)
    before = originals.pixels.clone()
    first, same, other = (random_edits(originals, RANGES, np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert torch.equal(first.pixels, same.pixels) and torch.equal(first.ratio, same.ratio)
    assert not torch.equal(first.pixels, other.pixels)
    assert torch.equal(originals.pixels, before)
    assert (first.pixels - originals.pixels).flatten(1).abs().sum(dim=1).gt(0).sum() >= 10
    assert float(first.pixels.min()) >= 0 and float(first.pixels.max()) <= 1


def test_a_gradient_reaches_every_photo() -> None:
    originals = views(16)
    originals.pixels.requires_grad_()
    random_edits(originals, RANGES, np.random.default_rng(3)).pixels.square().sum().backward()
    assert originals.pixels.grad is not None
    assert originals.pixels.grad.flatten(1).abs().sum(dim=1).gt(0).all()
