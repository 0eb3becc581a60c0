"""`homing search`: verdicts, false-match probabilities and the search itself."""

import json
import re
from pathlib import Path

import pytest
from tests.bench.helpers import homing

from homing.collection.search import format_probability


@pytest.fixture(scope="module")
def used(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection of two photos."""
    folder = tmp_path_factory.mktemp("false_match")
    homing("init", folder / "c.homing")
    homing("add", folder / "c.homing", photos / "flower.jpg", photos / "camera.png")
    return folder / "c.homing"


def test_verdict_and_false_match_probability_of_a_copy(used: Path, photos: Path) -> None:
    output = homing("search", used, photos / "flower.jpg")
    verdict, headings, first, *_ = output.splitlines()
    photo = photos / "flower.jpg"
    assert re.fullmatch(rf"{re.escape(str(photo))}: match: {re.escape(str(photo))}, false match .*1 in .*", verdict)
    assert headings.split() == ["photo", "distance", "compared", "false", "match", "state"]
    assert first.split()[:4] == ["1", str(photo), "0.000", "descriptor"]
    assert "Searched 2 references, all 4,096 cells, the nearest 100 re-ranked by descriptors." in output
    (answer,) = json.loads(homing("search", used, photos / "flower.jpg", "--json"))
    assert answer["verdict"] == "match"
    first, second = answer["matches"]
    assert first["false_match_probability"] < 1e-6 < 1e-3 < second["false_match_probability"] <= 1
    assert answer["search"] == {
        "references": 2, "cells": 4096, "probes": 4096, "probe_radius": None, "rerank": 100, "variants": False
    }  # fmt: skip


def test_max_false_match_hides_other_matches(used: Path, photos: Path) -> None:
    copy, unrelated = photos / "flower.jpg", photos / "rocket.jpg"
    output = homing("search", used, copy, unrelated, "--max-false-match", "1e-3")
    assert output.count("flower.jpg") == 3  # the query and its match, which is also in the table
    assert "rocket.jpg: no match: no reference has a false-match probability of 0.001 or less" in output
    answers = json.loads(homing("search", used, copy, unrelated, "--max-false-match", "1e-3", "--json"))
    assert [(answer["verdict"], len(answer["matches"])) for answer in answers] == [("match", 1), ("none", 0)]


def test_an_unrelated_photo_is_no_match(used: Path, photos: Path) -> None:
    verdict = homing("search", used, photos / "rocket.jpg").splitlines()[0]
    assert verdict.startswith(f"{photos / 'rocket.jpg'}: no match: the nearest is ")


@pytest.mark.parametrize(
    ("probability", "words"),
    [
        (1.0, "over 99 in 100"),
        (0.99, "99 in 100"),
        (0.1, "10 in 100"),
        (0.0123, "1 in 81"),
        (2.52e-5, "1 in 40,000"),
        (1e-9, "1 in 1,000,000,000"),
        (0.0, "less than 1 in 10¹²"),
    ],
)
def test_probabilities_in_words(probability: float, words: str) -> None:
    assert format_probability(probability) == words
