"""Wrong calls of the retrieval bench are refused with one line, before any work."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.bench.helpers import homing, skimage_photos
from tests.conftest import FakeExtractor, descriptors

from homing.bench.benches.retrieval import RetrievalSettings
from homing.codebooks import Codebook
from homing.errors import HomingError


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Distractor photos: not among the released ones."""
    return skimage_photos(tmp_path_factory.mktemp("others"), ("astronaut.png", "coffee.png"))


def bench(photos: Path, others: Path, out: Path, *more: object) -> None:
    homing("bench", "retrieval", "--photos", photos, "--distractor-photos", others, "--out", out, *more)


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (["--index", "IVF4,PQ8x8"], "give both --index SPEC and --train-photos PHOTOS"),
        (["--distractor-photos", "{tmp}/bad/bad.jpg"], "cannot read descriptors from"),
        (["--distractor-photos", "{tmp}/flat.npy"], "must hold (N, 512) descriptors of 'homing-1', got (3,)"),
        (
            ["--distractor-photos", "{tmp}/words.npy"],
            "must hold (N, 512) descriptors of 'homing-1', got (2, 512) of <U1",
        ),
        (["--distractor-photos", "{tmp}/none.npy"], "holds no descriptors"),
        (["--distractor-photos", "{tmp}/nan.npy"], "must hold descriptors of unit norm"),
        (["--distractor-photos", "{tmp}/long.npy"], "must hold descriptors of unit norm"),
        (["--distractor-photos", "{tmp}/odd.npy"], "odd.json is damaged"),
        (["--distractors", "1" + 18 * "0"], "No space left on device"),
        (["--index", "IVF4,PQ8x8", "--train-photos", "{photos}"], "among the photos and among the training photos"),
        (
            ["--index", "IVF4,PQ8x8", "--train-photos", "{others}"],
            "among the distractors and among the training photos",
        ),
        (["--index", "IVF4,PQ8x8", "--train-photos", "{tmp}/bad", "--out", "{tmp}/bad/out"], "lies inside"),
        (["--out", "{tmp}/detected"], "holds the results of homing bench detection; choose another --out"),
        (["--probes", "foo"], "--probes takes comma-separated whole numbers from 1, or exact, got 'foo'"),
        (["--probes", "0"], "got 0"),
        (["--probes", "1,-1"], "got '-1'"),
        (["--probes", "1,,16"], "got ''"),
        (["--recipes", "passive,papper"], "unknown recipe 'papper'; did you mean 'paper'?"),
        (["--codebook", "homing-2"], "unknown codebook 'homing-2'; did you mean 'homing-1'?"),
        (["--photos", "{tmp}/empty"], "no photos in folder"),
        (["--distractor-photos", "{tmp}/empty"], "no photos in folder"),
        (["--distractor-photos", "{tmp}/bad", "--distractors", "5"], "none of the 1 distractor photos can be read"),
        (["--distractor-photos", "{photos}"], "cannot be its own distractor"),
        (["--distractor-photos", "{tmp}/copied"], "cannot be its own distractor"),
        (["--out", "{tmp}/bad/bad.jpg/out"], "cannot write into the out folder"),
        (["--out", "{others}/out"], "lies inside"),
    ],
)
def test_a_wrong_call_gets_one_line(photos: Path, others: Path, tmp_path: Path, more: list[str], line: str) -> None:
    (tmp_path / "empty").mkdir()
    one = np.eye(2, 512, dtype=np.float32)
    files = {"flat": np.zeros(3), "words": one.astype("U1"), "none": one[:0], "nan": one * np.nan, "long": 2 * one}
    for name, array in {**files, "odd": one}.items():
        np.save(tmp_path / f"{name}.npy", array)
    (tmp_path / "odd.json").write_text('{"rows": "two"}')
    (tmp_path / "detected").mkdir()
    (tmp_path / "detected" / "results.json").write_text('{"command": "homing bench detection --photos p"}')
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "bad.jpg").write_text("hello")
    (tmp_path / "copied").mkdir()
    shutil.copy(next(photos.iterdir()), tmp_path / "copied" / "another-name.png")
    filled = (each.format(tmp=tmp_path, photos=photos, others=others) for each in more)
    with pytest.raises(HomingError) as raised:
        bench(photos, others, tmp_path / "out", *filled)
    assert line in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not list(tmp_path.glob("out/.*"))


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (["--index", "PQ4x4", "--index", "FOO", "--train-photos", "{rows}"], "'FOO' is not a FAISS factory string"),
        (
            ["--index", "PQ4x4", "--index", "IVF512,Flat", "--train-photos", "{rows}"],
            "needs at least 512 training descriptors",
        ),
        (
            ["--codebook", "homing-1", "--codebook", "imagenet-lite0", "--distractor-photos", "{rows}"],
            "of 'imagenet-lite0'",
        ),
    ],
)
def test_all_codebooks_are_checked_before_the_first_is_measured(
    photos: Path, others: Path, tmp_path: Path, more: list[str], line: str
) -> None:
    np.save(tmp_path / "rows.npy", descriptors(300, dim=512).numpy())
    with pytest.raises(HomingError, match=line):
        bench(photos, others, tmp_path / "out", *(each.format(rows=tmp_path / "rows.npy") for each in more))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (["--codebook", "{book}"], "codebook 'mine' has no bundled distractors; give photos to search among with"),
        (["--codebook", "homing-1", "--codebook", "{book}"], "codebook 'mine' has no bundled distractors"),
        (
            ["--index", "PQ4x4", "--train-photos", "{photos}"],
            "a codebook trained with --index has no bundled distractors",
        ),
    ],
)
def test_without_bundled_distractors_photos_are_needed(
    photos: Path, extractor, tmp_path: Path, more: list[str], line: str
) -> None:
    own = Codebook.train(descriptors(300, dim=512).numpy(), spec="PQ4x4", extractor=extractor, name="mine")
    own.write(tmp_path / "mine.codebook")
    filled = (each.format(book=tmp_path / "mine.codebook", photos=photos) for each in more)
    with pytest.raises(HomingError, match=line):
        homing("bench", "retrieval", "--photos", photos, "--out", tmp_path / "out", *filled)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["../mine", "a/b", ".."])
def test_a_codebook_name_that_is_no_folder_name_is_refused(
    photos: Path, others: Path, tmp_path: Path, name: str
) -> None:
    stray = Codebook.train(descriptors(300).numpy(), spec="PQ4x4", extractor=FakeExtractor(), name=name)
    stray.write(tmp_path / "stray.codebook")
    with pytest.raises(HomingError, match="cannot be the name of a folder"):
        bench(photos, others, tmp_path / "out", "--codebook", tmp_path / "stray.codebook")


@pytest.mark.parametrize("probes", [None, True, 1.0, 0, "all"])
def test_invalid_probes_are_refused_in_python(tmp_path: Path, probes: object) -> None:
    with pytest.raises(HomingError, match="--probes takes comma-separated whole numbers from 1"):
        RetrievalSettings(photos=tmp_path, distractor_photos=tmp_path, out=tmp_path, probes=[1, probes])
