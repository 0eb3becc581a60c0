"""Activation in worker processes."""

from functools import partial
from pathlib import Path

import pytest
import torch

from homing import Collection, codebooks
from homing.activation import RECIPES, activate_batch
from homing.activation.pipeline import ReleasePipeline, activate_in_worker, use_processes
from homing.errors import PhotoError
from homing.photo import Photo, PhotoFile

FAST = RECIPES["homing-fast"]


def test_workers_write_what_activate_writes(photos: Path, extractor) -> None:
    names = ("flower.jpg", "chelsea.png")
    files = [PhotoFile(name, (photos / name).read_bytes()) for name in names]
    items = [
        (files[0].name, files[0]),
        ("bad", PhotoFile("bad.jpg", b"hello")),
        ("done", "before"),
        ("too", files[1]),
    ]
    codebook = codebooks.load(extractor.name)
    work = partial(activate_in_worker, codebook=codebook, recipe=FAST)
    by_name = dict(ReleasePipeline(list, work, list).run_in_processes(items))
    assert by_name["done"] == "before"
    assert isinstance(by_name["bad"], PhotoError) and "bad.jpg" in str(by_name["bad"])
    alone = activate_batch(
        [Photo.decode(file.data, file.name) for file in files], extractor=extractor, codebook=codebook, recipe=FAST
    )
    for ours, theirs in zip((by_name["flower.jpg"], by_name["too"]), alone, strict=True):
        assert (ours.state, ours.sha256) == ("activated", theirs.sha256)
        assert ours.quality.psnr == pytest.approx(theirs.quality.psnr, abs=0.1)
        assert ours.loss_after == pytest.approx(
            theirs.loss_after, rel=0.05
        )  # computed with one thread instead of several


def test_processes_are_used_for_thousands_of_photos_and_a_gpu() -> None:
    assert use_processes(5000, torch.device("cuda"))
    assert not use_processes(50, torch.device("cuda"))
    assert not use_processes(5000, torch.device("cpu"))


def test_a_job_in_processes_gives_the_results_of_one_without(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("homing.collection.release.use_processes", lambda *_: True)
    (tmp_path / "in").mkdir()
    for name in ("flower.jpg", "rocket.jpg"):
        (tmp_path / "in" / name).write_bytes((photos / name).read_bytes())
    (tmp_path / "in" / "bad.jpg").write_text("hello")
    with Collection.create(tmp_path / "c.homing") as collection:
        for _ in range(2):  # the second run has nothing to do
            results = collection.activate(tmp_path / "in", tmp_path / "out", recipe=FAST, processes=True)
            by_name = {Path(outcome.photo).name: outcome for outcome in results}
            assert {name: outcome.state for name, outcome in by_name.items()} == {
                "bad.jpg": "failed",
                "rocket.jpg": "activated",
                "flower.jpg": "activated",
            }
        assert (tmp_path / "out" / "rocket.jpg").is_file()
        assert collection.info().photos == 2
