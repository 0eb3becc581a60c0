"""`homing search --show`: queries beside their matches, on one page."""

import base64
import io
import re
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser
from tests.evaluation.small import homing

from homing.errors import HomingError


@pytest.fixture(scope="module")
def desk(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two photos in a collection, one of which is gone by now, and a crop of the other."""
    folder = tmp_path_factory.mktemp("show")
    (folder / "gone.jpg").write_bytes((photos / "rocket.jpg").read_bytes())
    homing("init", folder / "c.homing", "--with-background")
    homing("add", folder / "c.homing", photos / "flower.jpg", folder / "gone.jpg")
    (folder / "gone.jpg").unlink()
    flower = Image.open(photos / "flower.jpg")
    flower.crop((100, 50, flower.width - 60, flower.height - 30)).save(folder / "crop.png")
    return folder


def test_a_copy_is_laid_over_its_match(desk: Path, photos: Path) -> None:
    said = homing("search", desk / "c.homing", desk / "crop.png", "-k", 2, "--show", desk / "pages" / "page.html")
    assert f"The page: {desk / 'pages' / 'page.html'}" in said
    page = (desk / "pages" / "page.html").read_text()
    assert "where the query lies in it" in page
    assert page.count("data:image/jpeg") == 4  # query and match, the same part, what differs
    assert str(photos / "flower.jpg") in page
    assert "a stranger of the background" in page
    assert "by chance 1 in " in page


def test_on_a_phone_pictures_are_two_in_a_row(desk: Path, chromium: Browser) -> None:
    homing("search", desk / "c.homing", desk / "crop.png", "-k", 1, "--show", desk / "phone.html")
    with closing(chromium.new_page(viewport={"width": 390, "height": 844})) as tab:
        tab.goto((desk / "phone.html").as_uri())
        boxes = [each.bounding_box() for each in tab.locator("figure img").all()]
        assert len(boxes) == 4
        assert all(box and box["width"] > 150 and box["x"] + box["width"] <= 390 for box in boxes)


def test_files_that_are_gone_get_a_line(desk: Path, photos: Path) -> None:
    homing("search", desk / "c.homing", photos / "rocket.jpg", "-k", 1, "--show", desk / "gone.html")
    page = (desk / "gone.html").read_text()
    assert page.count("data:image/jpeg") == 1
    assert "gone.jpg: " in page


def test_a_file_that_is_another_by_now_is_not_shown_for_the_match(photos: Path, tmp_path: Path) -> None:
    added = tmp_path / "<b>added&.jpg"
    added.write_bytes((photos / "rocket.jpg").read_bytes())
    homing("init", tmp_path / "c.homing")
    homing("add", tmp_path / "c.homing", added)
    added.write_bytes((photos / "flower.jpg").read_bytes())
    homing("search", tmp_path / "c.homing", photos / "rocket.jpg", "--show", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert page.count("data:image/jpeg") == 1
    assert "&lt;b&gt;added&amp;.jpg: is another file by now" in page


def test_a_caption_above_the_photo_is_among_what_differs(desk: Path, photos: Path) -> None:
    flower = Image.open(photos / "flower.jpg").convert("RGB")
    query = Image.new("RGB", (flower.width, flower.height + 100), "red")
    query.paste(flower, (0, 100))
    query.save(desk / "caption.png")
    homing("search", desk / "c.homing", desk / "caption.png", "-k", 1, "--show", desk / "caption.html")
    differs = re.findall(r'base64,([^"]*)" alt="what differs"', (desk / "caption.html").read_text())[0]
    top = np.asarray(Image.open(io.BytesIO(base64.b64decode(differs))))[5:15]
    np.testing.assert_allclose(top.reshape(-1, 3).mean(axis=0), [255, 0, 0], atol=8)


def test_no_match_is_said(desk: Path, photos: Path) -> None:
    query = photos / "chelsea.png"
    homing("search", desk / "c.homing", query, "--false-matches", "1e-4", "--show", desk / "none.html")
    assert "No match as unlikely" in (desk / "none.html").read_text()


def test_a_page_that_cannot_be_written_is_told(desk: Path) -> None:
    (desk / "file").write_text("")
    with pytest.raises(HomingError, match="cannot write"):
        homing("search", desk / "c.homing", desk / "crop.png", "-k", 1, "--show", desk / "file" / "page.html")
