"""Random edits for a batch."""

from collections import Counter

import numpy as np
import pytest
import torch

from homing.edits import KINDS
from homing.edits.differentiable import Views, random_edits
from homing.edits.differentiable.mixture import UNIFORM, _choose_edits, _strengths
from homing.edits.disc import COUNTS, RANGES as EDITS


def views(count: int) -> Views:
    return Views(torch.rand(count, 3, 64, 64), torch.linspace(0.5, 2, count))


def test_one_to_four_edits_of_different_families() -> None:
    chosen = _choose_edits(20_000, EDITS, np.random.default_rng(0), {"rotation": 3.0}, UNIFORM, COUNTS)
    counts = Counter((chosen != "").sum(axis=1).tolist())
    for number, share in enumerate(COUNTS, start=1):
        assert abs(counts[number] / 20_000 - share) < 0.01
    for column in chosen.T:
        assert len({KINDS[name].family for name in column if name}) == 1
    sampled = Counter(chosen.ravel().tolist())
    assert set(sampled) - {""} == set(EDITS)
    assert sampled["rotation"] > 2 * sampled["pad"]


def test_counts_set_the_number_of_edits() -> None:
    chosen = _choose_edits(1000, EDITS, np.random.default_rng(0), UNIFORM, UNIFORM, (0.0, 1.0))
    assert ((chosen != "").sum(axis=1) == 2).all()


def test_strengths_stay_in_their_range_and_half_the_rotations_are_quarter_turns() -> None:
    rng = np.random.default_rng(0)
    for name, span in EDITS.items():
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
    first, same, other = (random_edits(originals, EDITS, np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert torch.equal(first.pixels, same.pixels) and torch.equal(first.ratio, same.ratio)
    assert not torch.equal(first.pixels, other.pixels)
    assert torch.equal(originals.pixels, before)
    assert (first.pixels - originals.pixels).flatten(1).abs().sum(dim=1).gt(0).sum() >= 10
    assert float(first.pixels.min()) >= 0 and float(first.pixels.max()) <= 1


def test_a_gradient_reaches_every_photo() -> None:
    originals = views(16)
    originals.pixels.requires_grad_()
    random_edits(originals, EDITS, np.random.default_rng(3)).pixels.square().sum().backward()
    assert originals.pixels.grad is not None
    assert originals.pixels.grad.flatten(1).abs().sum(dim=1).gt(0).all()
