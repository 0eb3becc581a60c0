"""Merging of query variants and reranking by full descriptors, compared with plain loops."""

import numpy as np
import pytest
from tests.conftest import descriptors, train

from homing.indexes import FaissIndex, full_distances, rerank
from homing.indexes.base import merge

VARIANTS = 4


@pytest.mark.parametrize("spec", ["IVF16,PQ4x6", "OPQ4,PQ4x6", "HNSW8,SQ8"])
@pytest.mark.parametrize("probes", [1, 16])
def test_each_reference_keeps_its_smallest_distance(spec: str, probes: int) -> None:
    book = train(spec)
    index = FaissIndex(book)
    index.add(book.encode(descriptors(500, 1)), np.arange(500))
    queries = descriptors(20 * VARIANTS, 2).view(20, VARIANTS, -1)
    distances, ids = index.search(queries, 6, probes)
    assert distances.shape == ids.shape == (20, 6)
    for i, query in enumerate(queries):
        best: dict[int, float] = {}
        for row, numbers in zip(*index.search(query, 6, probes), strict=True):
            for distance, number in zip(row.tolist(), numbers.tolist(), strict=True):
                if number >= 0:
                    best[number] = min(distance, best.get(number, np.inf))
        wanted = sorted(best.values())[:6]
        np.testing.assert_allclose(distances[i, : len(wanted)], wanted, rtol=1e-5)
        found = ids[i, : len(wanted)].tolist()
        assert len(set(found)) == len(found)
        assert [best[number] for number in found] == pytest.approx(wanted)


def test_short_result_lists_are_padded() -> None:
    distances = np.array([[[1.0, 9.0], [0.5, 9.0]], [[3.0, 9.0], [9.0, 9.0]]])
    ids = np.array([[[7, -1], [7, -1]], [[8, -1], [-1, -1]]])
    merged = merge(distances, ids)
    np.testing.assert_array_equal(merged[1], [[7, -1], [8, -1]])
    np.testing.assert_array_equal(merged[0][:, 0], [0.5, 3.0])


def test_reranking_uses_full_descriptors_where_available() -> None:
    queries, references = descriptors(10, 3).view(5, 2, -1).numpy(), descriptors(30, 4).numpy()
    ids = np.stack([np.random.default_rng(i).permutation(30)[:12] for i in range(5)])
    ids[4, 9:] = -1
    rough = np.sort(np.random.default_rng(9).uniform(1.0, 1.6, ids.shape), axis=1)
    with_one = {number for number in range(30) if number % 3}
    distances, order = rerank(
        queries,
        rough,
        ids,
        lambda wanted: {number: references[number][None] for number in with_one & set(wanted.tolist())},
    )
    for i in range(5):
        wanted = {
            number: min(np.linalg.norm(query - references[number]) for query in queries[i])
            if number in with_one
            else rough[i, column]
            for column, number in enumerate(ids[i].tolist())
            if number >= 0
        }
        ranked = sorted(wanted, key=wanted.__getitem__)
        assert [number for number in order[i].tolist() if number >= 0] == ranked
        kept = order[i] >= 0
        np.testing.assert_allclose(distances[i][kept], [wanted[number] for number in ranked], rtol=1e-5)


def test_the_nearest_of_several_descriptors_counts() -> None:
    queries, references = descriptors(6, 3).view(3, 2, -1).numpy(), descriptors(20, 4).numpy()
    ids = np.array([[3, 0, 4, -1], [1, 2, 3, 4], [-1, -1, -1, -1]])
    known = {number: references[4 * number : 4 * number + 1 + number] for number in range(4)}  # the last photo has none
    full, counts = full_distances(queries, ids, lambda wanted: {n: known[n] for n in known if n in wanted})
    for i, column in np.ndindex(ids.shape):
        own = known.get(int(ids[i, column]), np.empty((0, 32)))
        assert counts[i, column] == len(own)
        each = [np.linalg.norm(query - row) for query in queries[i] for row in own]
        assert full[i, column] == pytest.approx(min(each, default=np.inf), rel=1e-5)
