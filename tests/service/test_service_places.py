"""Collections under odd paths, copied and moved: what was kept of uploads stays, and is found."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from tests.collection.tiny import tiny_photos
from tests.service.conftest import Server, over

from homing.collection import Collection
from homing.collection._writing import one_host, one_writer
from homing.extractors import Extractor


def kept(server: Server, photo: Path) -> Path:
    """Where the service keeps an upload."""
    return server.folder / "uploads" / hashlib.sha256(photo.read_bytes()).hexdigest() / photo.name


def test_uploads_stay_in_a_collection_that_is_named_by_a_way_round(
    made: Path, extractor: Extractor, tmp_path: Path
) -> None:
    shutil.copytree(made, tmp_path / "holiday.homing")
    (tmp_path / "beside").mkdir()
    (photo,) = tiny_photos(tmp_path / "new", 1)
    with over(tmp_path / "beside" / ".." / "holiday.homing", extractor) as server:
        (outcome,) = server.post("/v1/photos", photo).json()["outcomes"]
        assert outcome["state"] == "added" and kept(server, photo).read_bytes() == photo.read_bytes()
        assert server.client.get(f"/v1/photos/{outcome['id']}/thumbnail").status_code == 200
    with Collection.open(server.folder) as collection:
        assert collection.check() == []


def test_what_was_released_is_known_again_in_a_collection_that_was_moved(
    made: Path, extractor: Extractor, tmp_path: Path
) -> None:
    (photo,) = tiny_photos(tmp_path / "new", 1)
    with over(shutil.copytree(made, tmp_path / "here.homing"), extractor) as server:
        first = server.post("/v1/activate", photo, data={"recipe": "homing-fast"})
    (tmp_path / "here.homing").rename(tmp_path / "there.homing")
    with over(tmp_path / "there.homing", extractor) as server:
        same = server.post("/v1/activate", photo, data={"recipe": "homing-fast"})
        assert same.status_code == 200 and same.content == first.content
        other = server.post("/v1/activate?report=true", photo, data={"recipe": "homing-fast", "psnr": "41"})
        assert other.status_code == 200 and len(other.json()["survives"]) == 14
        released = server.client.get(other.json()["released"])
        assert released.status_code == 200 and released.content != first.content


def test_folders_of_the_server_are_told_to_nobody(extractor: Extractor, photos: Path, tmp_path: Path) -> None:
    own = tmp_path / "my own"
    own.mkdir()
    for name in ("camera.png", "flower.jpg"):
        shutil.copy(photos / name, own)
    with Collection.create(own / "c d.homing", extractor=extractor) as collection:
        collection.add(own / "camera.png")
        collection.activate(own / "flower.jpg", own / "out", recipe="homing-fast")
    with over(own / "c d.homing", extractor) as server:
        (own / "camera.png").rename(own / "gone.png")
        answers = [
            server.post("/v1/activate", ("again.jpg", (own / "out" / "flower.jpg").read_bytes())),
            server.post("/v1/photos", ("cut.png", (own / "gone.png").read_bytes()[:5000])),
            server.client.get("/v1/photos/1/thumbnail"),
        ]
        (own / "out" / "flower.jpg").write_bytes(b"another")
        answers += [server.client.get(f"/v1/photos/2/{what}") for what in ("released", "pictures/after")]
        shutil.copy(own / "flower.jpg", own / "out" / "flower.jpg")
        answers.append(server.client.get("/v1/photos/2/released"))
    assert [answer.status_code for answer in answers] == [422, 422, 404, 404, 404, 404]
    assert "released version of flower.jpg" in answers[0].text and "another file by now" in answers[-1].text
    for answer in answers:
        assert "my own" not in answer.text and "homing/" not in answer.text, answer.text


def test_an_upload_that_a_copied_collection_knows_stays_in_it(
    own_server: Server, extractor: Extractor, tmp_path: Path
) -> None:
    (photo,) = tiny_photos(tmp_path / "new", 1)
    own_server.post("/v1/photos", photo)
    with over(shutil.copytree(own_server.folder, tmp_path / "copied.homing"), extractor) as copied:
        (again,) = copied.post("/v1/photos", photo).json()["outcomes"]
        assert again["state"] == "known" and kept(copied, photo).is_file()
        copied.post("/v1/photos", ("other.png", photo.read_bytes()))
        assert list(kept(copied, photo).parent.iterdir()) == [kept(copied, photo)]


def test_of_two_services_none_drops_what_the_other_is_about_to_add(own_server: Server, tmp_path: Path) -> None:
    """As another one is between keeping a file and writing it into the catalogue, the same file comes here."""
    photo, known = tiny_photos(tmp_path / "new", 2)
    (outcome,) = own_server.post("/v1/photos", known).json()["outcomes"]
    with one_host(own_server.folder), one_writer(own_server.folder):
        kept(own_server, photo).parent.mkdir()
        shutil.copy(photo, kept(own_server, photo))
        answers = [own_server.post(path, photo) for path in ("/v1/photos", "/v1/activate")]
        answers.append(own_server.client.delete(f"/v1/photos/{outcome['id']}"))
        assert [answer.status_code for answer in answers] == [409] * 3
        assert kept(own_server, photo).read_bytes() == photo.read_bytes()
    with one_host(own_server.folder):  # the other is about to keep the file again
        assert own_server.client.delete(f"/v1/photos/{outcome['id']}").status_code == 409
    assert own_server.post("/v1/photos", photo).status_code == 201
    assert own_server.client.delete(f"/v1/photos/{outcome['id']}").status_code == 204
