"""Buckets on a real S3 server on this machine, one server per test process."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest
from fsspec import AbstractFileSystem


@pytest.fixture(scope="session")
def s3_server() -> Iterator[AbstractFileSystem]:
    """A server, as a file system. The environment has its address and keys."""
    from moto.server import ThreadedMotoServer
    from s3fs import S3FileSystem

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "tests")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        S3FileSystem.clear_instance_cache()
        yield S3FileSystem()
    S3FileSystem.clear_instance_cache()
    server.stop()


@pytest.fixture
def s3(s3_server: AbstractFileSystem) -> str:
    """The address of an empty bucket."""
    bucket = f"agency-{secrets.token_hex(4)}"
    s3_server.mkdir(bucket)
    return f"s3://{bucket}"
