"""Collections at unusual paths, copied and moved: stored uploads remain and are found."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from tests.collection.tiny import tiny_photos
from tests.service.conftest import Server, running_server

from homing.collection import Collection
from homing.collection.storage._sqlite_database import file_lock
from homing.collection.storage.sqlite import SqliteStorage
from homing.extractors import Extractor


def stored_path(server: Server, photo: Path) -> Path:
    """The path of a stored upload."""
    return server.folder / "uploads" / hashlib.sha256(photo.read_bytes()).hexdigest() / photo.name


def test_uploads_are_kept_when_the_collection_path_is_not_normalized(
    template: Path, extractor: Extractor, tmp_path: Path
) -> None:
    shutil.copytree(template, tmp_path / "holiday.homing")
    (tmp_path / "beside").mkdir()
    (photo,) = tiny_photos(tmp_path / "new", 1)
    with running_server(tmp_path / "beside" / ".." / "holiday.homing", extractor) as server:
        (outcome,) = server.post("/v1/photos", photo).json()["outcomes"]
        assert outcome["state"] == "added" and stored_path(server, photo).read_bytes() == photo.read_bytes()
        assert server.client.get(f"/v1/photos/{outcome['id']}/thumbnail").status_code == 200
    with Collection.open(server.folder) as collection:
        assert collection.check() == []


def test_releases_are_known_after_the_collection_is_moved(template: Path, extractor: Extractor, tmp_path: Path) -> None:
    (photo,) = tiny_photos(tmp_path / "new", 1)
    with running_server(shutil.copytree(template, tmp_path / "here.homing"), extractor) as server:
        first = server.post("/v1/activate", photo, data={"recipe": "homing-fast"})
    (tmp_path / "here.homing").rename(tmp_path / "there.homing")
    with running_server(tmp_path / "there.homing", extractor) as server:
        same = server.post("/v1/activate", photo, data={"recipe": "homing-fast"})
        assert same.status_code == 200 and same.content == first.content
        other = server.post("/v1/activate?report=true", photo, data={"recipe": "homing-fast", "psnr": "41"})
        assert other.status_code == 200 and len(other.json()["edited_copies"]) == 14
        released = server.client.get(other.json()["released"])
        assert released.status_code == 200 and released.content != first.content


def test_server_paths_are_never_in_responses(extractor: Extractor, photos: Path, tmp_path: Path) -> None:
    own = tmp_path / "my own"
    own.mkdir()
    for name in ("camera.png", "flower.jpg"):
        shutil.copy(photos / name, own)
    with Collection.create(own / "c d.homing", extractor=extractor) as collection:
        collection.add(own / "camera.png")
        collection.activate(own / "flower.jpg", own / "out", recipe="homing-fast")
    with running_server(own / "c d.homing", extractor) as server:
        (own / "camera.png").rename(own / "missing.png")
        answers = [
            server.post("/v1/activate", ("again.jpg", (own / "out" / "flower.jpg").read_bytes())),
            server.post("/v1/photos", ("cut.png", (own / "missing.png").read_bytes()[:5000])),
            server.client.get("/v1/photos/1/thumbnail"),
        ]
        (own / "out" / "flower.jpg").write_bytes(b"another")
        answers += [server.client.get(f"/v1/photos/2/{what}") for what in ("released", "pictures/after")]
        shutil.copy(own / "flower.jpg", own / "out" / "flower.jpg")
        answers.append(server.client.get("/v1/photos/2/released"))
    assert [answer.status_code for answer in answers] == [422, 422, 404, 404, 404, 404]
    assert "released version of flower.jpg" in answers[0].text and "has changed" in answers[-1].text
    for answer in answers:
        assert "my own" not in answer.text and "homing/" not in answer.text, answer.text


def test_uploads_are_kept_in_a_copied_collection(own_server: Server, extractor: Extractor, tmp_path: Path) -> None:
    (photo,) = tiny_photos(tmp_path / "new", 1)
    own_server.post("/v1/photos", photo)
    with running_server(shutil.copytree(own_server.folder, tmp_path / "copied.homing"), extractor) as copied:
        (again,) = copied.post("/v1/photos", photo).json()["outcomes"]
        assert again["state"] == "known" and stored_path(copied, photo).is_file()
        copied.post("/v1/photos", ("other.png", photo.read_bytes()))
        assert list(stored_path(copied, photo).parent.iterdir()) == [stored_path(copied, photo)]


def test_two_services_do_not_delete_each_others_uploads(own_server: Server, tmp_path: Path) -> None:
    """Another service has stored a file but not recorded it when the same file is uploaded here."""
    photo, known = tiny_photos(tmp_path / "new", 2)
    (outcome,) = own_server.post("/v1/photos", known).json()["outcomes"]
    with file_lock(own_server.folder, "uploads.lock"), SqliteStorage.lock(own_server.folder):
        stored_path(own_server, photo).parent.mkdir()
        shutil.copy(photo, stored_path(own_server, photo))
        answers = [own_server.post(path, photo) for path in ("/v1/photos", "/v1/activate")]
        answers.append(own_server.client.delete(f"/v1/photos/{outcome['id']}"))
        assert [answer.status_code for answer in answers] == [409] * 3
        assert stored_path(own_server, photo).read_bytes() == photo.read_bytes()
    with file_lock(own_server.folder, "uploads.lock"):  # the other service is about to store the file again
        assert own_server.client.delete(f"/v1/photos/{outcome['id']}").status_code == 409
    assert own_server.post("/v1/photos", photo).status_code == 201
    assert own_server.client.delete(f"/v1/photos/{outcome['id']}").status_code == 204
