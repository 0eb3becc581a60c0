"""Metrics of searches: recall and its intervals, precision, and cell failures; and the paper's own figures.

A search returns ids (Q, k) of the nearest references, nearest first and -1 if there are fewer, and their distances
(Q, k). `true_ids` (Q,) are the ids of the references that the queries are copies of; -1 for a negative query, a copy of
a photo that is not a reference.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from homing.errors import HomingError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PAPER_INDEX = "IVF4096,PQ8x8"  # the index of most published figures


class Interval(NamedTuple):
    """A confidence interval of a share."""

    low: float
    high: float


class RecallIntervals(NamedTuple):
    """Intervals of the recall of each edit, and of their mean."""

    by_edit: list[Interval]
    mean: Interval


class Spread(NamedTuple):
    """A mean over photos and its standard deviation; a format applies to both."""

    mean: float
    deviation: float

    def __format__(self, spec: str) -> str:
        return f"{self.mean:{spec}} ± {self.deviation:{spec}}"


class OperatingPoint(NamedTuple):
    """The recall if matches nearer than the threshold are accepted."""

    recall: float
    threshold: float


@dataclass(frozen=True, eq=False)
class PrecisionRecall:
    """Precision and recall (T,) if pairs up to each of T increasing thresholds are accepted."""

    thresholds: np.ndarray
    precision: np.ndarray
    recall: np.ndarray

    @property
    def average_precision(self) -> float:
        """The µAP over all queries: the precision at each threshold, weighted by the increase of the recall."""
        return float(self.precision @ np.diff(self.recall, prepend=0.0))

    def downsampled(self, points: int = 500) -> PrecisionRecall:
        """At most this many points of the curve, equally spaced along it, with both ends."""
        if len(self.thresholds) <= points:
            return self
        arc_length = np.append(0, np.hypot(np.diff(self.recall), np.diff(self.precision)).cumsum())
        indices = np.unique(np.searchsorted(arc_length, np.linspace(0, arc_length[-1], points - 1)))
        indices = np.union1d(indices, len(arc_length) - 1)
        return PrecisionRecall(self.thresholds[indices], self.precision[indices], self.recall[indices])


def spread(values: np.ndarray | Sequence[float]) -> Spread:
    """Mean and standard deviation of the values."""
    return Spread(float(np.mean(values, dtype=float)), float(np.std(values, dtype=float)))


def rank_of(ids: np.ndarray, true_ids: np.ndarray) -> np.ndarray:
    """The rank (Q,) of each query's reference, 0 for the nearest; -1 if not returned, or for a negative query."""
    hits = _hits(ids, true_ids)
    return np.where(hits.any(axis=1), hits.argmax(axis=1), -1)


def recall_at(ranks: np.ndarray, k: int) -> float:
    """The share of these ranks of positive queries that are among the k nearest."""
    _check_not_empty(len(ranks))
    return float(np.mean((ranks >= 0) & (ranks < k)))


def recall_intervals(correct: np.ndarray, *, seed: int = 0, rounds: int = 1000, share: float = 0.95) -> RecallIntervals:
    """Percentile bootstrap intervals of the recall, from a (P, E) array: whether each copy of P photos was found.

    Photos are sampled, not copies, since copies of one photo are not independent. The same photos are sampled for all
    edits, and for all arrays with the same number of photos.
    """
    photos, edits = correct.shape
    hits = _bootstrap_counts(photos, seed, rounds) @ correct.astype(float)
    by_edit = [_central_interval(column, share) for column in hits.T / photos]
    return RecallIntervals(by_edit, _central_interval(hits.sum(axis=1) / (photos * edits), share))


def recall_columns(labels: Sequence[str], correct: np.ndarray) -> dict[str, Any]:
    """The recall of a row of results.json by edit, and its mean, with intervals; from a (P, E) array as above."""
    _check_not_empty(len(correct))
    intervals = recall_intervals(correct)
    return {
        "recall": dict(zip(labels, correct.mean(axis=0).tolist(), strict=True)),
        "interval": dict(zip(labels, intervals.by_edit, strict=True)),
        "mean": float(correct.mean()),
        "mean_interval": intervals.mean,
    }


def gain_interval(before: np.ndarray, after: np.ndarray) -> Interval:
    """Percentile bootstrap interval of the gain in mean recall between two (P, E) arrays of the same photos."""
    photos, edits = after.shape
    gained = after.sum(axis=1, dtype=float) - before.sum(axis=1)
    return _central_interval(_bootstrap_counts(photos) @ gained / (photos * edits))


def precision_recall(ids: np.ndarray, distances: np.ndarray, true_ids: np.ndarray) -> PrecisionRecall:
    """Precision and recall of all returned pairs of query and reference, as in the Image Similarity Challenge 2021.

    The recall is relative to all positive queries, including those whose reference was not returned.
    """
    positives = int((true_ids >= 0).sum())
    _check_not_empty(positives)
    returned = ids >= 0
    # Pairs of equal distance are accepted together, so that the order of the queries does not matter. The challenge's
    # script takes wrong ones first: the same without ties, lower with them.
    thresholds, groups = np.unique(distances[returned], return_inverse=True)
    accepted = np.bincount(groups, minlength=len(thresholds)).cumsum()
    right = np.bincount(groups[_hits(ids, true_ids)[returned]], minlength=len(thresholds)).cumsum()
    return PrecisionRecall(thresholds, right / accepted, right / positives)


def average_precision(ids: np.ndarray, distances: np.ndarray, true_ids: np.ndarray) -> float:
    """The µAP over all queries."""
    return precision_recall(ids, distances, true_ids).average_precision


