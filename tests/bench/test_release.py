"""Photos released for a bench."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from homing.activation import RECIPES
from homing.bench.data import ReleasedPhoto, describe_copies
from homing.bench.runs import ReleaseResult, release, release_modified
from homing.edits import parse
from homing.errors import HomingError


@pytest.fixture
def originals(photos: Path, tmp_path: Path) -> list[ReleasedPhoto]:
    """A photo that exists and one that is missing."""
    shutil.copy(photos / "flower.jpg", tmp_path)
    return [ReleasedPhoto(name, tmp_path / name, seed) for seed, name in enumerate(("missing.jpg", "flower.jpg"))]


def released(originals: list[ReleasedPhoto], folder: Path, extractor, codebook) -> ReleaseResult:
    activated: list[int] = []
    release_result = release(
        originals,
        folder,
        extractor=extractor,
        codebook=codebook,
        recipe=RECIPES["paper-fast"],
        advance=lambda: activated.append(1),
    )
    assert len(activated) == len(originals)
    return release_result


def test_names_that_leave_the_folder_are_refused(originals: list[ReleasedPhoto], tmp_path: Path) -> None:
    flower = originals[1]
    named, before = replace(flower, source=str(flower.file.absolute())), flower.file.read_bytes()
    with pytest.raises(HomingError, match="would be written outside"):
        release_modified([named], tmp_path / "out", modify=lambda photos: photos, key="", advance=lambda: None)
    assert flower.file.read_bytes() == before


def test_a_missing_photo_does_not_fail_the_others(
    originals: list[ReleasedPhoto], tmp_path: Path, extractor, codebook
) -> None:
    release_result = released(originals, tmp_path / "out", extractor, codebook)
    assert [(item.source, item.seed) for item in release_result.files] == [("flower.jpg", 1)]
    assert release_result.files[0].file.read_bytes() != (tmp_path / "flower.jpg").read_bytes()
    assert release_result.qualities[0].psnr >= 43.8
    (line,) = release_result.failures
    assert line.startswith(str(tmp_path / "missing.jpg"))


def test_a_photo_too_large_for_memory_fails(
    originals: list[ReleasedPhoto], tmp_path: Path, extractor, codebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("homing.bench.runs.activate_batch", lambda *_, **__: torch.empty(2**55))
    release_result = released(originals, tmp_path / "out", extractor, codebook)
    assert not release_result.files
    assert release_result.failures[1] == f"{tmp_path / 'flower.jpg'}: too large for the available memory"


def test_only_failed_or_changed_photos_are_released_again(
    originals: list[ReleasedPhoto], photos: Path, tmp_path: Path, extractor, codebook
) -> None:
    release_result = released(originals, tmp_path / "out", extractor, codebook)
    (first,) = release_result.files
    before = first.file.stat().st_mtime_ns
    assert released(originals, tmp_path / "out", extractor, codebook).qualities == release_result.qualities
    assert first.file.stat().st_mtime_ns == before
    shutil.copy(photos / "camera.png", tmp_path / "missing.jpg")  # a PNG file, whatever its suffix
    both = released(originals, tmp_path / "out", extractor, codebook)
    assert [item.source for item in both.files] == ["missing.jpg", "flower.jpg"]
    assert first.file.stat().st_mtime_ns == before
    shutil.copy(photos / "chelsea.png", tmp_path / "flower.jpg")
    changed = released(originals, tmp_path / "out", extractor, codebook)
    assert first.file.stat().st_mtime_ns != before
    assert changed.qualities[0] == both.qualities[0]
    assert changed.qualities[1] != both.qualities[1]
    first.file.write_bytes(first.file.read_bytes()[:1000])
    assert released(originals, tmp_path / "out", extractor, codebook).qualities == changed.qualities
    assert len(first.file.read_bytes()) > 1000


@pytest.mark.parametrize(
    "harm", ["5", "[]", "{}", '{"source": "flower.jpg"}', '{"source": 5}', "quality", "seconds", "file"]
)
def test_photos_of_invalid_log_lines_are_released_again(
    originals: list[ReleasedPhoto], tmp_path: Path, extractor, codebook, harm: str
) -> None:
    release_result, log = released(originals, tmp_path / "out", extractor, codebook), tmp_path / "out.jsonl"
    *before, last = log.read_text().splitlines()
    assert json.loads(last)["source"] == "flower.jpg"
    wrong = json.dumps(json.loads(last) | {harm: {"psnr": 1}}) if harm.isalpha() else harm
    log.write_text("\n".join([*before, wrong]) + "\n")
    assert released(originals, tmp_path / "out", extractor, codebook).qualities == release_result.qualities


def test_another_version_of_homing_releases_again(
    originals: list[ReleasedPhoto], tmp_path: Path, extractor, codebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first,) = released(originals, tmp_path / "out", extractor, codebook).files
    before = first.file.stat().st_mtime_ns
    monkeypatch.setattr("homing.bench.runs.__version__", "0.0.1")
    released(originals, tmp_path / "out", extractor, codebook)
    assert first.file.stat().st_mtime_ns != before


@pytest.mark.parametrize("name", ["__version__", "PIL.__version__"])
def test_another_version_of_homing_edits_again(
    photos: Path, tmp_path: Path, extractor, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    files = [ReleasedPhoto("flower.jpg", photos / "flower.jpg", 0)]
    for count in (1, 1, 2):
        if count == 2:
            monkeypatch.setattr(f"homing.bench.data.{name}", "0.0.1")
        describe_copies(extractor, files, [parse("identity")], tmp_path, lambda: None)
        assert len(list(tmp_path.glob("copies-*.npy"))) == count


def test_a_file_that_cannot_be_written_is_named(
    originals: list[ReleasedPhoto], tmp_path: Path, extractor, codebook
) -> None:
    (tmp_path / "out" / "flower.jpg").mkdir(parents=True)
    with pytest.raises(HomingError, match=r"cannot write .*flower\.jpg"):
        released(originals, tmp_path / "out", extractor, codebook)
