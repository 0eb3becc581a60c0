"""Scores, compared with results by hand, SciPy and scikit-learn; published figures are complete."""

from collections.abc import Callable
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import norm
from sklearn.metrics import average_precision_score

from homing.bench.scores import (
    Interval,
    average_precision,
    detection_interval,
    ivf_failure,
    precision_recall,
    published,
    rank_of,
    recall_at,
    recall_at_false_match_rate,
    recall_intervals,
)
from homing.edits import PAPER
from homing.errors import HomingError

Searches = tuple[np.ndarray, np.ndarray, np.ndarray]
NOTHING = np.inf

# Four copies of references (of 7, 8, 9 and 6) and two negative queries; the last copy's reference is not returned.
IDS = np.array([[7, 1], [2, 8], [9, -1], [3, 4], [5, 7], [-1, -1]])
DISTANCES = np.array([[0.1, 0.6], [0.3, 0.4], [0.5, NOTHING], [0.7, 0.8], [0.2, 0.9], [NOTHING, NOTHING]])
OWN = np.array([7, 8, 9, 6, -1, -1])


@st.composite
def searches(draw: st.DrawFn) -> Searches:
    """Up to eight queries among six references, with many equal distances; the first query is positive."""
    queries, k = draw(st.integers(1, 8)), draw(st.integers(1, 4))
    ids = np.full((queries, k), -1)
    distances = np.full((queries, k), NOTHING)
    for row in range(queries):
        found = draw(st.lists(st.integers(0, 5), unique=True, max_size=k))
        ids[row, : len(found)] = found
        distances[row, : len(found)] = sorted(draw(st.integers(0, 4)) / 4 for _ in found)
    own = [draw(st.integers(0, 5)), *(draw(st.integers(-1, 5)) for _ in range(queries - 1))]
    return ids, distances, np.array(own)


def distinct(searches: Searches) -> Searches:
    """The searches with distinct distances."""
    ids, distances, own = searches
    return ids, distances + np.arange(ids.size).reshape(ids.shape) / 1000, own


def pair_by_pair(ids: np.ndarray, distances: np.ndarray, own: np.ndarray) -> float:
    """The µAP as in the challenge's script: pair by pair, wrong ones first at equal distance."""
    pairs = sorted(
        (distances[query, rank], ids[query, rank] == own[query])
        for query, rank in np.ndindex(ids.shape)
        if ids[query, rank] >= 0
    )
    right, total = 0, 0.0
    for number, (_, hit) in enumerate(pairs, start=1):
        right += hit
        total += right / number if hit else 0
    return total / sum(own >= 0)


def test_ranks_and_recall_by_hand() -> None:
    ranks = rank_of(IDS, OWN)
    assert ranks.tolist() == [0, 1, 0, -1, -1, -1]
    positive = ranks[OWN >= 0]
    assert recall_at(positive, 1) == 2 / 4
    assert recall_at(positive, 2) == 3 / 4


def test_missing_results_are_no_reference() -> None:
    assert rank_of(np.array([[-1, -1]]), np.array([-1])).tolist() == [-1]


def test_precision_and_recall_by_hand() -> None:
    # The pairs by distance, correct ones marked: 0.1* 0.2 0.3 0.4* 0.5* 0.6 0.7 0.8 0.9, with four positives.
    scores = precision_recall(IDS, DISTANCES, OWN)
    np.testing.assert_allclose(scores.thresholds, np.arange(1, 10) / 10)
    np.testing.assert_allclose(scores.precision, [1, 1 / 2, 1 / 3, 2 / 4, 3 / 5, 3 / 6, 3 / 7, 3 / 8, 3 / 9])
    np.testing.assert_allclose(scores.recall, np.array([1, 1, 1, 2, 3, 3, 3, 3, 3]) / 4)
    assert scores.average_precision == pytest.approx((1 + 2 / 4 + 3 / 5) / 4)


def test_pairs_of_equal_distance_are_accepted_together() -> None:
    ids, own = np.array([[0], [1], [2], [3]]), np.array([0, -1, 2, 3])
    scores = precision_recall(ids, np.array([[0.5], [0.5], [0.5], [0.2]]), own)
    assert scores.thresholds.tolist() == [0.2, 0.5]
    np.testing.assert_allclose(scores.precision, [1, 3 / 4])
    np.testing.assert_allclose(scores.recall, [1 / 3, 1])
    assert scores.average_precision == pytest.approx(1 / 3 * 1 + 2 / 3 * 3 / 4)


def test_the_average_precision_without_pairs_is_zero() -> None:
    scores = precision_recall(np.array([[-1]]), np.array([[0.0]]), np.array([4]))
    assert len(scores.thresholds) == 0
    assert scores.average_precision == 0


