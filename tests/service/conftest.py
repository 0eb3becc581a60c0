"""A real server on this machine, over a real collection."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest
import uvicorn

from homing.collection import Collection
from homing.extractors import Extractor
from homing.service import create_app
from homing.service.running import bind

REFERENCES = ("chelsea.png", "rocket.jpg", "flower.jpg")
"""What the collection holds; camera.png is a photo that it does not know."""


@dataclass(frozen=True)
class Server:
    """A running `homing serve`, its address, and a client of it."""

    address: str
    folder: Path
    process: subprocess.Popen[bytes]
    client: httpx.Client

    def post(self, path: str, *files: Path | tuple[str, bytes], field: str = "photo", **options: Any) -> httpx.Response:
        """Post photos: paths, or names and bytes."""
        named = [(each.name, each.read_bytes()) if isinstance(each, Path) else each for each in files]
        return self.client.post(path, files=[(field, each) for each in named], **options)

    def stop(self, by: signal.Signals = signal.SIGTERM) -> int:
        """Stop it by a signal; gives its exit code."""
        self.process.send_signal(by)
        return self.process.wait(60)


Start = Callable[..., Server]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory, photos: Path, extractor: Extractor) -> Path:
    """A collection of three photos among strangers, to be copied."""
    folder = tmp_path_factory.mktemp("service") / "made.homing"
    with Collection.create(folder, with_background=True, extractor=extractor) as collection:
        collection.add([photos / name for name in REFERENCES])
    return folder


@pytest.fixture(scope="session")
def starting(made: Path) -> Iterator[Start]:
    """Starts servers, each over a copy of the collection or over the folder given; stops those that still run."""
    with ExitStack() as stack:

        def start(folder: Path, *options: str, headers: dict[str, str] | None = None) -> Server:
            if not folder.exists():
                shutil.copytree(made, folder)
            command = [sys.executable, "-m", "homing", "serve", str(folder), "--port", "0", *options]
            log = folder.with_suffix(".log")
            with log.open("wb") as said:  # no pipe, which fills up where nobody reads it
                process = subprocess.Popen(command, stderr=said)
            stack.callback(_end, process)
            while process.poll() is None:
                if found := re.search(r"at (http://\S+)", log.read_text()):
                    client = stack.enter_context(httpx.Client(base_url=found[1], timeout=120, headers=headers))
                    return Server(found[1], folder, process, client)
                time.sleep(0.05)
            raise AssertionError(log.read_text())

        yield start


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        process.wait(60)


@pytest.fixture(scope="session")
def server(starting: Start, tmp_path_factory: pytest.TempPathFactory) -> Server:
    """A server without keys for all tests: what a test adds it may find, and removes."""
    return starting(tmp_path_factory.mktemp("served") / "all.homing")


@pytest.fixture
def own_server(starting: Start, tmp_path: Path) -> Server:
    """A server for one test alone."""
    return starting(tmp_path / "own.homing")


@pytest.fixture
def copy(photos: Path, tmp_path: Path) -> Path:
    """An edited copy of rocket.jpg."""
    from PIL import Image

    with Image.open(photos / "rocket.jpg") as rocket:
        rocket.resize((320, 214)).save(tmp_path / "copy.jpg", quality=60)
    return tmp_path / "copy.jpg"


@contextmanager
def in_thread(folder: Path, extractor: Extractor, **options: Any) -> Iterator[httpx.Client]:
    """A server in a thread of this process, for what `homing serve` has no option: other limits."""
    with Collection.open(folder, extractor=extractor) as collection, bind("127.0.0.1", 0) as listening:
        config = uvicorn.Config(create_app(collection, **options), log_config=None)
        served = uvicorn.Server(config)
        thread = Thread(target=served.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            address = f"http://127.0.0.1:{listening.getsockname()[1]}"
            with httpx.Client(base_url=address, timeout=60) as client:
                while not served.started:
                    time.sleep(0.01)
                yield client
        finally:
            served.should_exit = True
            thread.join()
