"""Add, list, show and remove references over HTTP."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image
from tests.collection.tiny import tiny_photos
from tests.service.conftest import Process, Server

from homing.collection import Collection


@pytest.fixture
def new(tmp_path: Path, server: Server) -> Iterator[Path]:
    """A photo that is in no collection. A reference that a test makes of it is removed afterwards."""
    (path,) = tiny_photos(tmp_path / "new", 1, seed=hash(tmp_path) % 2**32)
    yield path
    for each in server.client.get("/v1/photos").json()["photos"]:
        if each["photo"] not in ("chelsea.png", "rocket.jpg", "flower.jpg"):
            server.client.delete(f"/v1/photos/{each['id']}")


@pytest.mark.slow
def test_an_added_photo_is_found_under_its_upload_name(server: Server, new: Path) -> None:
    answer = server.post("/v1/photos", ("Strand bei Föhr.png", new.read_bytes()))
    assert answer.status_code == 201
    (outcome,) = answer.json()["outcomes"]
    assert outcome["photo"] == "Strand bei Föhr.png" and outcome["state"] == "added"
    best = server.post("/v1/search?k=1", new).json()["matches"][0]
    assert best["photo"] == "Strand bei Föhr.png" and best["id"] == outcome["id"]


def test_uploads_are_stored_in_a_private_folder(server: Server, new: Path) -> None:
    server.post("/v1/photos", new)
    digest = hashlib.sha256(new.read_bytes()).hexdigest()
    assert (server.folder / "uploads" / digest / new.name).read_bytes() == new.read_bytes()
    assert stat.S_IMODE((server.folder / "uploads").stat().st_mode) == 0o700


def test_the_same_file_again_is_known_and_stored_once(server: Server, new: Path) -> None:
    answers = [server.post("/v1/photos", (name, new.read_bytes())) for name in (new.name, "other.png")]
    assert [answer.status_code for answer in answers] == [201, 200]
    ((first,), (again,)) = (answer.json()["outcomes"] for answer in answers)
    assert again["state"] == "known" and again["id"] == first["id"] and again["photo"] == "other.png"
    digest = hashlib.sha256(new.read_bytes()).hexdigest()
    assert [file.name for file in (server.folder / "uploads" / digest).iterdir()] == [new.name]


def test_a_duplicate_in_one_request_is_added_once(own_server: Server, tmp_path: Path) -> None:
    one, other = tiny_photos(tmp_path / "two", 2)
    same = ("renamed.png", one.read_bytes())
    outcomes = own_server.post("/v1/photos", one, other, one, same).json()["outcomes"]
    assert [each["state"] for each in outcomes] == ["added", "added", "known", "known"]
    assert outcomes[0]["id"] == outcomes[2]["id"] == outcomes[3]["id"] != outcomes[1]["id"]
    assert len((own_server.folder / "audit.jsonl").read_text().splitlines()) == 2


def test_photos_added_from_elsewhere_are_not_stored_again(server: Server, photos: Path) -> None:
    (outcome,) = server.post("/v1/photos", photos / "rocket.jpg").json()["outcomes"]
    assert outcome["state"] == "known"
    assert not (server.folder / "uploads" / hashlib.sha256((photos / "rocket.jpg").read_bytes()).hexdigest()).exists()


def test_a_bad_photo_does_not_stop_the_others(server: Server, new: Path) -> None:
    cut = new.read_bytes()[:200]
    answer = server.post("/v1/photos", new, ("cut.png", cut), ("notes.txt", b"no photo"))
    assert answer.status_code == 201
    states = [(each["photo"], each["state"]) for each in answer.json()["outcomes"]]
    assert states == [(new.name, "added"), ("cut.png", "failed"), ("notes.txt", "failed")]
    assert all(each["problem"].startswith(each["photo"]) for each in answer.json()["outcomes"][1:])
    assert str(server.folder) not in answer.text
    assert not (server.folder / "uploads" / hashlib.sha256(cut).hexdigest()).exists()


def test_pagination_lists_each_reference_once_newest_first(own_server: Server, tmp_path: Path) -> None:
    own_server.post("/v1/photos", *tiny_photos(tmp_path / "more", 8))
    ids, address = [], "/v1/photos?limit=3"
    while address:
        page = own_server.client.get(address).json()
        assert page["total"] == 11 and len(page["photos"]) <= 3
        ids += [each["id"] for each in page["photos"]]
        address = page["next"]
    assert ids == sorted(ids, reverse=True) and len(set(ids)) == 11


def test_references_are_filtered_by_name(server: Server) -> None:
    found = server.client.get("/v1/photos", params={"name": "OCKET"}).json()
    assert [each["photo"] for each in found["photos"]] == ["rocket.jpg"] and found["total"] == 1
    for odd in ("%", "_", "!", "photos", "'"):  # not matched in folder names, not special in SQL
        assert server.client.get("/v1/photos", params={"name": odd}).json()["photos"] == []


@pytest.mark.parametrize("name", ["FÖHR", "föhr", "Fo\u0308hr", "STRASSE", "straße"])
def test_names_match_in_any_case(server: Server, new: Path, name: str) -> None:
    server.post("/v1/photos", ("Straße auf Föhr.png", new.read_bytes()))
    found = server.client.get("/v1/photos", params={"name": name}).json()
    assert [each["photo"] for each in found["photos"]] == ["Straße auf Föhr.png"] and found["total"] == 1


def test_one_reference(server: Server, photos: Path) -> None:
    (rocket,) = server.client.get("/v1/photos?name=rocket").json()["photos"]
    one = server.client.get(f"/v1/photos/{rocket['id']}").json()
    assert one == {**rocket, "releases": []}
    assert (
        one["state"] == "passive" and one["sha256"] == hashlib.sha256((photos / "rocket.jpg").read_bytes()).hexdigest()
    )


def test_a_thumbnail_is_small_and_holds_no_metadata(server: Server) -> None:
    (rocket,) = server.client.get("/v1/photos?name=rocket").json()["photos"]
    answer = server.client.get(rocket["thumbnail"])
    assert answer.headers["content-type"] == "image/jpeg"
    with Image.open(BytesIO(answer.content)) as image:
        assert max(image.size) == 320 and not image.getexif() and "icc_profile" not in image.info
    again = server.client.get(rocket["thumbnail"], headers={"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304 and not again.content


def test_a_thumbnail_of_a_changed_file_is_refused(server: Server, new: Path) -> None:
    (outcome,) = server.post("/v1/photos", new).json()["outcomes"]
    digest = hashlib.sha256(new.read_bytes()).hexdigest()
    (server.folder / "uploads" / digest / new.name).write_bytes(tiny_photos(new.parent, 2)[1].read_bytes())
    answer = server.client.get(f"/v1/photos/{outcome['id']}/thumbnail")
    assert answer.status_code == 404 and "has changed" in answer.json()["detail"]
    assert str(server.folder) not in answer.text


def test_a_removed_reference_is_neither_found_nor_stored(server: Server, new: Path) -> None:
    (outcome,) = server.post("/v1/photos", new).json()["outcomes"]
    address = f"/v1/photos/{outcome['id']}"
    assert server.client.delete(address).status_code == 204
    assert server.client.get(address).status_code == 404 == server.client.delete(address).status_code
    assert outcome["id"] not in [match["id"] for match in server.post("/v1/search", new).json()["matches"]]
    assert not (server.folder / "uploads" / hashlib.sha256(new.read_bytes()).hexdigest()).exists()


def test_removing_keeps_files_outside_the_collection(own_server: Server, photos: Path) -> None:
    (rocket,) = own_server.client.get("/v1/photos?name=rocket").json()["photos"]
    assert own_server.client.delete(f"/v1/photos/{rocket['id']}").status_code == 204
    assert (photos / "rocket.jpg").is_file()


def test_searches_work_while_another_process_writes(own_server: Server, tmp_path: Path) -> None:
    from homing.collection.storage.sqlite import SqliteStorage

    (new,) = tiny_photos(tmp_path / "new", 1)
    with SqliteStorage.lock(own_server.folder):
        answer = own_server.post("/v1/photos", new)
        assert answer.status_code == 409 and "another process" in answer.json()["detail"]
        assert str(own_server.folder) not in answer.text
        assert own_server.client.delete("/v1/photos/1").status_code == 409
        assert own_server.post("/v1/search", new).status_code == 200
    assert list((own_server.folder / "uploads").iterdir()) == []
    assert own_server.post("/v1/photos", new).status_code == 201


@pytest.mark.slow
def test_added_photos_are_in_the_collection_when_it_is_opened_elsewhere(own_process: Process, tmp_path: Path) -> None:
    own_process.post("/v1/photos", *tiny_photos(tmp_path / "new", 3))
    assert own_process.stop() == 0
    with Collection.open(own_process.folder) as collection:
        assert collection.info().photos == 6
        assert collection.check() == []
