"""Migrate to another codebook: nothing is lost, both generations can be searched, and the switch is atomic."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import faiss
import numpy as np
import pytest
import torch
from tests.conftest import descriptors
from torch import nn

from homing.codebooks import Codebook
from homing.collection import Collection, delete_previous, migrate, switch
from homing.errors import CollectionError, HomingError
from homing.extractors import NetworkExtractor, describe_images
from homing.photo import Photo


def network(seed: int) -> NetworkExtractor:
    torch.manual_seed(seed)
    layers = nn.Sequential(
        nn.Conv2d(3, 8, 5, stride=4), nn.ReLU(), nn.Conv2d(8, 32, 5, stride=4), nn.AdaptiveAvgPool2d(1)
    )
    return NetworkExtractor(layers, name="tiny", size=64, device="cpu")


TINY = network(0)


def book(spec: str = "IVF4,PQ8x4", tiny: NetworkExtractor = TINY, seed: int = 0) -> Codebook:
    rows = descriptors(500, seed=seed, dim=tiny.dim).numpy()
    return Codebook.train(rows, spec=spec, extractor=tiny, name=f"{spec} {seed}")


@pytest.fixture
def path(photos: Path, tmp_path: Path) -> Path:
    """A collection of four photos, two of them activated."""
    shutil.copytree(photos, tmp_path / "photos")
    with Collection.create(tmp_path / "c", codebook=book(), extractor=TINY) as collection:
        collection.add(tmp_path / "photos")
        to_activate = [tmp_path / "photos" / name for name in ("flower.jpg", "rocket.jpg")]
        assert {each.state for each in collection.activate(to_activate, tmp_path / "out", recipe="paper")} == {
            "activated"
        }
    return tmp_path / "c"


def results_of(path: Path, generation: str = "current", extractor: NetworkExtractor = TINY) -> list:
    with Collection.open(path, extractor=extractor, generation=generation) as opened:
        return [opened.search(photo, k=4) for photo in sorted((path.parent / "photos").iterdir())]


def test_both_generations_can_be_searched_until_they_are_deleted(path: Path) -> None:
    before, new = results_of(path), book("PQ8x4")
    done = migrate(path, new, extractor=TINY)
    assert (done.photos, done.missing) == (4, [])
    assert results_of(path) == before
    assert _codebooks(path) == ("IVF4,PQ8x4 0", "PQ8x4 0", None)
    with Collection.open(path, extractor=TINY, generation="next") as opened:
        assert opened.codebook.fingerprint == new.fingerprint
        for ids, codes in opened.storage.codes():
            stored = opened.storage.descriptors(ids)
            rows = torch.from_numpy(np.stack([stored[number][0] for number in ids.tolist()]).astype(np.float32))
            assert np.array_equal(codes, new.encode(rows))
    after = results_of(path, "next")
    for photo, matches in zip(sorted((path.parent / "photos").iterdir()), after, strict=True):
        assert str(photo) in [match.photo for match in matches if match.distance == matches[0].distance]
    switch(path, extractor=TINY)
    assert results_of(path) == after
    assert results_of(path, "previous") == before
    assert _codebooks(path) == ("PQ8x4 0", None, "IVF4,PQ8x4 0")
    delete_previous(path)
    assert results_of(path) == after
    with pytest.raises(CollectionError, match="no previous generation"):
        results_of(path, "previous")
    assert sorted(each.name for each in path.iterdir()) == ["current", "generation-2", "snapshot.lock", "writer.lock"]
    migrate(path, book("PQ4x4"), extractor=TINY)
    switch(path, extractor=TINY)
    delete_previous(path)
    assert sorted(each.name for each in path.iterdir()) == ["current", "generation-3", "snapshot.lock", "writer.lock"]
    assert {match.photo for matches in results_of(path) for match in matches} == {
        str(photo) for photo in (path.parent / "photos").iterdir()
    }


def _codebooks(path: Path) -> tuple[str, str | None, str | None]:
    with Collection.open(path, extractor=TINY) as opened:
        about = opened.info()
    return about.codebook, about.next_codebook, about.previous_codebook


def test_gains_are_measured_on_the_released_files(path: Path) -> None:
    new = book("IVF4,PQ8x4", seed=5)
    done = migrate(path, new, extractor=TINY)
    assert len(done.gain_kept) + len(done.gain_lost) == 2
    assert not done.gain_unknown
    with_gain = {each.photo for each in done.gain_kept}
    for name in ("flower.jpg", "rocket.jpg"):
        original, released = (
            describe_images(TINY, [Photo.load(folder / name).pixels()])
            for folder in (path.parent / "photos", path.parent / "out")
        )
        code = new.reconstruct(original)
        nearer = (released - code).norm() ** 2 < 0.999 * (original - code).norm() ** 2
        inside = new.cells(original) == new.cells(released)
        assert (str(path.parent / "photos" / name) in with_gain) == bool(nearer and inside)


def test_gains_with_the_same_quantizer_and_without_compression(path: Path) -> None:
    with Collection.open(path, extractor=TINY) as opened:
        old = opened.codebook
    same = faiss.serialize_index(old.new_faiss()).tobytes()
    about = {"name": "duplicate", "extractor": "tiny", "extractor_fingerprint": old.extractor_fingerprint}
    duplicate = Codebook(same, old.null_distribution, spec="IVF4,PQ8x04", **about)
    assert len(migrate(path, duplicate, extractor=TINY).gain_kept) == 2
    shutil.rmtree(path / "generation-2")
    lost = migrate(path, book("Flat"), extractor=TINY)
    assert [each.reason for each in lost.gain_lost] == [
        "'Flat' stores descriptors without compression: nothing can be gained"
    ] * 2


def test_photos_that_lost_their_gain_can_be_activated_again(path: Path) -> None:
    _all(path, "DELETE FROM released_descriptors")  # so that gains are measured on the files
    (path.parent / "out" / "rocket.jpg").rename(path.parent / "elsewhere.jpg")
    done = migrate(path, book("RQ4x4"), extractor=TINY)
    assert [Path(each.released).name for each in done.gain_unknown] == ["rocket.jpg"]
    done = switch(path, extractor=TINY)
    (path.parent / "elsewhere.jpg").rename(path.parent / "out" / "rocket.jpg")
    with Collection.open(path, extractor=TINY) as opened:
        assert opened.info().activated == len(done.gain_kept)
        assert [each.state for each in opened.add(path.parent / "out")] == ["known"] * 2
        outcomes = opened.activate(path.parent / "photos" / "rocket.jpg", path.parent / "out", recipe="paper")
        assert [each.state for each in outcomes] == ["activated"]


def test_released_files_are_not_needed_if_their_descriptors_are_stored(path: Path) -> None:
    before = migrate(path, book("IVF4,PQ8x4", seed=5), extractor=TINY)
    shutil.rmtree(path / "generation-2")
    shutil.rmtree(path.parent / "out")
    assert migrate(path, book("IVF4,PQ8x4", seed=5), extractor=TINY) == before
    switch(path, extractor=TINY)
    rows = [_all(folder, "SELECT * FROM released_descriptors") for folder in (path, path / "generation-2")]
    assert rows[0] == rows[1]
    assert len(rows[0]) == 2


def test_a_restored_released_file_is_evaluated_again(path: Path) -> None:
    _all(path, "DELETE FROM released_descriptors")  # so that gains are measured on the files
    (path.parent / "out").rename(path.parent / "away")
    assert len(migrate(path, book("IVF4,PQ8x4", seed=5), extractor=TINY).gain_unknown) == 2
    (path.parent / "away").rename(path.parent / "out")
    assert not migrate(path, book("IVF4,PQ8x4", seed=5), extractor=TINY).gain_unknown
    assert len(_all(path / "generation-2", "SELECT * FROM released_descriptors")) == 2


def test_releases_that_a_later_one_replaced_are_passed_over(path: Path) -> None:
    photo, out = path.parent / "photos" / "rocket.jpg", path.parent / "out"
    with Collection.open(path, extractor=TINY) as opened:
        (outcome,) = opened.activate(photo, out, recipe="paper", psnr=40)
        assert outcome.overwrote
        assert opened.check() == []
    other = network(1)
    done = migrate(path, book(tiny=other), extractor=other)
    assert not done.gain_unknown
    assert sorted(Path(each.released).name for each in (*done.gain_kept, *done.gain_lost)) == [
        "flower.jpg",
        "rocket.jpg",
    ]
    (out / "rocket.jpg").unlink()
    shutil.rmtree(path / "generation-2")
    done = migrate(path, book(tiny=other), extractor=other)
    assert [Path(each.released).name for each in done.gain_unknown] == ["rocket.jpg"]


def _all(folder: Path, query: str) -> list[tuple]:
    with closing(sqlite3.connect(folder / "catalog.sqlite", isolation_level=None)) as database:
        return database.execute(query).fetchall()


def test_an_interrupted_migration_is_resumed(path: Path, monkeypatch) -> None:
    monkeypatch.setattr("homing.collection.storage.base.Storage.valid_rows.__defaults__", (2,))
    with pytest.raises(KeyboardInterrupt):
        migrate(path, book("PQ8x4"), extractor=TINY, advance=_stop_at(2))
    with Collection.open(path, extractor=TINY, generation="next") as opened:
        assert opened.info().photos == 2
    assert migrate(path, book("PQ8x4"), extractor=TINY).photos == 4


def _stop_at(number: int) -> Callable[[], None]:
    left = iter(range(number - 1))

    def advance() -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt

    return advance


def test_another_extractor_reads_the_files_again(path: Path) -> None:
    other = network(1)
    changed_file = path.parent / "photos" / "camera.png"
    original = changed_file.read_bytes()
    changed_file.write_bytes(original + b"changed")
    done = migrate(path, book(tiny=other), extractor=other)
    assert done.photos == 3
    assert [reason.startswith(str(changed_file)) for reason in done.missing] == [True]
    with pytest.raises(CollectionError, match="--leave-missing"):
        switch(path, extractor=other)
    with Collection.open(path, extractor=TINY) as current:
        assert current.codebook.extractor_fingerprint == TINY.fingerprint
        assert [each.state for each in current.add(changed_file)] == ["added"], (
            "the old generation can be changed until the switch"
        )
    changed_file.write_bytes(original)
    assert migrate(path, book(tiny=other), extractor=other).photos == 4
    assert switch(path, extractor=other, leave_missing=True).photos == 4
    for photo, matches in zip(
        sorted((path.parent / "photos").iterdir()), results_of(path, extractor=other), strict=True
    ):
        assert str(photo) in [match.photo for match in matches if match.distance == matches[0].distance]


def test_wrong_calls_are_rejected(path: Path) -> None:
    with pytest.raises(CollectionError, match="already"):
        migrate(path, book(), extractor=TINY)
    with pytest.raises(CollectionError, match=r"no next generation; build it with: homing migrate .* --codebook"):
        switch(path)
    migrate(path, book("PQ8x4"), extractor=TINY)
    with pytest.raises(CollectionError, match="is already being migrated to codebook 'PQ8x4 0'"):
        migrate(path, book("RQ4x4"), extractor=TINY)
    with pytest.raises(HomingError, match="did you mean 'next'"):
        Collection.open(path, generation="nxt")
    with pytest.raises(CollectionError, match="no previous generation"):
        delete_previous(path)
    (path / "current").write_text("two")
    with pytest.raises(CollectionError, match="damaged"):
        Collection.open(path)


def test_migrating_back_restores_gains(path: Path) -> None:
    with Collection.open(path, extractor=TINY) as opened:
        first = opened.codebook
    for new, activated in ((book("Flat"), 0), (book("SQ8"), 0), (first, 2)):
        done = migrate(path, new, extractor=TINY)
        assert len(done.gain_kept) == activated
        assert switch(path, extractor=TINY) == done
        with Collection.open(path, extractor=TINY) as opened:
            assert (opened.info().activated, opened.info().unchanged) == (activated, 2 - activated)
    before = {each: each.read_bytes() for each in (path.parent / "out").iterdir()}
    with Collection.open(path, extractor=TINY) as opened:
        to_activate = [path.parent / "photos" / name for name in ("flower.jpg", "rocket.jpg")]
        assert {each.state for each in opened.activate(to_activate, path.parent / "out", recipe="paper")} == {
            "activated"
        }
    assert {each: each.read_bytes() for each in (path.parent / "out").iterdir()} == before, "a file was written again"
