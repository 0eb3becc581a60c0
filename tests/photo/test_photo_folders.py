"""find_photos() lists files and the photos of folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from homing.errors import HomingError
from homing.photo import find_photos


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.JPG", "a.png", "sub/c.tiff", "sub/words.txt", ".hidden.jpg", ".git/d.jpg", "sub/.e.jpg", "z.heic"):
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path / "photos"


def test_a_folder_gives_its_photos_at_any_depth(folder):
    found = find_photos([folder])
    assert [photo.name.as_posix() for photo in found] == ["a.png", "b.JPG", "sub/c.tiff", "z.heic"]
    assert [photo.path for photo in found] == [folder / photo.name for photo in found]


def test_a_named_file_is_taken_with_any_suffix(folder):
    path = folder / "sub" / "words.txt"
    (found,) = find_photos([path])
    assert (found.path, found.name) == (path, Path("words.txt"))


def test_the_same_file_is_listed_once(folder):
    (folder / "link.png").symlink_to(folder / "a.png")
    found = find_photos([folder / "b.JPG", folder, folder / "sub" / "c.tiff"])
    assert [photo.path.name for photo in found] == ["b.JPG", "a.png", "c.tiff", "z.heic"]


def test_circular_links(folder):
    (folder / "sub" / "up").symlink_to(folder)
    (folder / "sub" / "nowhere").symlink_to(folder / "sub" / "nowhere")
    assert len(find_photos([folder])) == 4


def test_missing_paths_and_folders_without_photos_are_refused(tmp_path):
    with pytest.raises(HomingError, match="no such file or folder: "):
        find_photos([tmp_path / "missing"])
    with pytest.raises(HomingError, match="no photos in folder: "):
        find_photos([tmp_path])
