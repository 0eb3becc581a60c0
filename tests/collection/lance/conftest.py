"""Small collections in Lance: in a folder, and in a bucket."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.collection.tiny import tiny_codebook, tiny_extractor

from homing.collection import Collection

LANCE = "IVF8,PQ12x8"


@pytest.fixture(params=["folder", "bucket"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A location for a new collection in Lance."""
    if request.param == "bucket":
        return f"{request.getfixturevalue('s3')}/photos.lance"
    return str(tmp_path / "photos.lance")


@pytest.fixture
def opening() -> Callable[..., Collection]:
    """A function that opens a collection with the tiny network."""

    def opened(where: str | Path, **options: object) -> Collection:
        return Collection.open(where, extractor=tiny_extractor(), **options)

    return opened


@pytest.fixture(autouse=True)
def _in_the_dataset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search in the dataset instead of in memory, although there are few references."""
    monkeypatch.setattr("homing.indexes.lance.MAX_CODES_IN_MEMORY", 0)


@pytest.fixture
def lance_collection(address: str) -> Iterator[Collection]:
    """An empty collection in Lance, in a folder and in a bucket."""
    with Collection.create(address, codebook=tiny_codebook(LANCE), extractor=tiny_extractor()) as collection:
        yield collection


@pytest.fixture
def local_collection(tmp_path: Path) -> Iterator[Collection]:
    """An empty collection in Lance in a folder, for tests that do not depend on the storage."""
    where = tmp_path / "photos.lance"
    with Collection.create(where, codebook=tiny_codebook(LANCE), extractor=tiny_extractor()) as collection:
        yield collection