@settings(deadline=None)
@given(searches())
def test_the_average_precision_equals_the_challenges_without_ties(found: Searches) -> None:
    assert precision_recall(*distinct(found)).average_precision == pytest.approx(pair_by_pair(*distinct(found)))
    assert precision_recall(*found).average_precision >= pair_by_pair(*found) - 1e-12


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=1, max_size=20))
def test_the_average_precision_equals_that_of_scikit_learn(pairs: list[tuple[bool, int]]) -> None:
    right, distances = (np.array(each) for each in zip((True, 3), *pairs, strict=True))
    scores = precision_recall(np.zeros((len(right), 1), int), distances[:, None], np.where(right, 0, -1))
    assert scores.average_precision == pytest.approx(average_precision_score(right, -distances))


@settings(deadline=None)
@given(searches(), st.randoms(use_true_random=False))
def test_the_order_of_queries_does_not_matter(found: Searches, random) -> None:
    order = random.sample(range(len(found[0])), len(found[0]))
    one, other = precision_recall(*found), precision_recall(*(each[order] for each in found))
    np.testing.assert_array_equal(one.thresholds, other.thresholds)
    np.testing.assert_array_equal(one.precision, other.precision)
    np.testing.assert_array_equal(one.recall, other.recall)


@pytest.mark.parametrize(
    ("rate", "recall", "threshold"),
    [
        (0.0, 2 / 5, 0.2),  # none of four: only 0.1 and 0.15 are below the nearest of 0.2, 0.4, 0.4 and none
        (0.25, 3 / 5, 0.4),  # one of four
        (0.5, 3 / 5, 0.4),  # two of four: the two at 0.4 cannot be separated
        (0.74, 3 / 5, 0.4),
        (0.75, 4 / 5, NOTHING),  # three of four: all with a match; the nearest of the fifth copy is wrong
        (1.0, 4 / 5, NOTHING),
    ],
)
def test_recall_at_a_false_match_rate_by_hand(rate: float, recall: float, threshold: float) -> None:
    own = np.array([1, 2, 3, 4, 5, -1, -1, -1, -1])
    ids = np.array([1, 2, 3, 4, 9, 1, 2, 3, -1])[:, None]
    distances = np.array([0.1, 0.15, 0.3, 0.4, 0.05, 0.4, 0.2, 0.4, 0.0])[:, None]
    assert recall_at_false_match_rate(ids, distances, own, rate) == (recall, threshold)


def test_rates_are_exact_despite_floating_point() -> None:
    negatives = np.arange(100)
    ids = np.zeros((101, 1), int)
    distances = np.append(negatives, 28.5)[:, None]
    own = np.append(np.full(100, -1), 0)
    assert recall_at_false_match_rate(ids, distances, own, 0.29) == (1, 29)


@settings(deadline=None)
@given(searches(), st.floats(0, 1))
def test_the_threshold_is_the_largest_that_keeps_the_rate(found: Searches, rate: float) -> None:
    ids, distances, own = (np.concatenate([each, each[:1]]) for each in found)
    own[-1] = -1
    threshold = recall_at_false_match_rate(ids, distances, own, rate).threshold
    nearest = distances[own < 0, 0]
    assert np.mean(nearest < threshold) <= rate
    assert threshold == NOTHING or np.mean(nearest <= threshold) > rate


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan")])
def test_an_invalid_rate_is_refused(rate: float) -> None:
    with pytest.raises(HomingError, match="must be from 0 to 1, got"):
        recall_at_false_match_rate(IDS, DISTANCES, OWN, rate)


def test_a_false_match_rate_needs_negative_queries() -> None:
    with pytest.raises(HomingError, match="needs negative queries, got 4 queries"):
        recall_at_false_match_rate(IDS[:4], DISTANCES[:4], OWN[:4], 0.1)


@pytest.mark.parametrize(
    "score",
    [
        lambda: recall_at(np.array([], int), 1),
        lambda: precision_recall(IDS[4:], DISTANCES[4:], OWN[4:]),
        lambda: recall_at_false_match_rate(IDS[4:], DISTANCES[4:], OWN[4:], 0.1),
        lambda: recall_intervals(np.zeros((0, 14), bool)),
        lambda: ivf_failure(np.zeros(0, int), np.zeros((0, 14), int)),
    ],
)
def test_scores_need_a_positive_query(score: Callable[[], object]) -> None:
    with pytest.raises(HomingError, match="nothing to score"):
        score()


def copies(photos: int, edits: int = 14) -> np.ndarray:
    """Which copies are found, more of some photos than of others."""
    random = np.random.default_rng(5)
    return random.random((photos, edits)) < random.random((photos, 1))


@pytest.mark.parametrize("share", [0.8, 0.95])
@pytest.mark.parametrize(
    "correct", [copies(400), np.repeat(copies(400, 1), 14, axis=1)], ids=["photos that differ", "copies that do not"]
)
def test_the_bootstrap_draws_photos(correct: np.ndarray, share: float) -> None:
    by_edit, mean = recall_intervals(correct, rounds=20_000, share=share)
    # Central limit theorem: the deviation of the mean of P photos is that of one photo over √P, for any E.
    for shares, interval in [(correct.mean(axis=1), mean), *zip(correct.T, by_edit, strict=True)]:
        reach = norm.ppf((1 + share) / 2) * shares.std() / 400**0.5
        assert interval == pytest.approx((shares.mean() - reach, shares.mean() + reach), abs=0.1 * reach)


