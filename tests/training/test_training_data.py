"""Training pairs."""

import numpy as np
import pytest
import torch

from homing.training.data import Pairs, PhotoArray
from homing.training.settings import DescriptorSettings

SQUARES = PhotoArray(np.random.default_rng(0).integers(0, 255, (90, 3, 64, 64), dtype=np.uint8), "", [])


@pytest.mark.slow
def test_weak_edits_change_a_share_of_the_originals_and_no_copy() -> None:
    plain, weak_aug = (
        Pairs(SQUARES, DescriptorSettings(training_size=64, pairs=60, weak_aug=share), torch.device("cpu"))
        for share in (0.0, 0.5)
    )
    squares = plain.pixels(0)
    before, after = plain.pairs(squares, 0), weak_aug.pairs(squares, 0)
    assert torch.equal(before.copies, after.copies)
    changed = (before.originals - after.originals).flatten(1).abs().amax(dim=1) > 0
    assert 15 <= int(changed.sum()) <= 45
    assert torch.equal(before.originals[~changed], after.originals[~changed])