def detection_interval(
    score: Callable[[np.ndarray, np.ndarray, np.ndarray], float],
    searches: tuple[np.ndarray, np.ndarray, np.ndarray],
    edits: int,
    *,
    rounds: int = 200,
) -> Interval:
    """Percentile bootstrap interval of a score of ids, distances and `true_ids`.

    Photos are drawn, positive and negative ones separately. Queries are ordered by photo, positive photos first, each
    with `edits` consecutive queries.
    """
    positives, photos = int((searches[2] >= 0).sum()) // edits, len(searches[2]) // edits
    rng = np.random.default_rng(0)
    scores = []
    for _ in range(rounds):
        sampled = [rng.integers(positives, size=positives), rng.integers(positives, photos, size=photos - positives)]
        queries = (np.concatenate(sampled)[:, None] * edits + np.arange(edits)).ravel()
        scores.append(score(*(each[queries] for each in searches)))
    return _central_interval(scores)


def recall_at_false_match_rate(
    ids: np.ndarray, distances: np.ndarray, true_ids: np.ndarray, rate: float
) -> OperatingPoint:
    """The share of positive queries whose nearest match is correct and accepted, and the threshold.

    A match nearer than the threshold is accepted. The threshold is the largest at which at most this rate of the
    negative queries has an accepted match; infinite if all matches are accepted.
    """
    if not 0 <= rate <= 1:
        raise HomingError(f"the rate of false matches must be from 0 to 1, got {rate:g}")
    positive = true_ids >= 0
    _check_not_empty(int(positive.sum()))
    nearest = np.where(ids[:, 0] >= 0, distances[:, 0], np.inf)
    false = np.append(np.sort(nearest[~positive]), np.inf)
    negatives = len(false) - 1
    if not negatives:
        raise HomingError(
            f"a rate of false matches needs negative queries, got {len(true_ids)} queries, all of them of references; "
            "add queries of photos that are not references"
        )
    # Division of whole numbers, not multiplication: 0.29 × 100 < 29 in floating point.
    allowed = int((np.arange(1, negatives + 1) / negatives <= rate).sum())
    threshold = float(false[allowed])
    accepted = _hits(ids, true_ids)[:, 0] & (nearest < threshold)
    return OperatingPoint(float(accepted[positive].mean()), threshold)


def ivf_failure(cells_of_originals: np.ndarray, cells_of_copies: np.ndarray) -> np.ndarray:
    """The share (E,) of copies, in cells (P, E), that fall into another cell than their original, in cells (P,).

    This is the paper's p_f (section 4): with one probe the recall is at most 1 - p_f.
    """
    _check_not_empty(len(cells_of_originals))
    share: np.ndarray = (cells_of_copies != cells_of_originals[:, None]).mean(axis=0)
    return share


def _bootstrap_counts(photos: int, seed: int = 0, rounds: int = 1000) -> np.ndarray:
    """How often each of P photos is sampled in P draws: (rounds, P)."""
    _check_not_empty(photos)
    rng = np.random.default_rng(seed)
    draws = (rng.integers(photos, size=photos) for _ in range(rounds))
    return np.stack([np.bincount(draw, minlength=photos) for draw in draws]).astype(float)


def _central_interval(values: np.ndarray | Sequence[float], share: float = 0.95) -> Interval:
    """The interval that contains this share of the values, with equal tails."""
    low, high = np.quantile(values, [(1 - share) / 2, (1 + share) / 2])
    return Interval(float(low), float(high))


def _hits(ids: np.ndarray, true_ids: np.ndarray) -> np.ndarray:
    """Whether each (Q, k) returned reference is the correct one."""
    hits: np.ndarray = (ids == true_ids[:, None]) & (ids >= 0)
    return hits


def _check_not_empty(positives: int) -> None:
    if not positives:
        raise HomingError("nothing to score: expected at least one copy of a photo that is a reference, got none")


@cache
def published() -> dict[str, Any]:
    """The paper's figures by name; the recall of a row is by edit."""
    figures: dict[str, Any] = tomllib.loads(files("homing.bench").joinpath("paper.toml").read_text(encoding="utf-8"))
    for row in (*figures["table"], *figures["watermarks"]):
        row["recall"] = dict(zip(figures["edits"], row["recall"], strict=True))
    figures["quality"] = {name: Spread(*pair) for name, pair in figures["quality"].items()}
    return figures


def published_recall(row: Mapping[str, Any]) -> dict[str, str]:
    """The recall of a published row by edit, and its mean, as cells of a table."""
    return {**{label: f"{share:.2f}" for label, share in row["recall"].items()}, "mean": f"{row['mean']:.2f}"}


def published_gain(index: str, probes: int, recipe: str) -> tuple[float, float] | None:
    """The paper's mean recall for this index, passive and with a recipe, if it reports both.

    In the table of indexes, those with cells have one probe.
    """
    rows = [row for row in published()["table"] if row["probes"] == probes]
    if probes == 1 or not index.startswith("IVF"):
        rows += published()["indexes"]
    means = {row["recipe"]: row["mean"] for row in rows if row["index"] == index}
    return (means["passive"], means[recipe]) if recipe in means else None


def published_detection(index: str, probes: int | str, recipe: str, edits: Sequence[str]) -> str:
    """The paper's µAP with this index, or its factor over passive, if it reports it for these edits."""
    if list(edits) != ["random"] or probes == "exact" or (index.startswith("IVF") and probes != 1):
        return ""
    if (index, recipe) == (PAPER_INDEX, "paper"):
        return f"×{published()['average_precision_gain'][0]['gain']:.1f}"
    same = [row for row in published()["indexes"] if (row["index"], row["recipe"]) == (index, recipe)]
    return f"{same[0]['average_precision']:.2f}" if same else ""
