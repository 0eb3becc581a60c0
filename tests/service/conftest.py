"""A real server on this machine, over a real collection."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import uvicorn
from fastapi import APIRouter
from tests.service.chromium import chromium, open_page  # noqa: F401  # fixtures
from tests.service.server_process import START_TIMEOUT, serve

from homing.collection import Collection
from homing.extractors import Extractor
from homing.service import Limits, create_app
from homing.service.auth import ROLES, Keys, new_key
from homing.service.executors import Writer
from homing.service.server import _HTTPProtocol, bind
from homing.service.state import Service

REFERENCES = ("chelsea.png", "rocket.jpg", "flower.jpg")
"""References of the collection; camera.png is not one of them."""
TIMEOUT = 60  # seconds; generous, for busy machines
_MEMORY_BYTES = 60_000  # bytes of photos that a low-memory server holds at once


@dataclass(frozen=True)
class Server:
    """A running service, its address, and a client of it."""

    address: str
    folder: Path
    client: httpx.Client

    def post(self, path: str, *files: Path | tuple[str, bytes], field: str = "photo", **options: Any) -> httpx.Response:
        """Post photos: paths, or names and bytes."""
        named = [(each.name, each.read_bytes()) if isinstance(each, Path) else each for each in files]
        return self.client.post(path, files=[(field, each) for each in named], **options)


@dataclass(frozen=True)
class Process(Server):
    """A running `homing serve`."""

    process: subprocess.Popen[bytes]

    def stop(self, by: signal.Signals = signal.SIGTERM) -> int:
        """Stop it by a signal and return its exit code."""
        self.process.send_signal(by)
        return self.process.wait(START_TIMEOUT)


Start = Callable[..., Process]
StartInProcess = Callable[..., tuple[httpx.Client, Service]]


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory, photos: Path, extractor: Extractor) -> Path:
    """A collection of three photos and the distractors, to be copied by tests."""
    folder = tmp_path_factory.mktemp("service") / "template.homing"
    with Collection.create(folder, with_distractors=True, extractor=extractor) as collection:
        collection.add([photos / name for name in REFERENCES])
    return folder


@contextmanager
def servers(template: Path) -> Iterator[Start]:
    """Start servers over a copy of the collection or a given folder; all are stopped at the end."""
    with ExitStack() as stack:

        def start(folder: Path, *options: str, headers: dict[str, str] | None = None) -> Process:
            if not folder.exists():
                shutil.copytree(template, folder)
            served = stack.enter_context(serve(folder, *options))
            client = stack.enter_context(httpx.Client(base_url=served.address, timeout=120, headers=headers))
            return Process(served.address, folder, client, served.process)

        yield start


@pytest.fixture
def start_server(template: Path) -> Iterator[Start]:
    """Starts servers for one test."""
    with servers(template) as start:
        yield start


@pytest.fixture(scope="module")
def start_shared_server(template: Path) -> Iterator[Start]:
    """Start servers shared by the tests of a file; each takes most of a gigabyte."""
    with servers(template) as start:
        yield start


@pytest.fixture(scope="session")
def server(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A server without keys, shared by all tests; each test removes what it adds."""
    with servers(template) as start:
        yield start(tmp_path_factory.mktemp("served") / "all.homing")


@pytest.fixture
def own_process(start_server: Start, tmp_path: Path) -> Process:
    """A `homing serve` process for one test, which may stop it."""
    return start_server(tmp_path / "own.homing")


@pytest.fixture
def own_server(template: Path, extractor: Extractor, tmp_path: Path) -> Iterator[Server]:
    """A server for one test, in a thread of this process, which starts faster."""
    with running_server(shutil.copytree(template, tmp_path / "own.homing"), extractor) as server:
        yield server


@pytest.fixture(scope="session")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A key file with one key per role, and the keys."""
    path = tmp_path_factory.mktemp("keys") / "keys.toml"
    return path, {role: new_key(path, f"{role}-user", role) for role in ROLES}


@pytest.fixture
def keys(key_file: tuple[Path, dict[str, str]]) -> dict[str, str]:
    """The key of each role."""
    return key_file[1]


@pytest.fixture(scope="module")
def keyed_server(
    template: Path,
    extractor: Extractor,
    key_file: tuple[Path, dict[str, str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Server]:
    """A server with keys."""
    folder = shutil.copytree(template, tmp_path_factory.mktemp("guarded") / "guarded.homing")
    with running_server(folder, extractor, keys=Keys.read(key_file[0])) as server:
        yield server


@pytest.fixture
def copy(photos: Path, tmp_path: Path) -> Path:
    """An edited copy of rocket.jpg."""
    from PIL import Image

    with Image.open(photos / "rocket.jpg") as rocket:
        rocket.resize((320, 214)).save(tmp_path / "copy.jpg", quality=60)
    return tmp_path / "copy.jpg"


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait until a condition holds; fails after a timeout."""
    end = time.monotonic() + TIMEOUT
    while not holds():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.01)


