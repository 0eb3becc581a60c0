"""The same photos on real storage of several kinds: in memory, in an archive, on a web server, in a bucket."""

from __future__ import annotations

import base64
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import fsspec
import pytest
from tests.collection.tiny import tiny_codebook, tiny_extractor
from tests.servers import running_http

from homing._io.paths import location
from homing.collection import Collection

NAMES = ["camera.png", "chelsea.png", "deep/flower.jpg", "rocket.jpg"]
OTHERS = ["notes.txt", ".hidden.jpg"]


class _Web(SimpleHTTPRequestHandler):
    """Serves a folder, accepts uploads, and can ask for a password."""

    user: str | None = None

    def do_GET(self) -> None:
        if self._is_authorized():
            super().do_GET()

    def do_HEAD(self) -> None:
        if self._is_authorized():
            super().do_HEAD()

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        path = Path(self.translate_path(self.path))
        if path.exists() and self.headers["If-None-Match"] == "*":
            self.send_error(412)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        self.send_response(201)
        self.end_headers()

    def _is_authorized(self) -> bool:
        expected = f"Basic {base64.b64encode(self.user.encode()).decode()}" if self.user else None
        if expected and self.headers["Authorization"] != expected:
            self.send_error(401)
            return False
        return True

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def serve() -> Iterator[Callable[..., tuple[ThreadingHTTPServer, str]]]:
    """Start web servers on this machine, each for one folder. Returns server and address."""
    with ExitStack() as running:

        def start(folder: Path, user: str | None = None) -> tuple[ThreadingHTTPServer, str]:
            handler = type("Web", (_Web,), {"user": user})
            server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder)))
            return server, running.enter_context(running_http(server))

        yield start


@pytest.fixture
def folder(photos: Path, tmp_path: Path) -> Path:
    """A folder with four photos, one of them in a subfolder, and other files."""
    for name in NAMES:
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((photos / path.name).read_bytes())
    for name in OTHERS:
        (tmp_path / "photos" / name).write_text("no photo")
    return tmp_path / "photos"


@pytest.fixture
def web(folder: Path, serve) -> str:
    return serve(folder.parent)[1] + "/photos"


@pytest.fixture
def archive(folder: Path, tmp_path: Path) -> str:
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as file:
        for name in [*NAMES, *OTHERS]:
            file.write(folder / name, f"in/{name}")
    return f"zip://in::{tmp_path / 'photos.zip'}"


@pytest.fixture
def memory(folder: Path) -> Iterator[str]:
    system = fsspec.filesystem("memory")
    for name in [*NAMES, *OTHERS]:
        system.pipe_file(f"/bucket/photos/{name}", (folder / name).read_bytes())
    yield "memory://bucket/photos"
    system.store.clear()
    system.pseudo_dirs[:] = [""]


@pytest.fixture
def bucket(folder: Path, s3: str) -> str:
    """The photos in a bucket."""
    for name in [*NAMES, *OTHERS]:
        (location(s3) / "photos" / name).write((folder / name).read_bytes(), new=True)
    return f"{s3}/photos"


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Collection]:
    """An empty collection with a tiny network and codebook."""
    with Collection.create(tmp_path / "c", codebook=tiny_codebook(), extractor=tiny_extractor()) as collection:
        yield collection
