"""The service does the same wherever the collection is stored: in a folder, in Lance, and in a bucket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from tests.collection.tiny import tiny_codebook, tiny_extractor, tiny_photos

from homing._io.paths import Address, location
from homing.collection import Collection
from homing.service import create_app


@pytest.fixture(params=["c.homing", "c.lance", "bucket"])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[TestClient, Collection]]:
    """A served collection that has one photo already."""
    where = f"{request.getfixturevalue('s3')}/c.lance" if request.param == "bucket" else tmp_path / request.param
    book = tiny_codebook("IVF8,PQ12x8")
    with Collection.create(where, codebook=book, extractor=tiny_extractor()) as collection:
        collection.add(tiny_photos(tmp_path / "photos", 1))
        with TestClient(create_app(collection), base_url="http://127.0.0.1", client=("127.0.0.1", 5)) as client:
            yield client, collection


def test_photos_are_added_activated_found_and_removed(served: tuple[TestClient, Collection], tmp_path: Path) -> None:
    client, collection = served
    one, two = tiny_photos(tmp_path / "new", 2, seed=1)
    (added,) = client.post("/v1/photos", files={"photo": (one.name, one.read_bytes())}).json()["outcomes"]
    assert added["state"] == "added"
    found = client.post("/v1/search?k=1", files={"photo": (one.name, one.read_bytes())}).json()["matches"]
    assert [(each["photo"], each["id"]) for each in found] == [(one.name, added["id"])]
    released = client.post("/v1/activate", files={"photo": (two.name, two.read_bytes())}, data={"recipe": "paper"})
    assert released.status_code == 200, released.text
    listed = client.get("/v1/photos").json()
    assert [each["photo"] for each in listed["photos"]] == [two.name, one.name, "0000.png"] and listed["total"] == 3
    number = listed["photos"][0]["id"]
    assert client.get(f"/v1/photos/{number}/released").status_code == 200
    assert client.get(f"/v1/photos/{number}/thumbnail").status_code == 200
    info = client.get("/v1/info").json()
    assert (info["photos"], info["passive"]) == (3, 2)
    assert client.get("/v1/photos?state=passive").json()["total"] == 2
    for each in listed["photos"][:2]:
        assert client.delete(f"/v1/photos/{each['id']}").status_code == 204
    assert client.get(f"/v1/photos/{number}").status_code == 404
    assert client.get("/v1/photos").json()["total"] == 1
    assert [line.split('"action": "')[1].split('"')[0] for line in _audit(collection)] == [
        *("added", "added", "released", "removed", "removed")
    ]
    uploads = collection.uploads.folder
    assert not (list(uploads.files()) if isinstance(uploads, Address) else [*uploads.glob("*/*.*")])


def _audit(collection: Collection) -> list[str]:
    """The lines of the audit log, in the order they were written."""
    log = location(str(collection.root)) / "audit.jsonl"
    if isinstance(log, Path):
        return log.read_text().splitlines()
    return [line for name in sorted(log.files()) for line in (log / str(name)).read_bytes().decode().splitlines()]