@contextmanager
def blocked(executor: ThreadPoolExecutor | Writer) -> Iterator[None]:
    """Block all threads of an executor, or the writer."""
    go_on, threads = Event(), getattr(executor, "_max_workers", 1)
    begun = [Event() for _ in range(threads)]
    for each in begun:
        executor.submit(lambda each=each: (each.set(), go_on.wait(10 * TIMEOUT)))
    try:
        assert all(each.wait(TIMEOUT) for each in begun)
        yield
    finally:
        go_on.set()


@contextmanager
def in_thread(
    folder: Path, extractor: Extractor, *, routers: Sequence[APIRouter] = (), **options: Any
) -> Iterator[tuple[httpx.Client, Service]]:
    """A server in a thread of this process, with a client and access to its internals."""
    with Collection.open(folder, extractor=extractor) as collection, bind("127.0.0.1", 0) as listening:
        app = create_app(collection, **options)
        for router in routers:
            app.include_router(router)
        config = uvicorn.Config(app, http=_HTTPProtocol, log_config=None)
        served = uvicorn.Server(config)
        thread = Thread(target=served.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            address = f"http://127.0.0.1:{listening.getsockname()[1]}"
            with httpx.Client(base_url=address, timeout=TIMEOUT) as client:
                while not served.started:
                    assert thread.is_alive(), "the server did not start"
                    time.sleep(0.01)
                yield client, app.state.service
        finally:
            served.should_exit = True
            thread.join()


@contextmanager
def running_server(folder: Path, extractor: Extractor, **options: Any) -> Iterator[Server]:
    """A server in a thread of this process, as a `Server`."""
    with in_thread(folder, extractor, **options) as (client, _):
        yield Server(str(client.base_url).rstrip("/"), folder, client)


@pytest.fixture
def start_in_process(template: Path, extractor: Extractor, tmp_path: Path) -> Iterator[StartInProcess]:
    """Start a server in this process with given limits."""
    with ExitStack() as stack:

        def start(keys: Keys | None = None, **limits: int) -> tuple[httpx.Client, Service]:
            shutil.copytree(template, tmp_path / "inside.homing")
            served = in_thread(tmp_path / "inside.homing", extractor, keys=keys, limits=Limits(**limits))
            return stack.enter_context(served)

        yield start


@pytest.fixture
def low_memory_address(start_in_process: StartInProcess) -> str:
    """The address of a server whose memory limit holds one small photo at a time."""
    client, _ = start_in_process(memory_bytes=_MEMORY_BYTES)
    return str(client.base_url).rstrip("/")


@contextmanager
def memory_full(address: str) -> Iterator[ExitStack]:
    """Fill the memory limit of a low-memory server with an unfinished request; closing the stack frees it."""
    url = urlsplit(address)
    head = f"POST /v1/search HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Length: {_MEMORY_BYTES}\r\n"
    head += "Content-Type: multipart/form-data; boundary=b\r\n\r\n"
    part = b'--b\r\nContent-Disposition: form-data; name="photo"; filename="slow.jpg"\r\n\r\n'
    end = time.monotonic() + TIMEOUT
    with ExitStack() as connections:
        refused = False
        while not refused:  # the probing request itself may have taken the memory
            assert time.monotonic() < end, "the memory limit is never reached"
            slow = connections.enter_context(socket.create_connection((url.hostname, url.port)))
            slow.sendall(head.encode() + part + bytes(_MEMORY_BYTES - 1000))
            answer = httpx.post(f"{address}/v1/search", files={"photo": ("asks.jpg", bytes(2000))}, timeout=TIMEOUT)
            refused = answer.status_code == HTTPStatus.TOO_MANY_REQUESTS
        yield connections


def wait_for_job(client: httpx.Client, address: str) -> dict[str, Any]:
    """Wait until a job is finished; its progress must not decrease."""
    seen, end = -1, time.monotonic() + START_TIMEOUT
    while time.monotonic() < end:
        job: dict[str, Any] = client.get(address).json()
        assert job["done"] >= seen and job["done"] == len(job["outcomes"]) <= job["total"]
        seen = job["done"]
        if job["state"] in ("done", "failed"):
            return job
        time.sleep(0.1)
    raise AssertionError("the job did not finish")
