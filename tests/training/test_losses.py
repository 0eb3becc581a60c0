"""Losses, compared with plain versions of the same formulas."""

import math

import numpy as np
import pytest
import torch
from tests.conftest import descriptors

from homing.training.losses import RunningCentroids, koleo, nt_xent


def plain_nt_xent(originals: np.ndarray, copies: np.ndarray, temperature: float, mixed: np.ndarray) -> float:
    """The definition of the loss, one descriptor at a time."""
    everything = np.concatenate([originals, copies])
    count, total = len(originals), 0.0
    for i, row in enumerate(everything):
        exponentials = {j: math.exp(row @ other / temperature) for j, other in enumerate(everything) if j != i}
        share = mixed[:, i] / mixed[:, i].sum() if i < count else mixed[i - count]
        offset = count if i < count else 0
        total -= sum(
            share[j] * math.log(exponentials[offset + j] / sum(exponentials.values())) for j in range(count) if share[j]
        )
    return total / (2 * count)


def test_nt_xent_equals_its_definition() -> None:
    originals, copies = descriptors(6, seed=1), descriptors(6, seed=2)
    expected = plain_nt_xent(originals.numpy(), copies.numpy(), 0.2, np.eye(6))
    assert float(nt_xent(originals, copies, 0.2)) == pytest.approx(expected, rel=1e-5)


def test_a_blend_counts_for_both_its_originals() -> None:
    originals, copies = descriptors(4, seed=1), descriptors(4, seed=2)
    own = torch.tensor([1.0, 0.6, 1.0, 0.7])
    mixed = np.array([[1, 0, 0, 0], [0, 0.6, 0.4, 0], [0, 0, 1, 0], [0.3, 0, 0, 0.7]])
    expected = plain_nt_xent(originals.numpy(), copies.numpy(), 0.2, mixed)
    assert float(nt_xent(originals, copies, 0.2, own)) == pytest.approx(expected, rel=1e-5)


def test_nt_xent_prefers_near_copies() -> None:
    originals, others = descriptors(8, seed=1), descriptors(8, seed=2)
    assert nt_xent(originals, originals, 0.1) < nt_xent(originals, others, 0.1) - 1


def test_koleo_is_the_log_of_the_nearest_distance_and_spreads() -> None:
    rows = descriptors(10).requires_grad_()
    plain = rows.detach().numpy()
    apart_from = lambda i: min(np.linalg.norm(plain[i] - plain[j]) for j in range(10) if j != i)  # noqa: E731
    nearest = [apart_from(i) for i in range(10)]
    loss = koleo(rows)
    assert loss.item() == pytest.approx(-np.mean(np.log(nearest)), rel=1e-5)
    loss.backward()
    apart = torch.nn.functional.normalize(rows.detach() - 0.5 * rows.grad, dim=1)
    assert koleo(apart).item() < loss.item()


def groups(count: int, seed: int) -> torch.Tensor:
    """Descriptors in three tight groups, (count, 32); the centers are the same for any seed."""
    centers = descriptors(3, seed=99)
    noise = 0.05 * descriptors(count, seed=seed)
    return torch.nn.functional.normalize(centers[torch.arange(count) % 3] + noise, dim=1)


def test_cells_follow_the_descriptors() -> None:
    cells = RunningCentroids(3, 32, torch.device("cpu"))
    for seed in range(30):
        cells.update(groups(60, seed))
    originals = groups(60, 100)
    same_cell = cells.loss(originals, originals)
    other_cell = cells.loss(originals, originals.roll(1, dims=0))  # every copy in the cell of another group
    assert same_cell < 0.01 < 1 < other_cell


def test_cells_are_restored_from_a_checkpoint() -> None:
    one, other = (RunningCentroids(4, 32, torch.device("cpu")) for _ in range(2))
    one.update(groups(60, 0))
    other.load_state_dict(one.state_dict())
    for cells in (one, other):
        cells.update(groups(60, 1))
    rows = groups(9, 2)
    assert torch.equal(one.loss(rows, rows), other.loss(rows, rows))
