"""Verdicts and other properties of search results."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given, strategies as st

from homing.collection import Collection, Match, SearchResult, SearchSettings, verdict_of

SETTINGS = SearchSettings(references=3, cells=8, probes=2, probe_radius=None, rerank=0)


def match(probability: float, state: str = "passive") -> Match:
    return Match(photo=f"/{probability}.jpg", distance=0.1, state=state, id=1, false_match_probability=probability)


@pytest.mark.parametrize(
    ("probability", "verdict"),
    [(0.0, "match"), (1e-3, "match"), (1.1e-3, "possible"), (0.3, "possible"), (0.31, "none"), (1.0, "none")],
)
def test_the_verdict_follows_from_the_false_match_probability(probability: float, verdict: str) -> None:
    assert verdict_of(probability) == match(probability).verdict == verdict
    assert SearchResult(matches=(match(probability),), settings=SETTINGS).verdict == verdict


def test_a_distractor_is_never_the_best_match() -> None:
    distractor, reference = match(1e-9, "distractor"), match(0.2)
    assert distractor.verdict == "none"
    alone = SearchResult(matches=(distractor,), settings=SETTINGS)
    assert (alone.best, alone.verdict, len(alone)) == (None, "none", 1)
    both = SearchResult(matches=(distractor, reference), settings=SETTINGS)
    assert (both.best, both.verdict) == (reference, "possible")


def test_a_search_without_matches_has_the_verdict_none() -> None:
    nothing = SearchResult(matches=(), settings=SETTINGS)
    assert (nothing.best, nothing.verdict, list(nothing), bool(nothing)) == (None, "none", [], False)


@given(st.lists(st.floats(0, 1), max_size=20))
def test_a_result_is_a_sequence_of_its_matches(probabilities: list[float]) -> None:
    matches = [match(each) for each in probabilities]
    result = SearchResult(matches=tuple(matches), settings=SETTINGS, query="beach.jpg")
    assert list(result) == result[:] == matches
    assert len(result) == len(matches)
    assert [result[position] for position in range(len(result))] == matches
    with pytest.raises(IndexError):
        result[len(matches)]


def test_a_result_has_its_query_and_settings(collection: Collection, photos: Path) -> None:
    collection.add([photos / "flower.jpg", photos / "camera.png"])
    result = collection.search(photos / "flower.jpg", k=3, variants=True)
    assert (result.query, result.verdict) == (str(photos / "flower.jpg"), "match")
    assert result.best == result[0] and result.best.photo == str(photos / "flower.jpg")
    assert result.settings == collection.search_settings(k=3, variants=True)
    assert str(result.settings).endswith(", in five variants")
    other = collection.search(photos / "rocket.jpg", k=3, probes=1)
    assert other.verdict == "none"
    assert (other.settings.probes, other.settings.cells, other.settings.rerank, other.settings.variants) == (
        1,
        4096,
        0,
        False,
    )


def test_results_of_descriptors_have_no_query_name(collection: Collection) -> None:
    queries = torch.nn.functional.normalize(torch.rand(2, 5, collection.codebook.dim), dim=2)
    results = collection.search_descriptors(queries)
    assert [result.query for result in results] == [None, None]
    assert all(result.settings.variants for result in results)
    assert not collection.search_descriptors(queries[:, 0])[0].settings.variants
