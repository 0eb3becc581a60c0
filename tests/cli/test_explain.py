"""`homing explain`: position of a reference, and the edits it survives."""

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser
from tests.bench.helpers import homing
from tests.service.chromium import check_accessibility

from homing.collection import Collection
from homing.edits import PAPER
from homing.errors import HomingError
from homing.explain import explain
from homing.extractors import describe_images
from homing.photo import Photo
from homing.reports import write_explanation


@pytest.fixture(scope="module")
def workspace(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three passive photos and an activated one among distractors, and its released file."""
    folder = tmp_path_factory.mktemp("explain")
    homing("init", folder / "c.homing", "--with-distractors")
    homing("add", folder / "c.homing", photos)
    homing("activate", folder / "c.homing", photos / "rocket.jpg", "--out", folder / "out")
    return folder


@pytest.fixture(scope="module")
def explanation(workspace: Path, photos: Path) -> dict:
    return json.loads(homing("explain", workspace / "c.homing", photos / "rocket.jpg", "--json"))


@pytest.mark.slow
def test_positions_agree_with_numpy(workspace: Path, photos: Path, explanation: dict) -> None:
    with Collection.open(workspace / "c.homing") as collection:
        book = collection.codebook
        files = photos / "rocket.jpg", workspace / "out" / "rocket.jpg"
        rows = describe_images(collection.extractor, [Photo.load(file).pixels() for file in files])
        behind, centers = book.reconstruct(rows[:1]).numpy(), book.all_centroids.numpy()
        cell = int(book.cells(rows[:1])[0])
    assert explanation["cell"] == cell
    for row, position in zip(rows.numpy(), (explanation["original"], explanation["released"]), strict=True):
        squared = np.square(row - centers).sum(axis=1)
        assert position["distance"] == pytest.approx(float(np.linalg.norm(row - behind)), abs=2e-3)
        assert position["margin"] == pytest.approx(np.delete(squared, cell).min() - squared[cell], abs=2e-3)
    assert explanation["released"]["distance"] < explanation["original"]["distance"]
    assert explanation["released"]["margin"] > explanation["original"]["margin"]


def test_edits_agree_with_a_search(explanation: dict) -> None:
    assert [each["edit"] for each in explanation["edits"]] == [edit.label for edit in PAPER]
    first = explanation["edits"][0]
    assert first | {"false_match_probability": 0} == {
        "edit": "identity",
        "before": True,
        "one_probe": True,
        "default": True,
        "false_match_probability": 0,
    }
    assert first["false_match_probability"] < 1e-3
    assert sum(each["one_probe"] for each in explanation["edits"]) >= sum(
        each["before"] for each in explanation["edits"]
    )
    assert all((each["false_match_probability"] is not None) == each["default"] for each in explanation["edits"])


def test_neighbors_are_in_the_same_cell(workspace: Path, photos: Path, explanation: dict) -> None:
    assert str(photos / "rocket.jpg") not in [match["photo"] for match in explanation["neighbors"]]
    with Collection.open(workspace / "c.homing") as collection:
        numbers = {collection.distractors.name(n): n for n in range(len(collection.distractors))}
        positions = [numbers[match["photo"]] for match in explanation["neighbors"] if match["state"] == "distractor"]
        assert positions
        stored = collection.distractors.codes[positions][:, :2].copy().view(np.uint16)  # the cell number is first
        assert set(stored.ravel().tolist()) == {explanation["cell"]}


def test_a_reference_by_id_or_released_file(workspace: Path, explanation: dict) -> None:
    for name in (str(explanation["id"]), str(workspace / "out" / "rocket.jpg")):
        other = json.loads(homing("explain", workspace / "c.homing", name, "--no-edits", "--json"))
        assert (other["photo"], other["released"]) == (explanation["photo"], explanation["released"])
        assert other["edits"] == []


def test_text_and_page(workspace: Path, photos: Path) -> None:
    text = homing("explain", workspace / "c.homing", photos / "rocket.jpg", "--out", workspace / "page.html")
    for words in ("activated, in cell", "margin to the next cell", "rotation-90", "nearest in its cell"):
        assert words in text
    page = (workspace / "page.html").read_text()
    assert page.count("data:image/jpeg") == 3
    assert "rotation-90" in page
    assert "http" not in page.replace("http://www.w3.org", "")


def test_the_page_fits_a_phone(workspace: Path, photos: Path, chromium: Browser) -> None:
    name = "/cell/me/" + "a_very_long_name_" * 14 + ".jpg"
    with Collection.open(workspace / "c.homing") as collection:
        it = explain(collection, str(photos / "rocket.jpg"))
    neighbors = [replace(match, photo=name) for match in it.neighbors]
    write_explanation(
        replace(it, photo=name, neighbors=neighbors, missing=[f"{name}: is gone"]), workspace / "phone.html"
    )
    with closing(chromium.new_page(viewport={"width": 390, "height": 844})) as tab:
        tab.goto((workspace / "phone.html").as_uri())
        check_accessibility(tab)
        for each in tab.locator("img, h1, p, .wide").all():
            box = each.bounding_box()
            assert box and box["x"] >= 0 and box["x"] + box["width"] <= 390, each
        for each in tab.locator("h1, p").all():
            assert each.evaluate("each => each.scrollWidth <= each.clientWidth"), "a name is cut off"


def test_a_passive_photo_has_no_release(workspace: Path, photos: Path) -> None:
    other = json.loads(homing("explain", workspace / "c.homing", photos / "camera.png", "--json"))
    assert (other["state"], other["released"], other["missing"]) == ("passive", None, [])
    assert {each["before"] for each in other["edits"]} == {None}


def test_missing_files_are_reported(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "missing.jpg").write_bytes((photos / "rocket.jpg").read_bytes())
    homing("init", tmp_path / "c.homing")
    homing("add", tmp_path / "c.homing", tmp_path / "missing.jpg")
    (tmp_path / "missing.jpg").unlink()
    other = json.loads(homing("explain", tmp_path / "c.homing", tmp_path / "missing.jpg", "--json"))
    assert other["edits"] == []
    (line,) = other["missing"]
    assert "missing.jpg" in line


@pytest.mark.slow
def test_changed_files_are_neither_shown_nor_edited(photos: Path, tmp_path: Path) -> None:
    """The original is replaced by a photo of another size, then by a file that is not a photo."""
    source, out = tmp_path / "<b>it&.jpg", tmp_path / "out"
    source.write_bytes((photos / "rocket.jpg").read_bytes())
    homing("init", tmp_path / "c.homing")
    homing("activate", tmp_path / "c.homing", source, "--out", out, "--recipe", "paper-fast")
    for other, why in ((photos / "flower.jpg", "has changed since it was recorded"), (photos.parent, "not a photo")):
        source.write_bytes(other.read_bytes() if other.is_file() else b"nothing")
        for name in (out / source.name, source):
            explanation = json.loads(
                homing("explain", tmp_path / "c.homing", name, "--out", tmp_path / "page.html", "--json")
            )
            (line,) = explanation["missing"]
            assert why in line
            assert {each["before"] for each in explanation["edits"]} == {None}
            page = (tmp_path / "page.html").read_text()
            assert page.count("data:image/jpeg") == 1
            assert "&lt;b&gt;it&amp;.jpg" in page
    (out / source.name).write_bytes((photos / "flower.jpg").read_bytes())
    explanation = json.loads(homing("explain", tmp_path / "c.homing", explanation["id"], "--json"))
    assert (explanation["released"], explanation["edits"], len(explanation["missing"])) == (None, [], 2)


def test_a_damaged_descriptor_is_reported(photos: Path, tmp_path: Path) -> None:
    homing("init", tmp_path / "c.homing")
    homing("add", tmp_path / "c.homing", photos / "rocket.jpg")
    with Collection.open(tmp_path / "c.homing") as collection, collection.storage._transaction() as change:
        change.execute("UPDATE descriptors SET vector = zeroblob(7)")
    with pytest.raises(HomingError, match="reference 1 has lost its descriptor; repair it with: homing check"):
        homing("explain", tmp_path / "c.homing", 1, "--no-edits")


@pytest.mark.parametrize("name", ["unknown.jpg", "4711", "9" * 30, "\u0661"])  # an Arabic 1
def test_an_unknown_reference_is_refused(workspace: Path, name: str) -> None:
    with pytest.raises(HomingError, match=f"{name} is neither a reference nor a released file of"):
        homing("explain", workspace / "c.homing", name)
    with pytest.raises(HomingError, match="'' cannot be the name of a file"):
        homing("explain", workspace / "c.homing", "")
