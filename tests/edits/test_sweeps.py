"""The sweeps of the paper's appendix."""

from itertools import pairwise

import pytest

from homing.edits import KINDS, SWEEPS, parse

# First, last and step of each sweep in the paper's appendix; for blur, the taps of the kernel.
PAPERS = {
    "rotation": (-90, 90, 10),
    "crop": (0.1, 1.0, 0.1),
    "resize": (0.1, 1.0, 0.1),
    "jpeg": (10, 100, 10),
    "contrast": (0.5, 1.9, 0.1),
    "brightness": (0.5, 1.9, 0.1),
    "hue": (-0.5, 0.5, 0.1),
}


@pytest.mark.parametrize("family", PAPERS)
def test_a_sweep_goes_evenly_from_one_end_to_the_other(family: str) -> None:
    first, last, step = PAPERS[family]
    strengths = [edit.strength for edit in SWEEPS[family]]
    assert (strengths[0], strengths[-1]) == (first, last)
    steps = [high - low for low, high in pairwise(strengths)]
    assert steps == pytest.approx([step] * len(steps))


def test_blur_has_the_kernels_of_the_paper() -> None:
    taps = [(edit.strength - 0.35) / 0.15 for edit in SWEEPS["blur"]]
    assert taps == pytest.approx(range(3, 30, 2))


@pytest.mark.parametrize("family", SWEEPS)
def test_labels_are_short_and_read_back(family: str) -> None:
    assert family in KINDS
    assert len(set(SWEEPS[family])) == len(SWEEPS[family])
    for edit in SWEEPS[family]:
        assert edit.name == family
        assert parse(edit.label) == edit
        assert len(edit.label) <= len(f"{family}--0.5")
