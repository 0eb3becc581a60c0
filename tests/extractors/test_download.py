"""Downloads from a real server on this machine: interrupted, resumed, changed and missing files."""

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path

import pytest
import torch
from tests.servers import running_http
from torch import nn

from homing import extractors
from homing.errors import HomingError
from homing.extractors import download, published


class Server(ThreadingHTTPServer):
    """Serves `data` at any address, with configurable faults."""

    def __init__(self, data: bytes) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.data, self.etag = data, '"first"'
        self.cut_at: int | None = None
        self.status, self.ranges, self.says_length = 200, True, True
        self.requests: list[tuple[str, str | None]] = []


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        wanted = self.headers["Range"]
        self.server.requests.append((self.path, wanted))
        data, status = self.server.data, self.server.status
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and self.server.ranges else 0
        self.send_response(206 if start else status)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        if self.server.says_length:
            self.send_header("Content-Length", str(len(data) - start))
        self.send_header("ETag", self.server.etag)
        self.end_headers()
        self.wfile.write(data[start : self.server.cut_at])

    def log_message(self, *_: object) -> None:
        pass


def tiny(seed: int) -> bytes:
    torch.manual_seed(seed)
    file = BytesIO()
    torch.save(nn.Conv2d(3, 512, 16, stride=16).state_dict(), file)
    return file.getvalue()


def names(folder: Path) -> set[str]:
    """The files in a folder without the locks."""
    return {path.name for path in folder.iterdir() if path.suffix != ".lock"}


def tiny_network(weights: dict[str, torch.Tensor]) -> nn.Module:
    network = nn.Conv2d(3, 512, 16, stride=16)
    network.load_state_dict(weights)
    return nn.Sequential(network, nn.AdaptiveAvgPool2d(1))


def address(server: Server) -> str:
    return f"http://127.0.0.1:{server.server_port}/files/tiny.pt?v=1"


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server(tiny(1))
    with running_http(server):
        yield server


