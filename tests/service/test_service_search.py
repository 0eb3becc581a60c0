"""Searching over HTTP."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pydantic import TypeAdapter
from tests.service.conftest import Server, running_server

from homing.collection import Collection
from homing.collection.search import format_probability, verdict_of
from homing.extractors import Extractor
from homing.service.schemas import SearchResponse


def test_a_copy_is_found_with_its_false_match_probability(server: Server, copy: Path) -> None:
    answer = server.post("/v1/search", copy)
    assert answer.status_code == 200
    best = answer.json()["matches"][0]
    assert best["photo"] == "rocket.jpg" and best["state"] == "passive" and best["compared"] == "descriptor"
    assert best["verdict"] == "match" and best["false_match_probability"] <= 0.001
    assert (answer.json()["query"], answer.json()["verdict"]) == (copy.name, "match")
    assert best["false_match_text"].startswith(("1 in ", "less than 1 in "))
    assert best["thumbnail"] == f"/v1/photos/{best['id']}/thumbnail"
    assert answer.json()["search"]["references"] > 3 and answer.json()["search"]["variants"] is False
    assert set(answer.json()["milliseconds"]) == {"decode", "network", "search"}


def test_the_example_in_the_docs_is_valid() -> None:
    docs = "\n".join(page.read_text() for page in (Path(__file__).parents[2] / "docs").rglob("*.md"))
    (example,) = re.findall(r"^(\{\"query\"[^`]*?\"milliseconds\"[^`]*?\}\})$", docs, re.MULTILINE)
    found = TypeAdapter(SearchResponse).validate_json(example)
    (match,) = found.matches
    assert match.false_match_text == format_probability(match.false_match_probability)
    assert match.verdict == verdict_of(match.false_match_probability) == found.verdict


def test_http_search_equals_library_search(server: Server, template: Path, copy: Path, extractor: Extractor) -> None:
    with Collection.open(template, extractor=extractor) as collection:
        expected = collection.search(copy, k=5)
    found = server.post("/v1/search?k=5", copy).json()["matches"]
    assert [match["id"] for match in found] == [match.id for match in expected]
    assert [match["distance"] for match in found] == pytest.approx([match.distance for match in expected], abs=1e-4)


def test_an_unknown_photo_has_no_match_below_a_small_false_match_probability(server: Server, photos: Path) -> None:
    near = server.post("/v1/search", photos / "camera.png").json()["matches"]
    assert near and near[0]["verdict"] == "none"
    answer = server.post("/v1/search?max_false_match=0.01", photos / "camera.png").json()
    assert (answer["matches"], answer["verdict"]) == ([], "none")


def test_a_rotated_photo_is_found_with_variants(server: Server, photos: Path, tmp_path: Path) -> None:
    from PIL import Image

    with Image.open(photos / "flower.jpg") as flower:
        flower.transpose(Image.Transpose.ROTATE_90).save(tmp_path / "side.png")
    plain, variants = (
        server.post(f"/v1/search?k=1&variants={variants}", tmp_path / "side.png").json()["matches"][0]
        for variants in ("false", "true")
    )
    assert variants["photo"] == "flower.jpg" and variants["distance"] < plain["distance"]


def test_distractors_have_neither_id_nor_thumbnail(server: Server, photos: Path) -> None:
    distractors = [
        match
        for match in server.post("/v1/search?k=20", photos / "camera.png").json()["matches"]
        if match["state"] == "distractor"
    ]
    assert distractors and all(match["id"] is None and match["thumbnail"] is None for match in distractors)


def test_several_photos_have_a_result_each(server: Server, photos: Path, copy: Path) -> None:
    answer = server.post("/v1/search?k=1", copy, ("notes.txt", b"no photo"), photos / "chelsea.png")
    assert answer.status_code == 200
    first, second, third = answer.json()["results"]
    assert [first["verdict"], third["verdict"]] == ["match", "match"]
    assert first["matches"][0]["photo"] == "rocket.jpg" and third["matches"][0]["photo"] == "chelsea.png"
    assert second["query"] == "notes.txt" and second["problem"]["status"] == 415


def test_queries_are_not_stored(server: Server, photos: Path) -> None:
    def files_on_disk() -> set[Path]:
        return set(server.folder.rglob("*"))

    before = files_on_disk()
    server.post("/v1/search", photos / "camera.png")
    assert files_on_disk() == before


def test_concurrent_searches_equal_single_ones(server: Server, photos: Path) -> None:
    names = ["chelsea.png", "rocket.jpg", "flower.jpg"] * 8
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda name: server.post("/v1/search?k=1", photos / name).json(), names))
    assert [answer["matches"][0]["photo"] for answer in answers] == names


@pytest.mark.parametrize(
    "query", ["k=0", "k=1001", "max_false_match=0", "max_false_match=2", "variants=perhaps", "k=nan"]
)
def test_invalid_query_parameters_are_refused_in_one_line(server: Server, copy: Path, query: str) -> None:
    answer = server.post(f"/v1/search?{query}", copy)
    assert answer.status_code == 422
    assert query.partition("=")[0] in answer.json()["detail"]


def test_an_empty_collection_has_no_matches(extractor: Extractor, tmp_path: Path, copy: Path) -> None:
    Collection.create(tmp_path / "empty.homing").close()
    with running_server(tmp_path / "empty.homing", extractor) as server:
        answer = server.post("/v1/search", copy)
    assert answer.status_code == 200 and answer.json()["matches"] == []
