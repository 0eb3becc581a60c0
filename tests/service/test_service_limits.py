"""More than is done at once is refused, and says when to come again."""

from __future__ import annotations

import shutil
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch
from tests.collection.tiny import tiny_extractor
from tests.service.conftest import PATIENCE, Inside, Server, Start, finished, over, stopped, until

from homing.errors import HomingError
from homing.extractors import Extractor, describe
from homing.service import Keys, Limits
from homing.service.batching import Batcher, together
from homing.service.keys import new_key
from homing.service.limits import Rates
from homing.service.problems import TooBusyError
from homing.service.writer import Writer


@pytest.fixture
def limited(inside: Inside) -> Callable[..., httpx.Client]:
    """Starts a server with limits of its own."""
    return lambda **options: inside(**options)[0]


def photo(path: Path, **options: Any) -> dict[str, Any]:
    return {"files": {"photo": (path.name, path.read_bytes())}, **options}


def test_more_requests_than_may_wait_are_refused_and_the_others_answered(inside: Inside, copy: Path) -> None:
    client, service = inside(requests=2)
    with ThreadPoolExecutor(2) as pool:
        with stopped(service.lanes._search):
            waiting = [pool.submit(client.post, "/v1/search", **photo(copy)) for _ in range(2)]
            until(lambda: service.gate.requests == 2)
            refused = client.post("/v1/search", **photo(copy))
        assert [each.result().status_code for each in waiting] == [200, 200]
    assert refused.status_code == 429 and refused.headers["retry-after"] == "1"
    assert refused.headers["content-type"] == "application/problem+json"
    assert client.post("/v1/search", **photo(copy)).status_code == 200


def test_who_sends_slowly_keeps_nobody_out(limited, copy: Path) -> None:
    client = limited(requests=1)
    head = "POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
    head += "Content-Type: multipart/form-data; boundary=b\r\n\r\n--b\r\n"
    with socket.create_connection((client.base_url.host, client.base_url.port)) as slow:
        slow.sendall(head.encode())
        for _ in range(5):
            assert client.post("/v1/search", **photo(copy)).status_code == 200


@pytest.fixture(scope="module")
def hasty(starting_for_all: Start, tmp_path_factory: pytest.TempPathFactory) -> Server:
    """A server for which requests must have come within a second."""
    return starting_for_all(tmp_path_factory.mktemp("hasty") / "c.homing", "--limit", "seconds=1")


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: "])
def test_a_request_that_does_not_begin_ends_its_connection(hasty: Server, sent: bytes) -> None:
    with socket.create_connection((hasty.client.base_url.host, hasty.client.base_url.port), timeout=60) as slow:
        slow.sendall(sent)
        assert slow.recv(1) == b""


def test_nor_does_one_that_begins_byte_by_byte_keep_it(hasty: Server) -> None:
    end = time.monotonic() + 60
    with socket.create_connection((hasty.client.base_url.host, hasty.client.base_url.port), timeout=0.1) as slow:
        slow.sendall(b"GET /healthz HTTP/1.1\r\nX: ")
        with suppress(ConnectionError):  # which a byte sent at the last moment makes of the end
            while time.monotonic() < end:
                with suppress(TimeoutError):
                    assert slow.recv(1) == b""
                    break
                slow.sendall(b"x")
    assert time.monotonic() < end, "it goes on and on"


def test_a_request_that_came_has_its_time_and_so_has_the_next_one(hasty: Server) -> None:
    with closing(HTTPConnection(hasty.client.base_url.netloc.decode(), timeout=60)) as connection:
        connection.connect()
        first = connection.sock
        for _ in range(2):
            connection.request("GET", "/healthz")
            assert connection.getresponse().read() == b'{"status":"ok"}'
            time.sleep(1.5)  # which is more than a head may take, and less than a connection is kept for
        assert connection.sock is first
    head = "POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
    head += "Content-Type: multipart/form-data; boundary=b\r\n\r\n--b\r\n"
    with socket.create_connection((hasty.client.base_url.host, hasty.client.base_url.port), timeout=60) as slow:
        slow.sendall(head.encode())
        assert slow.recv(100).startswith(b"HTTP/1.1 408 ")


def test_a_head_without_end_is_refused(hasty: Server) -> None:
    address = (hasty.client.base_url.host, hasty.client.base_url.port)
    # What was not read any more resets the connection.
    with socket.create_connection(address, timeout=60) as large, suppress(ConnectionError):
        large.sendall(b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 100_000)
        assert large.recv(100).startswith(b"HTTP/1.1 400 ")


def test_a_refused_request_leaves_its_room_to_others(limited, photos: Path) -> None:
    client = limited(requests=1, bytes=1000)
    for _ in range(3):
        assert client.post("/v1/search", **photo(photos / "rocket.jpg")).status_code == 413
        assert client.post("/v1/search", content=b"x").status_code == 415


def test_memory_for_photos_is_bounded_and_comes_back(limited, photos: Path, copy: Path) -> None:
    client = limited(held_bytes=40_000)
    answer = client.post("/v1/search", **photo(photos / "rocket.jpg"))
    assert answer.status_code == 429 and "memory" in answer.json()["detail"]
    for _ in range(8):
        assert client.post("/v1/search", **photo(copy)).status_code == 200


def test_the_bytes_of_a_job_come_back_when_it_is_done(limited, copy: Path) -> None:
    client = limited(held_bytes=2 * copy.stat().st_size)
    for _ in range(4):
        job = client.post("/v1/photos?job=true", **photo(copy)).json()["job"]
        assert finished(client, job)["state"] == "done"
    assert client.post("/v1/search", **photo(copy)).status_code == 200


