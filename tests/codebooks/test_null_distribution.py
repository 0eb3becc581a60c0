"""Null distributions, compared with all pairs in NumPy and with pairs that were not measured."""

import json

import numpy as np
import pytest
from safetensors.numpy import load as load_safetensors, save as save_safetensors
from scipy.stats import genpareto
from tests.conftest import descriptors, train

from homing._io.files import read_safetensors_metadata
from homing.codebooks import Codebook
from homing.codebooks.null_distribution import NO_PAIRS, NullDistribution, PairDistances, pairwise_distances
from homing.errors import CodebookError

DIM = 8


def pairs(rows: np.ndarray) -> np.ndarray:
    """The distances of all pairs, ascending."""
    return np.sort(pairwise_distances(rows, rows)[~np.eye(len(rows), dtype=bool)])


def test_the_curve_equals_that_of_all_pairs() -> None:
    rows = descriptors(600, dim=DIM).numpy()
    known, every = PairDistances.measure(rows, rows), pairs(rows)
    for share in (0.0005, 0.002, 0.02, 0.2, 0.9):
        assert known.cdf(np.array(every[int(share * len(every))])) == pytest.approx(share, rel=0.05)
    assert known.cdf(np.array(5.0)) == 1


@pytest.mark.parametrize("count", [2, 99, 100, 101, 102])
def test_few_photos_of_any_number_have_a_curve(count: int) -> None:
    rows = descriptors(count, dim=DIM).numpy()
    known, every = PairDistances.measure(rows, rows), pairs(rows)
    assert known.cdf(np.array(every[len(every) // 2])) == pytest.approx(0.5, abs=0.1 if count > 2 else 0.6)


def test_the_tail_extrapolates_to_pairs_nearer_than_any_measured() -> None:
    few, many = descriptors(600, seed=1, dim=64).numpy(), descriptors(4000, seed=2, dim=64).numpy()
    known, every = PairDistances.measure(few, few), pairs(many)
    for share in (1e-4, 1e-6):  # eighteen and none of 180,000 pairs
        assert 0.4 < known.cdf(np.array(every[int(share * len(every))])) / share < 4
    nearer = known.cdf(np.linspace(0, 1, 50))
    assert (np.diff(nearer) >= 0).all()
    assert nearer[0] > 0  # measurements cannot exclude such pairs


@pytest.mark.parametrize("shape", [-0.04, 0.0, 0.2])
def test_the_tail_is_a_generalized_pareto(shape: float) -> None:
    """Compared with pairs drawn from one, up to a decade beyond the nearest of them."""
    beyond = genpareto(shape, scale=0.05)
    sampled = 1.2 - beyond.rvs(20_000, random_state=1)
    shares = np.arange(1, len(sampled) + 1) / len(sampled)
    known = PairDistances(np.sort(sampled), shares, np.full(len(sampled), 1e6))
    for share in (1e-2, 1e-3, 1e-4, 1e-5):
        assert 0.5 < known.cdf(np.array(1.2 - beyond.isf(share))) / share < 2


def test_near_pairs_of_few_queries_raise_their_probabilities_only() -> None:
    """Half of all photos are in one cluster: each of them has a false match in the collection, the others have none."""
    rng = np.random.default_rng(0)

    def photos(count: int) -> np.ndarray:
        rows = rng.standard_normal((count, 64))
        rows[: count // 2] = 0.3 * rows[: count // 2] + rng.standard_normal(64) * 0
        rows[: count // 2, 0] += 5
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    known, queries, references = (photos(count) for count in (1000, 1000, 100))
    measured = PairDistances.measure(known, known)
    nearest = pairwise_distances(queries, rng.permutation(references)).min(axis=1)
    evenly = 1 - (1 - measured.cdf(nearest)) ** 100
    found = nearest <= np.quantile(nearest, 0.2)
    probability = measured.false_match_probability(nearest, 100)
    assert abs(probability[found].max() - 0.2) < abs(evenly[found].max() - 0.2)
    assert 0.1 < probability[found].max() < 0.4


def test_a_false_match_probability_grows_with_references_and_distance() -> None:
    rows = descriptors(600, dim=DIM).numpy()
    known = PairDistances.measure(rows, rows)
    far = np.linspace(0.01, 2, 100)
    assert (np.diff(known.false_match_probability(far, 100)) >= 0).all()
    assert (known.false_match_probability(far, 10) <= known.false_match_probability(far, 100)).all()
    np.testing.assert_allclose(
        known.false_match_probability(far[:5], 7), 7 * known.false_match_probability(far[:5], 1), rtol=1e-2
    )


def test_codes_and_descriptors_have_separate_distributions() -> None:
    book = train("IVF8,PQ4x4")
    known = book.null_distribution
    assert np.interp(0.5, known.descriptor.shares, known.descriptor.distances) == pytest.approx(2**0.5, rel=0.05)


def test_a_codebook_file_keeps_both_distributions() -> None:
    book = train("IVF8,PQ4x4")
    again = Codebook.from_bytes(book.to_bytes(), "again").null_distribution
    for ours, theirs in (
        (book.null_distribution.code, again.code),
        (book.null_distribution.descriptor, again.descriptor),
    ):
        np.testing.assert_array_equal(
            ours.false_match_probability(np.linspace(0, 2, 50), 9),
            theirs.false_match_probability(np.linspace(0, 2, 50), 9),
        )


def test_another_null_distribution_keeps_the_fingerprint() -> None:
    book = train("IVF8,PQ4x4")
    other = book.with_null_distribution(np.abs(descriptors(500, seed=7).numpy()))
    assert other.fingerprint == book.fingerprint
    assert other.null_distribution.code.cdf(np.array(0.9)) > 2 * book.null_distribution.code.cdf(np.array(0.9))


def similar_descriptors(count: int, seed: int) -> np.ndarray:
    """Descriptors in one direction, nearer to each other than random ones."""
    rows = descriptors(count, seed=seed).numpy()
    rows[:, 0] += 0.4
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("count", [100, 1000])
def test_the_density_ratio_of_similar_photos(count: int) -> None:
    known = train("IVF8,PQ4x4").null_distribution
    assert 1 <= known.density_ratio(descriptors(count, seed=5).numpy()) < 1.5
    density_ratio, every = (
        known.density_ratio(similar_descriptors(count, seed=5)),
        pairs(similar_descriptors(3000, seed=6)),
    )
    for share in (0.001, 0.01):
        more = known.descriptor.cdf(every[int(share * len(every))])
        assert 0.3 < density_ratio * more / share < 3
    assert known.density_ratio(similar_descriptors(99, seed=5)) == 1


def test_photos_of_one_series_hardly_change_the_density_ratio() -> None:
    rows = descriptors(900, seed=5).numpy()
    rows[100:] = rows[:100].repeat(8, axis=0)  # each nine times: one pair in 110
    assert train("IVF8,PQ4x4").null_distribution.density_ratio(rows) < 2


def test_a_false_match_probability_is_larger_among_similar_photos() -> None:
    known, distance = train("IVF8,PQ4x4").null_distribution, np.array(0.5)
    assert known.false_match_probability("descriptor", distance, 9, 5.0) == known.false_match_probability(
        "descriptor", distance, 45
    )
    assert known.false_match_probability("code", distance, 9, 5.0) == known.false_match_probability("code", distance, 9)


def test_related_photos_are_excluded() -> None:
    """Every photo has a copy. If the related pairs are excluded, distances are those without copies."""
    rows = descriptors(300, dim=DIM).numpy()
    copies = np.stack([np.arange(300), 300 + np.arange(300)], axis=1)
    quantizer = train("PQ4x4", dim=DIM).quantizer
    alone = NullDistribution.measure(quantizer, rows).descriptor
    with_related, without_related = (
        NullDistribution.measure(quantizer, np.concatenate([rows, rows]), related).descriptor
        for related in (copies, NO_PAIRS)
    )
    near = np.array(0.02)
    assert without_related.cdf(near) > 100 * with_related.cdf(near)
    for distance in (0.5, 1.0):
        assert with_related.cdf(np.array(distance)) == pytest.approx(alone.cdf(np.array(distance)), rel=0.2)


def test_pairs_with_the_same_code_are_counted() -> None:
    """With eight sign bits, some unrelated photos have the same code."""
    rows = np.where(descriptors(600, dim=DIM).numpy() > 0, 1, 0).astype(np.float32)
    known, every = PairDistances.measure(rows, rows), pairs(rows)
    for bits in range(4):
        seen = (every <= bits**0.5 + 1e-6).mean()
        assert known.cdf(np.array(bits**0.5)) == pytest.approx(seen, rel=0.25)  # mostly from a sample


def test_no_probability_is_zero_below_the_nearest_measured_pair() -> None:
    """Below the nearest pair the probability is positive, and larger if fewer pairs were measured."""
    for photos in (2, 40, 600):
        rows = descriptors(photos, dim=64).numpy()
        known = PairDistances.measure(rows, rows)
        for distance in (0, 0.01, 0.99 * known.distances[0]):
            assert 1e-4 / photos**2 < known.false_match_probability(np.array(distance), 1) < 1


@pytest.mark.parametrize(("row", "value"), [(0, np.inf), (1, 0), (1, 2), (2, 0), (2, np.nan)])
def test_damaged_distances_are_refused(row: int, value: float) -> None:
    data = train("IVF8,PQ4x4").to_bytes()
    about = json.dumps(read_safetensors_metadata(data, "homing.codebook"))
    tensors = {name: each.copy() for name, each in load_safetensors(data).items()}
    tensors["null_distribution.code"][row, -1] = value
    with pytest.raises(CodebookError, match="is damaged"):
        Codebook.from_bytes(save_safetensors(tensors, metadata={"homing.codebook": about}), "old")


def test_copies_have_a_low_false_match_probability_and_distractors_a_high_one(codebook: Codebook) -> None:
    """In a large collection, at the distances of copies and of unrelated photos."""
    known = codebook.null_distribution
    assert known.false_match_probability("descriptor", np.array(0.1), 100_000) < 1e-4
    assert known.false_match_probability("descriptor", np.array(0.6), 100_000) > 0.02


def test_a_single_photo_is_refused() -> None:
    with pytest.raises(CodebookError, match="needs at least two photos"):
        NullDistribution.measure(train("PQ4x4").quantizer, descriptors(1).numpy())
