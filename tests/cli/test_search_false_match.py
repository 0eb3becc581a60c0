"""`homing search` says how sure it is, and what it did."""

import json
from pathlib import Path

import pytest
from tests.evaluation.helpers import homing

from homing.collection.results import format_probability


@pytest.fixture(scope="module")
def used(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection of two photos."""
    folder = tmp_path_factory.mktemp("sure")
    homing("init", folder / "c.homing")
    homing("add", folder / "c.homing", photos / "flower.jpg", photos / "camera.png")
    return folder / "c.homing"


def test_a_match_says_how_likely_it_is_by_chance(used: Path, photos: Path) -> None:
    said = homing("search", used, photos / "flower.jpg")
    assert "false match" in said
    assert "1 in " in said
    assert "Searched 2 references, all 4,096 cells, the nearest 100 compared again by descriptors." in said
    (answer,) = json.loads(homing("search", used, photos / "flower.jpg", "--json"))
    first, second = answer["matches"]
    assert first["false_match_probability"] < 1e-6 < 1e-3 < second["false_match_probability"] <= 1
    assert answer["search"] == {
        "references": 2, "cells": 4096, "probes": 4096, "probe_radius": None, "rerank": 100, "variants": False
    }  # fmt: skip


def test_only_sure_matches_are_shown_where_that_is_asked_for(used: Path, photos: Path) -> None:
    copy, stranger = photos / "flower.jpg", photos / "rocket.jpg"
    said = homing("search", used, copy, stranger, "--max-false-match", "1e-3")
    assert said.count("flower.jpg") == 2  # the query and its match
    assert "no match whose chance is " in said
    answers = json.loads(homing("search", used, copy, stranger, "--max-false-match", "1e-3", "--json"))
    assert [len(answer["matches"]) for answer in answers] == [1, 0]


@pytest.mark.parametrize(
    ("chance", "words"),
    [
        (1.0, "almost always"),
        (0.99, "99 in 100"),
        (0.1, "10 in 100"),
        (0.0123, "1 in 81"),
        (2.52e-5, "1 in 40,000"),
        (1e-9, "1 in 1,000,000,000"),
        (0.0, "less than 1 in 10¹²"),
    ],
)
def test_chances_are_told_in_words(chance: float, words: str) -> None:
    assert format_probability(chance) == words
