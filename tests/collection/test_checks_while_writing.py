"""A check during concurrent writes reports no false findings; a repair needs the lock."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.collection.tiny import RECIPES, tiny_codebook, tiny_extractor, tiny_photos

from homing.collection import Collection, check
from homing.collection.storage.sqlite import SqliteStorage
from homing.errors import BusyError


@pytest.mark.slow
def test_a_check_during_writes_finds_nothing(tmp_path: Path) -> None:
    photos, path = tiny_photos(tmp_path / "photos", 8), tmp_path / "c.homing"

    def work() -> None:
        with Collection.open(path, extractor=tiny_extractor()) as writer:
            for turn in range(30):
                writer.activate(photos, tmp_path / "out", recipe=RECIPES[turn % 2])
                writer.remove(photos[turn % 8])
                (tmp_path / "out" / photos[turn % 8].name).unlink()

    with Collection.create(path, codebook=tiny_codebook(), extractor=tiny_extractor()) as reader:
        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(work)
            while not writing.done():
                assert reader.check() == []
            writing.result()
        assert reader.check(repair=True) == []


def test_a_repair_is_rejected_during_writes(tmp_path: Path) -> None:
    path = tmp_path / "c.homing"
    with Collection.create(path, codebook=tiny_codebook(), extractor=tiny_extractor()) as collection:
        with SqliteStorage.lock(path):
            for repair in (lambda: check(path, repair=True), lambda: collection.check(repair=True)):
                with pytest.raises(BusyError):
                    repair()
            assert check(path) == collection.check() == []
        assert check(path, repair=True) == collection.check(repair=True) == []
