"""`homing search --show`: queries beside their matches, on one page."""

from pathlib import Path

import pytest
from PIL import Image
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
    assert page.count("data:image/jpeg") == 5  # query and match, the same part, what differs; the query again
    assert str(photos / "flower.jpg") in page
    assert "a stranger of the background" in page
    assert "by chance 1 in " in page


def test_files_that_are_gone_get_a_line(desk: Path, photos: Path) -> None:
    homing("search", desk / "c.homing", photos / "rocket.jpg", "-k", 1, "--show", desk / "gone.html")
    page = (desk / "gone.html").read_text()
    assert page.count("data:image/jpeg") == 1
    assert "gone.jpg: " in page


def test_no_match_is_said(desk: Path, photos: Path) -> None:
    query = photos / "chelsea.png"
    homing("search", desk / "c.homing", query, "--false-matches", "1e-4", "--show", desk / "none.html")
    assert "No match." in (desk / "none.html").read_text()


def test_a_page_that_cannot_be_written_is_told(desk: Path) -> None:
    (desk / "file").write_text("")
    with pytest.raises(HomingError, match="cannot write"):
        homing("search", desk / "c.homing", desk / "crop.png", "-k", 1, "--show", desk / "file" / "page.html")
