"""Collections under odd paths, copied and moved: what was kept of uploads stays, and is found."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from tests.collection.tiny import tiny_photos
from tests.service.conftest import Server, Start

from homing.collection import Collection


def kept(server: Server, photo: Path) -> Path:
    """Where the service keeps an upload."""
    return server.folder / "uploads" / hashlib.sha256(photo.read_bytes()).hexdigest() / photo.name


def test_uploads_stay_in_a_collection_that_is_named_by_a_way_round(starting: Start, made: Path, tmp_path: Path) -> None:
    shutil.copytree(made, tmp_path / "holiday.homing")
    (tmp_path / "beside").mkdir()
    server = starting(tmp_path / "beside" / ".." / "holiday.homing")
    (photo,) = tiny_photos(tmp_path / "new", 1)
    (outcome,) = server.post("/v1/photos", photo).json()["outcomes"]
    assert outcome["state"] == "added" and kept(server, photo).read_bytes() == photo.read_bytes()
    assert server.client.get(f"/v1/photos/{outcome['id']}/thumbnail").status_code == 200
    assert server.stop() == 0
    with Collection.open(server.folder) as collection:
        assert collection.check() == []


def test_an_upload_that_a_copied_collection_knows_stays_in_it(
    own_server: Server, starting: Start, tmp_path: Path
) -> None:
    (photo,) = tiny_photos(tmp_path / "new", 1)
    own_server.post("/v1/photos", photo)
    shutil.copytree(own_server.folder, tmp_path / "copied.homing")
    copied = starting(tmp_path / "copied.homing")
    (again,) = copied.post("/v1/photos", photo).json()["outcomes"]
    assert again["state"] == "known" and kept(copied, photo).is_file()
    copied.post("/v1/photos", ("other.png", photo.read_bytes()))
    assert list(kept(copied, photo).parent.iterdir()) == [kept(copied, photo)]