def test_a_job_that_is_refused_leaves_its_room_to_others(inside: Inside, copy: Path) -> None:
    client, service = inside(writes=1, held_bytes=3 * copy.stat().st_size)
    with stopped(service.writer):
        job = client.post("/v1/photos?job=true", **photo(copy)).json()["job"]
        for _ in range(6):
            answer = client.post("/v1/photos?job=true", **photo(copy))
            assert answer.status_code == 429 and "changes wait" in answer.json()["detail"]
        assert client.get(job).json()["state"] == "waiting"
    assert finished(client, job)["state"] == "done"
    assert client.post("/v1/search", **photo(copy)).status_code == 200
    until(lambda: service.gate.bytes == 0)


def test_pixels_are_limited(limited, photos: Path) -> None:
    answer = limited(pixels=10_000).post("/v1/search", **photo(photos / "rocket.jpg"))
    assert answer.status_code == 413 and "640×427" in answer.json()["detail"]


def test_a_key_may_ask_so_often_and_is_told_when_again(limited, tmp_path: Path) -> None:
    key, other = (new_key(tmp_path / "keys.toml", name, "search") for name in ("one", "two"))
    client = limited(keys=Keys.read(tmp_path / "keys.toml"), per_minute=2)
    asked = [client.get("/v1/jobs/none", headers={"Authorization": f"Bearer {key}"}) for _ in range(3)]
    assert [answer.status_code for answer in asked] == [403, 403, 429]  # which count too
    assert 1 <= int(asked[-1].headers["retry-after"]) <= 30
    assert client.get("/v1/info", headers={"Authorization": f"Bearer {other}"}).status_code == 200


def test_requests_are_counted_anew_as_time_goes_by() -> None:
    now = [0.0]
    rates = Rates(2, clock=lambda: now[0])
    rates.count("a")
    rates.count("a")
    with pytest.raises(TooBusyError) as caught:
        rates.count("a")
    assert caught.value.headers == {"Retry-After": "30"}
    now[0] = 30
    rates.count("a")


def test_limits_below_one_are_refused() -> None:
    with pytest.raises(HomingError, match="photos must be at least 1"):
        Limits(photos=0)


def test_limits_are_said_by_name(made: Path, extractor: Extractor, tmp_path: Path, photos: Path) -> None:
    folder, limits = shutil.copytree(made, tmp_path / "c.homing"), Limits.of(["pixels=10000", "photos=1"])
    with over(folder, extractor, limits=limits) as server:
        assert server.post("/v1/search", photos / "rocket.jpg").status_code == 413
        assert server.post("/v1/search", photos / "rocket.jpg", photos / "camera.png").status_code == 400
    for odd, line in (
        ("request=3", "did you mean 'request"),
        ("photos", "say photos=NUMBER"),
        ("photos=0", "at least 1"),
    ):
        with pytest.raises(HomingError, match=line):
            Limits.of([odd])


def test_squares_that_wait_are_described_together_and_as_they_would_be_alone() -> None:
    sizes: list[int] = []
    begun, go_on = threading.Event(), threading.Event()

    def saw(size: int) -> None:
        sizes.append(size)
        begun.set()
        go_on.wait(PATIENCE)

    squares = torch.rand(21, 3, 48, 48, generator=torch.Generator().manual_seed(0))
    batcher = Batcher(tiny_extractor(), most=20, saw=saw)
    first = batcher.submit(squares[:1])
    begun.wait(PATIENCE)
    others = [batcher.submit(square[None]) for square in squares[1:]]
    with pytest.raises(TooBusyError):
        batcher.submit(squares[:1])
    go_on.set()
    found = torch.cat([first.result(PATIENCE), *(each.result(PATIENCE) for each in others)])
    batcher.close()
    full, rest = divmod(20, size := together(tiny_extractor().device))
    assert size > 1 and sizes == [1, *[size] * full, *[rest] * bool(rest)]
    assert torch.allclose(found, describe(tiny_extractor(), list(squares)), atol=1e-5)


def test_what_breaks_in_the_network_is_told_and_the_next_are_described() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def saw(_: int) -> None:
        begun.set()
        go_on.wait(PATIENCE)

    batcher = Batcher(tiny_extractor(), most=20, saw=saw)
    first = batcher.submit(torch.rand(1, 3, 48, 48))
    begun.wait(PATIENCE)
    pair = [batcher.submit(torch.rand(1, 3, side, side)) for side in (48, 40)]  # which fit into no batch together
    go_on.set()
    for broken in pair:
        with pytest.raises(RuntimeError):
            broken.result(PATIENCE)
    assert len(first.result(PATIENCE)) == 1 and len(batcher.submit(torch.rand(2, 3, 48, 48)).result(PATIENCE)) == 2
    batcher.close()


def test_the_writer_does_what_it_accepted_in_order_and_lets_jobs_take_turns() -> None:
    done: list[str] = []
    begun, hold = threading.Event(), threading.Event()
    writer = Writer(most=3)
    writer.submit(lambda: (begun.set(), hold.wait(PATIENCE)))
    assert begun.wait(PATIENCE)
    job = writer.submit_steps([lambda name=name: done.append(name) for name in ("job 1", "job 2", "job 3")])
    writer.submit(lambda: done.append("change"))
    broken = writer.submit(lambda: 1 / 0)
    with pytest.raises(TooBusyError):
        writer.submit(lambda: done.append("too many"))
    hold.set()
    writer.close()
    assert done == ["job 1", "change", "job 2", "job 3"] and job.done()
    with pytest.raises(ZeroDivisionError):
        broken.result()
