"""Searching over HTTP."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.service.conftest import Server, over

from homing.collection import Collection
from homing.collection.outcome import in_words
from homing.extractors import Extractor
from homing.service.answers import Found, verdict


def test_a_copy_is_found_with_its_chance_in_words(server: Server, copy: Path) -> None:
    answer = server.post("/v1/search", copy)
    assert answer.status_code == 200
    best = answer.json()["matches"][0]
    assert best["photo"] == "rocket.jpg" and best["state"] == "passive" and best["by"] == "descriptor"
    assert best["verdict"] == "almost certainly a copy" and best["chance"] <= 0.001
    assert best["chance_in_words"].startswith(("1 in ", "less than 1 in "))
    assert best["thumbnail"] == f"/v1/photos/{best['id']}/thumbnail"
    assert "references" in answer.json()["plan"]
    assert set(answer.json()["milliseconds"]) == {"decode", "network", "search"}


def test_the_example_of_the_docs_could_be_an_answer() -> None:
    page = (Path(__file__).parents[2] / "docs" / "service.md").read_text()
    example = json.loads(re.search(r"^    (\{\"matches\".*?\}\})$", page, re.MULTILINE | re.DOTALL)[1])
    found = Found.model_validate(example)
    (match,) = found.matches
    assert (match.chance_in_words, match.verdict) == (in_words(match.chance), verdict(match.chance))


def test_the_answer_is_that_of_the_library(server: Server, made: Path, copy: Path, extractor: Extractor) -> None:
    with Collection.open(made, extractor=extractor) as collection:
        expected = collection.search(copy, k=5)
    found = server.post("/v1/search?k=5", copy).json()["matches"]
    assert [match["id"] for match in found] == [match.id for match in expected]
    assert [match["distance"] for match in found] == pytest.approx([match.distance for match in expected], abs=1e-4)


def test_an_unknown_photo_leaves_no_match_within_a_small_chance(server: Server, photos: Path) -> None:
    near = server.post("/v1/search", photos / "camera.png").json()["matches"]
    assert near and near[0]["verdict"] == "no sign of it"
    assert server.post("/v1/search?false_matches=0.01", photos / "camera.png").json()["matches"] == []


def test_a_photo_on_its_side_is_found_when_turned(server: Server, photos: Path, tmp_path: Path) -> None:
    from PIL import Image

    with Image.open(photos / "flower.jpg") as flower:
        flower.transpose(Image.Transpose.ROTATE_90).save(tmp_path / "side.png")
    plain, turned = (
        server.post(f"/v1/search?k=1&turned={turned}", tmp_path / "side.png").json()["matches"][0]
        for turned in ("false", "true")
    )
    assert turned["photo"] == "flower.jpg" and turned["distance"] < plain["distance"]


def test_strangers_have_neither_id_nor_thumbnail(server: Server, photos: Path) -> None:
    strangers = [
        match
        for match in server.post("/v1/search?k=20", photos / "camera.png").json()["matches"]
        if match["state"] == "background"
    ]
    assert strangers and all(match["id"] is None and match["thumbnail"] is None for match in strangers)


def test_of_several_photos_each_has_its_answer(server: Server, photos: Path, copy: Path) -> None:
    answer = server.post("/v1/search?k=1", copy, ("notes.txt", b"no photo"), photos / "chelsea.png")
    assert answer.status_code == 200
    first, second, third = answer.json()["results"]
    assert first["matches"][0]["photo"] == "rocket.jpg" and third["matches"][0]["photo"] == "chelsea.png"
    assert second["name"] == "notes.txt" and second["problem"]["status"] == 415


def test_nothing_of_a_query_is_kept(server: Server, photos: Path) -> None:
    def held() -> set[Path]:
        return set(server.folder.rglob("*"))

    before = held()
    server.post("/v1/search", photos / "camera.png")
    assert held() == before


def test_many_at_once_get_the_answers_they_would_get_alone(server: Server, photos: Path) -> None:
    names = ["chelsea.png", "rocket.jpg", "flower.jpg"] * 8
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda name: server.post("/v1/search?k=1", photos / name).json(), names))
    assert [answer["matches"][0]["photo"] for answer in answers] == names


@pytest.mark.parametrize("query", ["k=0", "k=1001", "false_matches=0", "false_matches=2", "turned=perhaps", "k=nan"])
def test_odd_options_are_refused_in_a_line(server: Server, copy: Path, query: str) -> None:
    answer = server.post(f"/v1/search?{query}", copy)
    assert answer.status_code == 422
    assert query.partition("=")[0] in answer.json()["detail"]


def test_an_empty_collection_finds_nothing(extractor: Extractor, tmp_path: Path, copy: Path) -> None:
    Collection.create(tmp_path / "empty.homing").close()
    with over(tmp_path / "empty.homing", extractor) as server:
        answer = server.post("/v1/search", copy)
    assert answer.status_code == 200 and answer.json()["matches"] == []