def test_all_edits_are_bootstrapped_with_the_same_photos() -> None:
    correct = copies(50, 1)
    (one,), mean = recall_intervals(correct)
    assert one == mean
    by_edit, mean = recall_intervals(np.concatenate([correct, correct, ~correct], axis=1))
    assert by_edit[:2] == [one, one]
    assert by_edit[2] == pytest.approx((1 - one.high, 1 - one.low))
    assert mean == pytest.approx(((1 + one.low) / 3, (1 + one.high) / 3))


def test_the_interval_of_equal_results_has_no_width() -> None:
    by_edit, mean = recall_intervals(np.tile([True, False, True], (7, 1)))
    assert by_edit == [(1, 1), (0, 0), (1, 1)]
    assert mean == (14 / 21, 14 / 21)


def test_more_photos_narrow_the_interval() -> None:
    correct = copies(50)
    few, many = (recall_intervals(each).mean for each in (correct, np.tile(correct, (16, 1))))
    assert few.low < many.low < correct.mean() < many.high < few.high
    assert (few.high - few.low) / (many.high - many.low) == pytest.approx(4, rel=0.25)


def test_intervals_are_reproducible() -> None:
    correct = copies(50)
    assert recall_intervals(correct) == recall_intervals(correct)
    assert recall_intervals(correct) != recall_intervals(correct, seed=1)
    assert recall_intervals(correct, rounds=10) != recall_intervals(correct)


def test_ivf_failure_is_the_share_of_copies_in_other_cells() -> None:
    originals = np.array([3, 5, 5, 0])
    cells = np.array([[3, 3, 0], [5, 3, 3], [5, 5, 0], [0, 1, 1]])
    assert ivf_failure(originals, cells).tolist() == [0, 2 / 4, 1]


@pytest.mark.parametrize("row", published()["table"], ids=lambda row: f"{row['index']} {row['probes']} {row['recipe']}")
def test_published_rows_are_complete(row) -> None:
    assert set(row["recall"]) == {edit.label for edit in PAPER}
    assert row["mean"] == pytest.approx(fmean(row["recall"].values()), abs=0.01)


def test_published_activation_is_never_worse_than_passive() -> None:
    table, indexes = published()["table"], published()["indexes"]
    passive = {(row["index"], row["probes"]): row["recall"] for row in table if row["recipe"] == "passive"}
    for row in table:
        if row["recipe"] in ("paper", "paper-eot"):
            before = passive[row["index"], row["probes"]]
            assert all(row["recall"][edit] >= before[edit] for edit in before)
    for before, after in zip(indexes[::2], indexes[1::2], strict=True):
        assert (before["index"], before["recipe"], after["recipe"]) == (after["index"], "passive", "paper")
        assert before["mean"] < after["mean"]
        assert before["average_precision"] < after["average_precision"]


def recall_at_a_tenth(*searches: np.ndarray) -> float:
    return recall_at_false_match_rate(*searches, 0.1).recall


@pytest.mark.parametrize("edits", [1, 3])
def test_intervals_of_detection_are_the_bootstrap_over_photos(edits: int) -> None:
    """Compared with a direct bootstrap: queries are repeated as often as their photo is sample."""
    rng = np.random.default_rng(1)
    photos, others, k = 12, 20, 4
    own = np.append(np.arange(photos), np.full(others, -1)).repeat(edits)
    ids = rng.integers(-1, 40, (len(own), k))
    distances = rng.integers(0, 30, ids.shape) / 30  # many ties
    mine = (own >= 0) & (rng.random(len(own)) < 0.7)
    ids[mine, 0], distances[mine, 0] = own[mine], distances[mine, 0] / 3
    means, recalls = [], []
    for _ in range(3000):
        sample = np.append(rng.integers(photos, size=photos), photos + rng.integers(others, size=others))
        rows = (sample[:, None] * edits + np.arange(edits)).ravel()
        means.append(precision_recall(ids[rows], distances[rows], own[rows]).average_precision)
        recalls.append(recall_at_false_match_rate(ids[rows], distances[rows], own[rows], 0.1).recall)
    found = detection_interval(average_precision, (ids, distances, own), edits, rounds=3000)
    assert found == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=0.02)
    assert found.low < precision_recall(ids, distances, own).average_precision < found.high
    found = detection_interval(recall_at_a_tenth, (ids, distances, own), edits, rounds=3000)
    assert found == pytest.approx(tuple(np.quantile(recalls, [0.025, 0.975])), abs=0.03)
    assert found.low < recall_at_false_match_rate(ids, distances, own, 0.1).recall < found.high


def test_the_interval_is_zero_if_nothing_is_found() -> None:
    own = np.array([0, 1, -1])
    found = detection_interval(average_precision, (np.full((3, 2), -1), np.full((3, 2), np.inf), own), 1)
    assert found == Interval(0, 0)
