"""`homing search --html`: a page with queries and their matches."""

import base64
import io
import re
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser
from tests.bench.helpers import homing

from homing.errors import HomingError


@pytest.fixture(scope="module")
def workspace(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two photos in a collection, one of which has been deleted, and a crop of the other."""
    folder = tmp_path_factory.mktemp("show")
    (folder / "missing.jpg").write_bytes((photos / "rocket.jpg").read_bytes())
    homing("init", folder / "c.homing", "--with-distractors")
    homing("add", folder / "c.homing", photos / "flower.jpg", folder / "missing.jpg")
    (folder / "missing.jpg").unlink()
    flower = Image.open(photos / "flower.jpg")
    flower.crop((100, 50, flower.width - 60, flower.height - 30)).save(folder / "crop.png")
    return folder


def test_a_copy_is_aligned_with_its_match(workspace: Path, photos: Path) -> None:
    output = homing(
        "search", workspace / "c.homing", workspace / "crop.png", "-k", 2, "--html", workspace / "pages" / "page.html"
    )
    assert f"The page: {workspace / 'pages' / 'page.html'}" in output
    page = (workspace / "pages" / "page.html").read_text()
    assert "with the frame of the query" in page
    assert page.count("data:image/jpeg") == 4  # query, match, aligned match, difference
    assert str(photos / "flower.jpg") in page
    assert "A distractor: the collection has its code" not in page, "what is no match is shown beside a match"
    assert re.search("crop.png</code>: (possible )?match</h2>", page)
    assert "false-match probability 1 in " in page


def test_pictures_are_two_in_a_row_on_a_phone(workspace: Path, chromium: Browser) -> None:
    homing("search", workspace / "c.homing", workspace / "crop.png", "-k", 1, "--html", workspace / "phone.html")
    with closing(chromium.new_page(viewport={"width": 390, "height": 844})) as tab:
        tab.goto((workspace / "phone.html").as_uri())
        boxes = [each.bounding_box() for each in tab.locator("figure img").all()]
        assert len(boxes) == 4
        assert all(box and box["width"] > 150 and box["x"] + box["width"] <= 390 for box in boxes)


def test_a_missing_file_is_reported_on_the_page(workspace: Path, photos: Path) -> None:
    homing("search", workspace / "c.homing", photos / "rocket.jpg", "-k", 1, "--html", workspace / "missing.html")
    page = (workspace / "missing.html").read_text()
    assert page.count("data:image/jpeg") == 1
    assert "missing.jpg: " in page


def test_a_file_that_has_changed_is_not_shown_as_the_match(photos: Path, tmp_path: Path) -> None:
    added = tmp_path / "<b>added&.jpg"
    added.write_bytes((photos / "rocket.jpg").read_bytes())
    homing("init", tmp_path / "c.homing")
    homing("add", tmp_path / "c.homing", added)
    added.write_bytes((photos / "flower.jpg").read_bytes())
    homing("search", tmp_path / "c.homing", photos / "rocket.jpg", "--html", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert page.count("data:image/jpeg") == 1
    assert "&lt;b&gt;added&amp;.jpg: has changed since it was added" in page


def test_a_caption_above_the_photo_is_part_of_the_difference(workspace: Path, photos: Path) -> None:
    flower = Image.open(photos / "flower.jpg").convert("RGB")
    query = Image.new("RGB", (flower.width, flower.height + 100), "red")
    query.paste(flower, (0, 100))
    query.save(workspace / "caption.png")
    homing("search", workspace / "c.homing", workspace / "caption.png", "-k", 1, "--html", workspace / "caption.html")
    differs = re.findall(r'base64,([^"]*)" alt="difference"', (workspace / "caption.html").read_text())[0]
    top = np.asarray(Image.open(io.BytesIO(base64.b64decode(differs))))[5:15]
    np.testing.assert_allclose(top.reshape(-1, 3).mean(axis=0), [255, 0, 0], atol=8)


def test_no_match_is_reported_on_the_page(workspace: Path, photos: Path) -> None:
    query = photos / "chelsea.png"
    homing("search", workspace / "c.homing", query, "--max-false-match", "1e-4", "--html", workspace / "none.html")
    assert "No match, or none with a false-match probability" in (workspace / "none.html").read_text()


def test_without_a_match_the_nearest_reference_is_shown(workspace: Path, photos: Path) -> None:
    homing("search", workspace / "c.homing", photos / "chelsea.png", "--html", workspace / "nearest.html")
    page = (workspace / "nearest.html").read_text()
    assert "chelsea.png</code>: no match</h2>" in page
    assert page.count("<article>") == 1 and "A distractor: the collection has its code" in page


def test_a_page_that_cannot_be_written_is_an_error(workspace: Path) -> None:
    (workspace / "file").write_text("")
    with pytest.raises(HomingError, match="cannot write"):
        homing(
            "search",
            workspace / "c.homing",
            workspace / "crop.png",
            "-k",
            1,
            "--html",
            workspace / "file" / "page.html",
        )
