"""A storage server that stops is reported at once in one line, and not as damage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from moto.server import ThreadedMotoServer
from s3fs import S3FileSystem
from tests.collection.lance.conftest import LANCE
from tests.collection.tiny import tiny_codebook, tiny_extractor, tiny_photos
from tests.servers import running_s3

from homing.collection import Collection
from homing.errors import StorageUnavailableError


@pytest.fixture
def server() -> Iterator[ThreadedMotoServer]:
    """A separate server, which the test stops."""
    with running_s3() as server:
        S3FileSystem().mkdir("agency")
        yield server


def test_a_job_stops_if_the_server_is_down(server: ThreadedMotoServer, tmp_path: Path) -> None:
    photos = tiny_photos(tmp_path / "photos", 40)
    reported = []
    address = "s3://agency/photos.lance"
    with Collection.create(address, codebook=tiny_codebook(LANCE), extractor=tiny_extractor()) as collection:
        collection.add(photos[:2], on_outcome=reported.append)
        server.stop()
        with pytest.raises(StorageUnavailableError, match=r"cannot be reached.*run the same command again"):
            collection.add(photos, on_outcome=reported.append)
    assert [each.state for each in reported] == ["added", "added"]
