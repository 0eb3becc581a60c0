"""Activate and compare over HTTP."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image
from tests.service.conftest import Server, running_server

from homing import measure
from homing.edits import PAPER
from homing.extractors import Extractor
from homing.photo import Photo


@pytest.fixture(scope="module")
def activation_server(
    template: Path, extractor: Extractor, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A server for the tests of this file."""
    with running_server(
        shutil.copytree(template, tmp_path_factory.mktemp("activated") / "c.homing"), extractor
    ) as server:
        yield server


@pytest.fixture(scope="module")
def beach(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A photo with metadata that is in no collection."""
    path = tmp_path_factory.mktemp("beach") / "beach.jpg"
    with Image.open(photos / "flower.jpg") as flower:
        exif = Image.Exif()
        exif[0x013B] = "Ada"  # Artist
        flower.crop((100, 50, 420, 300)).save(path, quality=92, exif=exif)
    return path


def test_activate_returns_the_file_with_metadata_and_quality(activation_server: Server, beach: Path) -> None:
    answer = activation_server.post("/v1/activate", beach, data={"recipe": "homing-fast", "psnr": "42"})
    assert answer.status_code == 200 and answer.headers["content-type"] == "image/jpeg"
    assert 'filename="beach.jpg"' in answer.headers["content-disposition"]
    assert answer.headers["x-homing-state"] == "activated"
    with Image.open(BytesIO(answer.content)) as released:
        assert released.getexif()[0x013B] == "Ada"
    before, after = Photo.load(beach), Photo.decode(answer.content, "after")
    measured = measure(before.pixels(), after.pixels())
    assert float(answer.headers["x-homing-psnr"]) == pytest.approx(measured.psnr, abs=0.01) and measured.psnr >= 42
    assert float(answer.headers["x-homing-ssim"]) == pytest.approx(measured.ssim, abs=1e-3)
    sizes = [int(answer.headers[f"x-homing-bytes-{when}"]) for when in ("before", "after")]
    assert sizes[1] == len(answer.content) and json.loads(answer.headers["x-homing-notes"]) == []
    number = answer.headers["x-homing-id"]
    one = activation_server.client.get(f"/v1/photos/{number}").json()
    assert one["state"] == "activated" and one["photo"] == "beach.jpg"
    assert one["releases"][0]["sha256"] == hashlib.sha256(answer.content).hexdigest()
    assert activation_server.client.get(f"/v1/photos/{number}/released").content == answer.content


def test_a_report_has_quality_edited_copies_and_pictures(activation_server: Server, beach: Path) -> None:
    answer = activation_server.post("/v1/activate?report=true", beach, data={"recipe": "homing-fast"})
    assert answer.status_code == 200
    report = answer.json()
    assert report["state"] == "activated" and report["quality"]["psnr"] >= 43.8
    assert report["bytes_before"] > 0 and report["bytes_after"] > 0 and isinstance(report["notes"], list)
    assert [each["edit"] for each in report["edited_copies"]] == [edit.label for edit in PAPER]
    assert sum(each["found_after"] for each in report["edited_copies"]) >= sum(
        each["found_before"] for each in report["edited_copies"]
    )
    sizes = set()
    for name in ("before", "after", "difference", "jnd"):
        picture = activation_server.client.get(report["pictures"][name])
        assert picture.status_code == 200
        with Image.open(BytesIO(picture.content)) as image:
            sizes.add(image.size)
    assert sizes == {(320, 250)}
    assert Photo.decode(activation_server.client.get(report["released"]).content, "released").format == "JPEG"


def test_a_report_shows_the_latest_release(activation_server: Server, tmp_path: Path, photos: Path) -> None:
    with Image.open(photos / "flower.jpg") as flower:
        flower.crop((0, 0, 200, 200)).save(tmp_path / "part.png")
    first = activation_server.post("/v1/activate", tmp_path / "part.png", data={"recipe": "homing-fast"})
    after = f"/v1/photos/{first.headers['x-homing-id']}/pictures/after"
    picture = activation_server.client.get(after)
    assert activation_server.client.get(after, headers={"If-None-Match": picture.headers["etag"]}).status_code == 304
    data = {"recipe": "homing-fast", "psnr": "80"}
    report = activation_server.post("/v1/activate?report=true", tmp_path / "part.png", data=data).json()
    assert (first.headers["x-homing-state"], report["state"]) == ("activated", "unchanged")
    assert len(report["edited_copies"]) == len(PAPER)
    assert activation_server.client.get(report["released"]).content == (tmp_path / "part.png").read_bytes()
    again = activation_server.client.get(after, headers={"If-None-Match": picture.headers["etag"]})
    assert again.status_code == 200 and again.content != picture.content
    assert again.headers["cache-control"] == "private, no-cache"


def test_activate_answers_even_if_the_reference_is_removed_meanwhile(
    activation_server: Server, beach: Path, tmp_path: Path
) -> None:
    with Image.open(beach) as image:
        image.rotate(90, expand=True).save(tmp_path / "turned.jpg")
    (outcome,) = activation_server.post("/v1/photos", tmp_path / "turned.jpg").json()["outcomes"]
    with ThreadPoolExecutor(1) as pool:
        activated = pool.submit(
            activation_server.post, "/v1/activate", tmp_path / "turned.jpg", data={"recipe": "homing-fast"}
        )
        time.sleep(0.3)
        assert activation_server.client.delete(f"/v1/photos/{outcome['id']}").status_code == 204
    answer = activated.result()
    assert answer.status_code == 200 and Photo.decode(answer.content, "after").format == "JPEG"


def test_another_format_is_written_on_request(activation_server: Server, beach: Path) -> None:
    answer = activation_server.post("/v1/activate", beach, data={"recipe": "homing-fast", "format": "png"})
    assert answer.headers["content-type"] == "image/png" and answer.content.startswith(b"\x89PNG")
    assert 'filename="beach.png"' in answer.headers["content-disposition"]


def test_a_released_file_is_not_activated_again(activation_server: Server, beach: Path) -> None:
    released = activation_server.post("/v1/activate", beach, data={"recipe": "homing-fast"}).content
    answer = activation_server.post("/v1/activate", ("again.jpg", released))
    assert answer.status_code == 422 and "released version of beach.jpg" in answer.json()["detail"]


def test_a_photo_that_cannot_change_is_returned_unchanged_with_a_reason(
    activation_server: Server, tmp_path: Path
) -> None:
    Image.new("RGB", (64, 64), "white").save(tmp_path / "white.png")
    answer = activation_server.post(
        "/v1/activate", tmp_path / "white.png", data={"recipe": "homing-fast", "psnr": "70"}
    )
    assert answer.status_code == 200 and answer.headers["x-homing-state"] == "unchanged"
    assert answer.content == (tmp_path / "white.png").read_bytes()
    assert answer.headers["x-homing-reason"] and "x-homing-psnr" not in answer.headers


@pytest.mark.parametrize(
    "values", [{"recipe": "homign"}, {"psnr": "high"}, {"psnr": "3"}, {"format": "gif"}, {"recepi": "homing"}]
)
def test_invalid_options_are_refused_in_one_line(
    activation_server: Server, beach: Path, values: dict[str, str]
) -> None:
    answer = activation_server.post("/v1/activate", beach, data=values)
    ((name, value),) = values.items()
    assert answer.status_code == 422
    assert value in answer.json()["detail"] or name in answer.json()["detail"]


def test_no_pictures_without_a_release(activation_server: Server) -> None:
    (rocket,) = activation_server.client.get("/v1/photos?name=rocket").json()["photos"]
    answer = activation_server.client.get(f"/v1/photos/{rocket['id']}/pictures/after")
    assert answer.status_code == 404 and "has no released file" in answer.json()["detail"]
    assert activation_server.client.get(f"/v1/photos/{rocket['id']}/pictures/..%2Fafter").status_code == 404


def test_removing_deletes_the_released_file(activation_server: Server, photos: Path) -> None:
    answer = activation_server.post("/v1/activate", photos / "camera.png", data={"recipe": "homing-fast"})
    folder = (
        activation_server.folder
        / "uploads"
        / "released"
        / hashlib.sha256((photos / "camera.png").read_bytes()).hexdigest()
    )
    assert [file.name for file in folder.iterdir()] == ["camera.png"]
    assert activation_server.client.delete(f"/v1/photos/{answer.headers['x-homing-id']}").status_code == 204
    assert not folder.exists()


def test_a_crop_is_aligned_with_its_photo(activation_server: Server, beach: Path, photos: Path) -> None:
    files = {"first": beach.read_bytes(), "second": (photos / "flower.jpg").read_bytes()}
    answer = activation_server.client.post("/v1/compare", files=files)
    assert answer.status_code == 200
    body = answer.json()
    assert body["aligned"] and not body["same_size"] and body["quality"] is None
    assert set(body["pictures"]) == {"first", "second", "framed", "overlay", "difference"}
    assert all(picture.startswith("data:image/jpeg;base64,") for picture in body["pictures"].values())


def test_photos_of_one_size_have_a_quality(activation_server: Server, photos: Path) -> None:
    files = {"first": (photos / "rocket.jpg").read_bytes(), "second": (photos / "rocket.jpg").read_bytes()}
    same = activation_server.client.post("/v1/compare", files=files).json()
    assert same["same_size"] and same["quality"] == {"psnr": None, "ssim": 1.0, "linf": 0.0}
    assert same["distance"] == pytest.approx(0, abs=1e-3)
    files = {"first": (photos / "rocket.jpg").read_bytes(), "second": (photos / "chelsea.png").read_bytes()}
    other = activation_server.client.post("/v1/compare", files=files).json()
    assert (
        not other["aligned"]
        and other["distance"] > 0.5
        and other["false_match_probability"] > same["false_match_probability"]
    )
    assert set(other["pictures"]) == {"first", "second"}
