"""Collections in Lance that are quick to work with: in a folder, and in a bucket on a real S3 server."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.collection.tiny import tiny_codebook, tiny_extractor

from homing.collection import Collection

LANCE = "IVF8,PQ12x8"


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of an empty bucket."""
    import s3fs
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    s3fs.S3FileSystem.clear_instance_cache()
    bucket = f"lake-{secrets.token_hex(4)}"
    s3fs.S3FileSystem().mkdir(bucket)
    yield f"s3://{bucket}"
    s3fs.S3FileSystem.clear_instance_cache()
    server.stop()


@pytest.fixture(params=["folder", "bucket"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a collection in Lance may be made."""
    if request.param == "bucket":
        return f"{request.getfixturevalue('s3')}/photos.lance"
    return str(tmp_path / "photos.lance")


@pytest.fixture
def opening() -> Callable[..., Collection]:
    """Opens a collection of the tiny network."""

    def opened(where: str | Path, **options: object) -> Collection:
        return Collection.open(where, extractor=tiny_extractor(), **options)

    return opened


@pytest.fixture
def lake(address: str) -> Iterator[Collection]:
    """An empty collection in Lance."""
    with Collection.create(address, codebook=tiny_codebook(LANCE), extractor=tiny_extractor()) as made:
        yield made
