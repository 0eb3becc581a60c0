"""homing.Client against a real server."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from tests.collection.tiny import tiny_photos
from tests.photo.photo_files import changed_photo
from tests.service.conftest import REFERENCES, Process, Server

import homing
from homing.errors import HomingError, NotFoundError, PhotoError, UnsupportedError


@pytest.fixture
def client(server: Server) -> Iterator[homing.Client]:
    """A client. References added by a test are removed afterwards."""
    with homing.Client(server.address) as client:
        yield client
        for each in client.references():
            if each.photo not in REFERENCES:
                client.remove(each.id)


def test_client_search_equals_library_search(client: homing.Client, server: Server, copy: Path) -> None:
    with homing.Collection.open(server.folder) as collection:
        expected = collection.search(copy, k=5)
    matches = client.search(copy, k=5)
    assert [(match.id, match.state, match.compared) for match in matches] == [
        (match.id, match.state, match.compared) for match in expected
    ]
    np.testing.assert_allclose([each.distance for each in matches], [each.distance for each in expected], atol=1e-4)
    np.testing.assert_allclose(
        [each.false_match_probability for each in matches],
        [each.false_match_probability for each in expected],
        rtol=0.02,
    )
    assert isinstance(matches[0], homing.Match) and matches[0].photo == "rocket.jpg"
    assert len(client.search(copy, max_false_match=1e-3)) == 1


def test_queries_are_paths_strings_or_photos(client: homing.Client, copy: Path) -> None:
    expected = client.search(copy)
    assert (
        client.search(str(copy))
        == client.search(f"file://{copy}")
        == client.search(homing.Photo.load(copy))
        == expected
    )


def test_a_changed_photo_is_sent_with_its_changes(client: homing.Client, photos: Path) -> None:
    rocket = homing.Photo.load(photos / "rocket.jpg")
    flower = homing.Photo.load(photos / "chelsea.png").pixels()
    other = torch.nn.functional.interpolate(flower[None], rocket.pixels().shape[1:])[0]
    assert client.search(changed_photo(rocket, other - rocket.pixels()), k=1)[0].photo == "chelsea.png"


def test_rotated_copies_are_found_with_variants(client: homing.Client, photos: Path, tmp_path: Path) -> None:
    with Image.open(photos / "chelsea.png") as image:
        image.transpose(Image.Transpose.ROTATE_90).save(tmp_path / "turned.png")
    assert client.search(tmp_path / "turned.png", variants=True, k=1)[0].photo == "chelsea.png"


def test_several_photos_are_searched_for_in_order(client: homing.Client, photos: Path, tmp_path: Path) -> None:
    rocket, flower = client.search([photos / "rocket.jpg", photos / "flower.jpg"], k=1)
    assert (rocket[0].photo, flower[0].photo) == ("rocket.jpg", "flower.jpg")
    (tmp_path / "notes.txt").write_text("no photo")
    with pytest.raises(PhotoError, match=f"^{tmp_path}/notes.txt: "):
        client.search([photos / "rocket.jpg", tmp_path / "notes.txt"])
    with pytest.raises(PhotoError, match="cannot be read"):
        client.search([photos / "rocket.jpg", tmp_path / "missing.jpg"])


def test_photos_in_memory_are_sent(client: homing.Client, photos: Path, tmp_path: Path) -> None:
    rocket = homing.Photo.load(photos / "rocket.jpg")
    for photo in (Image.open(photos / "rocket.jpg"), rocket.pixels(), rocket.data, np.asarray(rocket.stored_pixels)):
        assert client.search(photo, k=1)[0].photo == "rocket.jpg"
    compared = client.compare(rocket.data, rocket.pixels())
    assert compared.same_size and compared.distance < 0.01
    new = Image.open(tiny_photos(tmp_path / "new", 1)[0]).convert("RGB")
    (outcome,) = client.add({"new.png": new})
    assert (outcome.photo, outcome.state) == ("new.png", "added")
    assert [each.id for each in client.references(name_contains="new.png")] == [outcome.id]
    (released,) = client.activate({"new.png": new}, tmp_path / "out", recipe="homing-fast")
    assert released.state in ("activated", "unchanged") and released.released == str(tmp_path / "out" / "new.png")
    assert homing.Photo.load(tmp_path / "out" / "new.png").format == "PNG"
    with pytest.raises(PhotoError, match="got None"):
        client.search([rocket.data, None])


def test_many_photos_are_sent_in_several_requests(client: homing.Client, tmp_path: Path) -> None:
    paths = tiny_photos(tmp_path / "many", 40)
    outcomes = client.add(tmp_path / "many")
    assert [(each.photo, each.state) for each in outcomes] == [(str(path), "added") for path in paths]
    assert [each[0].id for each in client.search(paths, k=1)] == [each.id for each in outcomes]


def test_add_returns_library_outcomes(client: homing.Client, tmp_path: Path) -> None:
    first, second = tiny_photos(tmp_path / "new", 2)
    (tmp_path / "new" / "cut.png").write_bytes(first.read_bytes()[:200])
    (tmp_path / "new" / f"{'long' * 60}.png").write_bytes(first.read_bytes())  # rejects the whole request
    outcomes = {Path(each.photo): each for each in client.add(tmp_path / "new")}
    assert outcomes[first].state == outcomes[second].state == "added" and isinstance(outcomes[first], homing.Outcome)
    cut, long = outcomes[tmp_path / "new" / "cut.png"], outcomes[tmp_path / "new" / f"{'long' * 60}.png"]
    assert cut.state == long.state == "failed" and cut.id is long.id is None
    assert cut.reason is not None and not cut.reason.startswith(cut.photo)
    (again,) = client.add(first)
    assert again.state == "known" and again.id == outcomes[first].id
    (alone,) = client.add(str(tmp_path / "new" / "cut.png"))
    assert alone == cut


def test_references_are_listed_page_by_page(
    client: homing.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("homing.service.client._PAGE_SIZE", 4)
    client.add(tiny_photos(tmp_path / "more", 8))
    ids = [each.id for each in client.references()]
    assert len(ids) == 11 and ids == sorted(ids, reverse=True)
    assert [each.photo for each in client.references(name_contains="ocke")] == ["rocket.jpg"]
    assert list(client.references(name_contains="nowhere")) == []
    assert [each.id for each in client.references(limit=7)] == ids[:7]
    assert len(list(client.references(state="passive"))) == 11 and not list(client.references(state="activated"))
    with pytest.raises(HomingError, match="unknown state 'lost'"):
        list(client.references(state="lost"))


def test_a_reference_is_read_and_removed(client: homing.Client, tmp_path: Path) -> None:
    (outcome,) = client.add(tiny_photos(tmp_path / "new", 1))
    assert outcome.id is not None
    one = client.reference(outcome.id)
    assert one.photo == "0000.png" and one.state == "passive" and one.releases == ()
    assert one.sha256 == homing.Photo.load(outcome.photo).sha256
    (removed,) = client.remove(outcome.id)
    assert (removed.state, removed.id, removed.photo) == ("removed", outcome.id, "0000.png")
    with pytest.raises(NotFoundError, match=f"no reference has the id {outcome.id}$"):
        client.reference(outcome.id)
    (failed,) = client.remove(outcome.id)
    assert failed.state == "failed" and (failed.photo, failed.reason) == (str(outcome.id), "no reference has this id")


def test_references_are_removed_by_ids_files_and_folders(client: homing.Client, tmp_path: Path, photos: Path) -> None:
    files = tiny_photos(tmp_path / "new", 4)
    first, *_ = client.add(files)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "0001.png").write_bytes((photos / "camera.png").read_bytes())  # same name, other bytes
    assert first.id is not None
    outcomes = client.remove([first.id, files[1], tmp_path / "new", tmp_path / "other"])
    reported = {(each.state, each.photo) for each in outcomes}
    assert reported == {
        ("removed", "0000.png"),
        ("failed", str(files[0])),
        *(("removed", str(path)) for path in files[1:]),
        ("failed", f"{tmp_path}/other/0001.png"),
    }
    assert sorted(each.photo for each in client.references()) == sorted(REFERENCES)


@pytest.mark.slow
def test_outcomes_are_reported_and_remain_if_the_connection_is_lost(own_process: Process, tmp_path: Path) -> None:
    paths = tiny_photos(tmp_path / "many", 40)  # sent in two requests
    reported: list[homing.Outcome] = []

    def report(outcome: homing.Outcome) -> None:
        reported.append(outcome)
        if len(reported) == 1:
            own_process.stop(signal.SIGKILL)

    with homing.Client(own_process.address) as client:
        outcomes = client.add(paths, on_outcome=report)
        assert reported == outcomes and [each.photo for each in outcomes] == [str(path) for path in paths]
        assert [each.state for each in outcomes] == ["added"] * 32 + ["failed"] * 8
        assert str(outcomes[-1].reason).startswith(f"{own_process.address} cannot be reached")
        with pytest.raises(HomingError, match="cannot be reached"):  # without any outcome it is raised
            client.add(paths)
    with homing.Collection.open(own_process.folder) as collection:
        assert collection.info().photos == 3 + 32


def test_client_info(client: homing.Client) -> None:
    about = client.info()
    assert about.photos == about.passive == 3 and about.references == 3 + about.distractors
    assert about.version == homing.__version__ and "homing" in about.recipes


def test_problems_are_one_line_that_names_the_photo(client: homing.Client, copy: Path, tmp_path: Path) -> None:
    (tmp_path / "drawing.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    with pytest.raises(UnsupportedError, match=rf"^{tmp_path}/drawing.svg: SVG [^\n]+$"):
        client.search(tmp_path / "drawing.svg")
    with pytest.raises(HomingError, match=r"^k: [^\n]+$"):
        client.search(copy, k=0)
    with pytest.raises(HomingError, match=r"^k: "):
        client.search([copy, copy], k=0)


def test_wrong_addresses_are_errors(server: Server, copy: Path) -> None:
    with (
        homing.Client("http://127.0.0.1:1") as unreachable,
        pytest.raises(HomingError, match=r"127.0.0.1:1 cannot be reached"),
    ):
        unreachable.info()
    with homing.Client(f"{server.address}/elsewhere") as other, pytest.raises(HomingError):
        other.search(copy)
    with pytest.raises(HomingError, match="must begin with http"):
        homing.Client("127.0.0.1:8321")
    with pytest.raises(HomingError, match="printable ASCII"):
        homing.Client(server.address, "schlüssel")


@pytest.mark.slow
def test_the_client_imports_no_server_libraries() -> None:
    script = "import sys, homing; homing.Client; assert not {'fastapi', 'uvicorn', 'pydantic'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)
