"""`homing search`: options that find more edited copies."""

import json
from pathlib import Path

import pytest
from PIL import Image
from tests.bench.helpers import homing

from homing.errors import HomingError


@pytest.fixture(scope="module")
def used(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a collection of four photos, and a copy rotated by 90 degrees."""
    folder = tmp_path_factory.mktemp("options")
    homing("init", folder / "c.homing", "--with-distractors")
    homing("add", folder / "c.homing", photos)
    with Image.open(photos / "rocket.jpg") as image:
        image.transpose(Image.Transpose.ROTATE_90).save(folder / "copy.png")
    return folder


def nearest(used: Path, *options: object) -> dict:
    (answer,) = json.loads(homing("search", used / "c.homing", used / "copy.png", *options, "--json"))
    return answer["matches"][0]


def test_options_change_the_search(used: Path, photos: Path) -> None:
    by_code = nearest(used, "--variants", "--probe-radius", 0.05)
    again = nearest(used, "--rerank", 20, "--probe-radius", 0.1)
    variants = nearest(used, "--rerank", 20, "--probe-radius", 0.05, "--variants")
    assert by_code["photo"] == again["photo"] == variants["photo"] == str(photos / "rocket.jpg")
    assert variants["distance"] < 0.01 < 0.05 < again["distance"] < by_code["distance"]
    assert (by_code["compared"], again["compared"], variants["compared"]) == ("code", "descriptor", "descriptor")
    assert "descriptor" in homing("search", used / "c.homing", used / "copy.png", "--rerank", 20)


def test_a_probe_radius_of_zero_scans_one_cell(used: Path) -> None:
    few, many = (
        json.loads(homing("search", used / "c.homing", used / "copy.png", "-k", 5000, *options, "--json"))
        for options in (("--probe-radius", 0), ("--probe-radius", 0.2))
    )
    assert 0 < len(few[0]["matches"]) < len(many[0]["matches"])


def test_a_query_that_fails_has_a_reason_and_no_verdict(used: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.jpg").write_text("hello")
    (answer,) = json.loads(homing("search", used / "c.homing", tmp_path / "broken.jpg", "--json", code=1))
    assert "not a photo" in answer.pop("reason")
    assert answer == {"query": str(tmp_path / "broken.jpg"), "verdict": None, "matches": [], "search": None}


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--probes", 2, "--probe-radius", 0.1], "got both: 2 and 0.1"),
        (["--rerank", 5], r"rerank must be at least k \(10\)"),
    ],
)
def test_wrong_calls_are_refused(used: Path, options: list, line: str) -> None:
    with pytest.raises(HomingError, match=line):
        homing("search", used / "c.homing", used / "copy.png", *options)
