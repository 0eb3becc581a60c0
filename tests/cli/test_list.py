"""`homing list`: filters, pages and JSON."""

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from PIL import Image
from tests.bench.helpers import homing


@pytest.fixture(scope="module")
def collection(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection of four photos, one of them activated."""
    folder = tmp_path_factory.mktemp("list")
    homing("init", folder / "c.homing")
    homing("add", folder / "c.homing", photos)
    homing("activate", folder / "c.homing", photos / "rocket.jpg", "--out", folder / "out", "--recipe", "paper-fast")
    return folder / "c.homing"


def listed(collection: Path, *options: object) -> list[dict]:
    references: list[dict] = json.loads(homing("list", collection, *options, "--json"))
    return references


@pytest.mark.slow
def test_all_references_with_their_releases(collection: Path, photos: Path) -> None:
    references = listed(collection)
    assert {each["photo"] for each in references} == {str(path) for path in photos.iterdir()}
    assert [each["id"] for each in references] == sorted(each["id"] for each in references)
    released = {Path(each["photo"]).name: [Path(file["path"]).name for file in each["releases"]] for each in references}
    assert released == {path.name: ["rocket.jpg"] * (path.name == "rocket.jpg") for path in photos.iterdir()}


def test_the_psnr_of_an_unchanged_photo_is_null(tmp_path: Path) -> None:
    logo = Image.new("RGB", (200, 200), "white")
    logo.paste("red", (50, 50, 150, 150))
    logo.save(tmp_path / "logo.png")
    homing("init", tmp_path / "c.homing")
    homing("activate", tmp_path / "c.homing", tmp_path / "logo.png", "--out", tmp_path / "out")
    (reference,) = listed(tmp_path / "c.homing")
    assert reference["state"] == "unchanged" and [each["psnr"] for each in reference["releases"]] == [None]


def test_times_are_iso_8601(collection: Path) -> None:
    (reference,) = listed(collection, "--state", "activated")
    for time in (reference["added"], reference["releases"][0]["time"]):
        assert "T" in time and datetime.fromisoformat(time).utcoffset() == timedelta(0)


def test_filters_by_state_and_name(collection: Path) -> None:
    assert [Path(each["photo"]).name for each in listed(collection, "--state", "activated")] == ["rocket.jpg"]
    assert len(listed(collection, "--state", "passive")) == 3
    assert listed(collection, "--state", "unchanged") == []
    assert [Path(each["photo"]).name for each in listed(collection, "--name", "FLOW")] == ["flower.jpg"]


def test_after_lists_the_next_page(collection: Path) -> None:
    first = listed(collection, "--limit", 3)
    assert listed(collection, "--limit", 10**30)[:3] == first
    rest = listed(collection, "--after", first[-1]["id"])
    assert [*first, *rest] == listed(collection)
    assert (len(first), len(rest)) == (3, 1)


def test_text_has_a_line_per_reference(collection: Path, photos: Path) -> None:
    headings, *rows, total = homing("list", collection).splitlines()
    assert headings.split() == ["id", "state", "added", "(UTC)", "photo"]
    assert total == "4 references."
    (rocket,) = (row for row in rows if row.endswith(str(photos / "rocket.jpg")))
    assert rocket.split()[1] == "activated"
    (last,) = homing("list", collection, "--limit", 1).splitlines()[1:-1]
    assert f"The next page: --after {last.split()[0]}" in homing("list", collection, "--limit", 1)


def test_an_unknown_state_is_refused(collection: Path) -> None:
    assert homing("list", collection, "--state", "lost", code=2) == ""