@pytest.fixture
def cached(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The cached path of a network called tiny, which is downloaded from the server."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOMING_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(download, "CHUNK_SIZE", 1 << 16)
    published.published("tiny", address(server), size=32)(tiny_network)
    yield tmp_path / "cache" / "tiny.pt"
    published._PUBLISHED.pop("tiny")
    extractors.registry._BUILDERS.pop("tiny")


def test_a_file_is_downloaded_once_and_pinned(server: Server, cached: Path) -> None:
    reported: list[tuple[int, int]] = []
    assert extractors.fetch("tiny", report=lambda *both: reported.append(both)) == cached
    assert cached.read_bytes() == server.data
    pin = json.loads(cached.with_name("tiny.pt.json").read_text())
    assert pin == {
        "address": address(server),
        "size": len(server.data),
        "sha256": hashlib.sha256(server.data).hexdigest(),
    }
    assert reported[0] == (0, len(server.data)) and reported[-1] == (len(server.data), len(server.data))
    assert [done for done, _ in reported] == sorted(done for done, _ in reported) and len(reported) > 5
    extractors.fetch("tiny")
    assert len(server.requests) == 1
    assert names(cached.parent) == {"tiny.pt", "tiny.pt.json"}
    assert extractors.load("tiny", device="cpu").dim == 512


def test_an_interrupted_download_is_resumed(server: Server, cached: Path) -> None:
    server.cut_at = 300_000
    with pytest.raises(HomingError, match=r"broke after 0\.3 of 1\.6 MB; run the same command again"):
        extractors.fetch("tiny")
    assert not cached.exists() and not extractors.fetched()["tiny"]
    server.cut_at, reported = None, []
    extractors.fetch("tiny", report=lambda *both: reported.append(both))
    assert server.requests[-1][1] == "bytes=300000-"
    assert reported[0] == (300_000, len(server.data))
    assert cached.read_bytes() == server.data
    assert not list(cached.parent.glob("*.part"))


def test_without_range_support_the_download_restarts(server: Server, cached: Path) -> None:
    server.cut_at = 300_000
    with pytest.raises(HomingError, match="run the same command again"):
        extractors.fetch("tiny")
    server.cut_at, server.ranges = None, False
    extractors.fetch("tiny")
    assert cached.read_bytes() == server.data


def test_parts_of_two_versions_are_never_combined(server: Server, cached: Path) -> None:
    server.cut_at = 300_000
    with pytest.raises(HomingError, match="run the same command again"):
        extractors.fetch("tiny")
    server.cut_at, server.etag, server.data = None, '"second"', tiny(2)
    extractors.fetch("tiny")
    assert cached.read_bytes() == server.data
    assert names(cached.parent) == {"tiny.pt", "tiny.pt.json"}


def test_a_changed_size_or_hash_is_detected(server: Server, cached: Path, tmp_path: Path) -> None:
    extractors.fetch("tiny")
    whole = cached.read_bytes()
    cached.write_bytes(whole[:-1])
    with pytest.raises(HomingError, match="is damaged; run: homing extractors fetch tiny"):
        extractors.load("tiny")
    cached.write_bytes(whole[:-1] + b"x")
    with pytest.raises(HomingError, match="is damaged; run: homing extractors fetch tiny"):
        extractors.load("tiny")
    extractors.fetch("tiny")
    assert cached.read_bytes() == whole
    cached.unlink()
    server.data, server.etag = tiny(2), '"second"'
    (tmp_path / "other.pt").write_bytes(server.data)
    for file in (None, tmp_path / "other.pt"):
        with pytest.raises(HomingError, match=r"has changed since it was first fetched.*delete .*tiny\.pt\.json"):
            extractors.fetch("tiny", file=file)
    assert names(cached.parent) == {"tiny.pt.json"}
    cached.with_name("tiny.pt.json").unlink()
    extractors.fetch("tiny")
    assert cached.read_bytes() == server.data


def test_a_second_download_waits_for_the_first(server: Server, cached: Path) -> None:
    second = threading.Thread(target=extractors.fetch, args=("tiny",))

    def report(done: int, _: int) -> None:
        if not done:
            second.start()
            second.join(0.5)
            assert second.is_alive()

    extractors.fetch("tiny", report=report)
    second.join()
    assert len(server.requests) == 1
    assert cached.read_bytes() == server.data


def test_a_file_of_unexpected_size_is_refused(server: Server, cached: Path) -> None:
    def add_a_byte(done: int, _: int) -> None:
        if done == 300_000:
            (part,) = cached.parent.glob("*.part")
            with part.open("ab") as file:
                file.write(b"x")

    server.cut_at = 300_000
    with pytest.raises(HomingError, match="run the same command again"):
        extractors.fetch("tiny")
    server.cut_at = None
    with pytest.raises(HomingError, match="run the same command again"):
        extractors.fetch("tiny", report=add_a_byte)
    assert not cached.exists()
    extractors.fetch("tiny")
    assert cached.read_bytes() == server.data


def test_a_damaged_file_is_refused(server: Server, cached: Path) -> None:
    server.data = bytearray(server.data)
    server.data[len(server.data) // 2] ^= 1
    with pytest.raises(HomingError, match="does not hold the weights of tiny"):
        extractors.fetch("tiny")
    assert not names(cached.parent)


def test_weights_with_nan_are_refused(cached: Path, tmp_path: Path) -> None:
    torch.save({"weight": torch.full((512, 3, 16, 16), torch.nan), "bias": torch.zeros(512)}, tmp_path / "nan.pt")
    with pytest.raises(HomingError, match="does not hold the weights of tiny"):
        extractors.fetch("tiny", file=tmp_path / "nan.pt")
    assert not names(cached.parent)


@pytest.mark.usefixtures("cached")
def test_a_file_that_is_no_network_is_not_reported_as_changed(tmp_path: Path) -> None:
    extractors.fetch("tiny")
    torch.save(5, tmp_path / "number.pt")
    with pytest.raises(HomingError, match="does not hold the weights of tiny"):
        extractors.fetch("tiny", file=tmp_path / "number.pt")


@pytest.mark.parametrize("pin", ["5", "[]", '{"address": "a", "size": 1, "sha256": null}'])
def test_a_damaged_pin_is_reported_and_affects_no_other_network(pin: str, server: Server, cached: Path) -> None:
    extractors.fetch("tiny")
    cached.with_name("tiny.pt.json").write_text(pin)
    for use in (extractors.load, extractors.fetch):
        with pytest.raises(HomingError, match=r"tiny\.pt\.json is damaged; delete it"):
            use("tiny")
    assert len(server.requests) == 1
    assert extractors.fetched()["tiny"] is False


def test_an_existing_download_is_used(server: Server, cached: Path, tmp_path: Path) -> None:
    (tmp_path / "here.pt").write_bytes(server.data)
    extractors.fetch("tiny", file=tmp_path / "here.pt")
    assert cached.read_bytes() == server.data and not server.requests
    with pytest.raises(HomingError, match="no such file"):
        extractors.fetch("tiny", file=tmp_path / "missing.pt")


@pytest.mark.parametrize("data", [b"<html>Sign in to this network</html>", b"0", b"a" * 99, b"}" * 99, b"PK\x03\x04"])
def test_data_that_is_no_network_is_refused(data: bytes, server: Server, cached: Path) -> None:
    server.data = data
    with pytest.raises(HomingError, match="does not hold the weights of tiny"):
        extractors.fetch("tiny")
    assert not names(cached.parent)


@pytest.mark.usefixtures("cached")
def test_server_errors_are_reported(server: Server) -> None:
    server.status = 404
    with pytest.raises(HomingError, match=r"/files/tiny\.pt\?v=1 answers 404 Not Found; .*--file FILE"):
        extractors.fetch("tiny")
    server.status, server.says_length = 200, False
    with pytest.raises(HomingError, match="does not say how large"):
        extractors.fetch("tiny")


@pytest.mark.usefixtures("cached")
def test_an_unreachable_server_error_names_the_address() -> None:
    published.published("tiny", "http://127.0.0.1:9/tiny.pt", size=32)(tiny_network)
    with pytest.raises(HomingError, match=r"cannot reach http://127\.0\.0\.1:9/tiny\.pt: .*refused.*--file FILE"):
        extractors.fetch("tiny")


@pytest.mark.usefixtures("cached")
def test_a_proxy_is_used(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.server_port}")
    published.published("tiny", "http://authors.invalid/tiny.pt", size=32)(tiny_network)
    extractors.fetch("tiny")
    assert server.requests == [("http://authors.invalid/tiny.pt", None)]


def test_the_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HOMING_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert download.cache_path("https://a.b/c/d.pt?x=1") == tmp_path / ".cache" / "homing" / "d.pt"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert download.cache_path("https://a.b/c/d.pt") == tmp_path / "x" / "homing" / "d.pt"
    monkeypatch.setenv("HOMING_CACHE", str(tmp_path / "y"))
    assert download.cache_path("https://a.b/c/d.pt") == tmp_path / "y" / "d.pt"
    monkeypatch.setenv("HOMING_CACHE", "~/z")
    assert download.cache_path("https://a.b/c/d.pt") == tmp_path / "z" / "d.pt"


def test_a_folder_that_cannot_be_written_is_reported(cached: Path) -> None:
    cached.parent.write_text("in the way")
    with pytest.raises(HomingError, match="cannot write"):
        extractors.fetch("tiny")
