"""Real servers on this machine: S3 with buckets, one for all tests of a process, and HTTP."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import HTTPServer
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from fsspec import AbstractFileSystem

if TYPE_CHECKING:
    from moto.server import ThreadedMotoServer


@contextmanager
def running_s3() -> Iterator[ThreadedMotoServer]:
    """Run an S3 server. The environment has its address and keys."""
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
        yield server
    S3FileSystem.clear_instance_cache()
    server.stop()


@contextmanager
def running_http(server: HTTPServer) -> Iterator[str]:
    """Run an HTTP server in a thread; yields its address."""
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="session")
def s3_server() -> Iterator[AbstractFileSystem]:
    """An S3 server, as a file system. The environment has its address and keys."""
    from s3fs import S3FileSystem

    with running_s3():
        yield S3FileSystem()


@pytest.fixture
def s3(s3_server: AbstractFileSystem) -> str:
    """The address of an empty bucket."""
    bucket = f"agency-{secrets.token_hex(4)}"
    s3_server.mkdir(bucket)
    return f"s3://{bucket}"
