"""Nearest pairs of photos, compared with NumPy sorting all pairs."""

import numpy as np
from tests.conftest import descriptors

from homing.codebooks.null_distribution import DistanceBlocks, nearest_pairs, pairwise_distances


def test_nearest_pairs_equal_those_of_numpy() -> None:
    rows = descriptors(1200, dim=8).numpy()  # more than one block
    distances = pairwise_distances(rows, rows)
    one, other = np.triu_indices(len(rows), 1)
    wanted = np.sort(distances[one, other])[:40]
    pairs = nearest_pairs(rows, 40)
    assert (pairs[:, 0] < pairs[:, 1]).all()
    np.testing.assert_allclose(distances[pairs[:, 0], pairs[:, 1]], wanted, atol=1e-6)


def test_fewer_pairs_than_requested() -> None:
    rows = descriptors(4, dim=8).numpy()
    assert sorted(map(tuple, nearest_pairs(rows, 300).tolist())) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


def test_related_pairs_are_excluded() -> None:
    rows = descriptors(700, dim=8).numpy()
    related = np.array([[3, 650], [10, 11]])
    blocks = DistanceBlocks(rows, rows, related)
    whole = np.concatenate(list(blocks))
    assert blocks.pairs == np.isfinite(whole).sum() == 700 * 699 - 4
    for one, other in related:
        assert np.isinf(whole[[one, other], [other, one]]).all()
    wanted = pairwise_distances(rows, rows)
    np.testing.assert_allclose(whole[np.isfinite(whole)], wanted[np.isfinite(whole)], atol=2e-3)
