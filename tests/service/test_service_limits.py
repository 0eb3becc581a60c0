"""Requests beyond the limits are rejected with Retry-After."""

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
from tests.service.conftest import (
    TIMEOUT,
    Server,
    Start,
    StartInProcess,
    blocked,
    running_server,
    wait_for_job,
    wait_until,
)

from homing.errors import HomingError
from homing.extractors import Extractor, describe_images
from homing.service import Keys, Limits
from homing.service.auth import new_key
from homing.service.executors import Batcher, Writer, batch_size
from homing.service.limits import RateLimiter
from homing.service.responses import TooBusyError


@pytest.fixture
def start_limited(start_in_process: StartInProcess) -> Callable[..., httpx.Client]:
    """Start a server with given limits."""
    return lambda **options: start_in_process(**options)[0]


def photo(path: Path, **options: Any) -> dict[str, Any]:
    return {"files": {"photo": (path.name, path.read_bytes())}, **options}


def test_requests_beyond_the_limit_are_refused(start_in_process: StartInProcess, copy: Path) -> None:
    client, service = start_in_process(requests=2)
    with ThreadPoolExecutor(2) as pool:
        with blocked(service.executors.pools["search"]):
            waiting = [pool.submit(client.post, "/v1/search", **photo(copy)) for _ in range(2)]
            wait_until(lambda: service.admission.requests == 2)
            refused = client.post("/v1/search", **photo(copy))
        assert [each.result().status_code for each in waiting] == [200, 200]
    assert refused.status_code == 429 and refused.headers["retry-after"] == "1"
    assert refused.headers["content-type"] == "application/problem+json"
    assert client.post("/v1/search", **photo(copy)).status_code == 200


def test_slow_uploads_do_not_block_others(start_limited, copy: Path) -> None:
    client = start_limited(requests=1)
    head = "POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
    head += "Content-Type: multipart/form-data; boundary=b\r\n\r\n--b\r\n"
    with socket.create_connection((client.base_url.host, client.base_url.port)) as slow:
        slow.sendall(head.encode())
        for _ in range(5):
            assert client.post("/v1/search", **photo(copy)).status_code == 200


@pytest.fixture(scope="module")
def short_timeout_server(start_shared_server: Start, tmp_path_factory: pytest.TempPathFactory) -> Server:
    """A server that must receive requests within one second."""
    return start_shared_server(tmp_path_factory.mktemp("short_timeout_server") / "c.homing", "--limit", "seconds=1")


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: "])
def test_a_connection_without_a_request_times_out(short_timeout_server: Server, sent: bytes) -> None:
    with socket.create_connection(
        (short_timeout_server.client.base_url.host, short_timeout_server.client.base_url.port), timeout=60
    ) as slow:
        slow.sendall(sent)
        assert slow.recv(1) == b""


def test_a_slow_request_head_times_out(short_timeout_server: Server) -> None:
    end = time.monotonic() + 60
    with socket.create_connection(
        (short_timeout_server.client.base_url.host, short_timeout_server.client.base_url.port), timeout=0.1
    ) as slow:
        slow.sendall(b"GET /healthz HTTP/1.1\r\nX: ")
        with suppress(ConnectionError):  # if a byte is sent just as the server closes the connection
            while time.monotonic() < end:
                with suppress(TimeoutError):
                    assert slow.recv(1) == b""
                    break
                slow.sendall(b"x")
    assert time.monotonic() < end, "the connection is never closed"


def test_timeouts_restart_with_each_request(short_timeout_server: Server) -> None:
    with closing(HTTPConnection(short_timeout_server.client.base_url.netloc.decode(), timeout=60)) as connection:
        connection.connect()
        first = connection.sock
        for _ in range(2):
            connection.request("GET", "/healthz")
            assert connection.getresponse().read() == b'{"status":"ok"}'
            time.sleep(1.5)  # longer than a request head may take, shorter than the keep-alive
        assert connection.sock is first
    head = "POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
    head += "Content-Type: multipart/form-data; boundary=b\r\n\r\n--b\r\n"
    with socket.create_connection(
        (short_timeout_server.client.base_url.host, short_timeout_server.client.base_url.port), timeout=60
    ) as slow:
        slow.sendall(head.encode())
        assert slow.recv(100).startswith(b"HTTP/1.1 408 ")


def test_an_endless_request_head_is_refused(short_timeout_server: Server) -> None:
    address = (short_timeout_server.client.base_url.host, short_timeout_server.client.base_url.port)
    # The server resets the connection, because it does not read the rest.
    with socket.create_connection(address, timeout=60) as large, suppress(ConnectionError):
        large.sendall(b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 100_000)
        assert large.recv(100).startswith(b"HTTP/1.1 400 ")


def test_a_refused_request_frees_its_slot(start_limited, photos: Path) -> None:
    client = start_limited(requests=1, bytes=1000)
    for _ in range(3):
        assert client.post("/v1/search", **photo(photos / "rocket.jpg")).status_code == 413
        assert client.post("/v1/search", content=b"x").status_code == 415


def test_upload_memory_is_bounded_and_freed(start_limited, photos: Path, copy: Path) -> None:
    client = start_limited(memory_bytes=40_000)
    answer = client.post("/v1/search", **photo(photos / "rocket.jpg"))
    assert answer.status_code == 429 and "memory" in answer.json()["detail"]
    for _ in range(8):
        assert client.post("/v1/search", **photo(copy)).status_code == 200


def test_a_finished_job_frees_its_memory(start_limited, copy: Path) -> None:
    client = start_limited(memory_bytes=2 * copy.stat().st_size)
    for _ in range(4):
        job = client.post("/v1/photos?job=true", **photo(copy)).json()["job"]
        assert wait_for_job(client, job)["state"] == "done"
    assert client.post("/v1/search", **photo(copy)).status_code == 200


def test_a_refused_job_frees_its_memory(start_in_process: StartInProcess, copy: Path) -> None:
    client, service = start_in_process(write_queue=1, memory_bytes=3 * copy.stat().st_size)
    with blocked(service.writer):
        job = client.post("/v1/photos?job=true", **photo(copy)).json()["job"]
        for _ in range(6):
            answer = client.post("/v1/photos?job=true", **photo(copy))
            assert answer.status_code == 429 and "changes wait" in answer.json()["detail"]
        assert client.get(job).json()["state"] == "waiting"
    assert wait_for_job(client, job)["state"] == "done"
    assert client.post("/v1/search", **photo(copy)).status_code == 200
    wait_until(lambda: service.admission.bytes == 0)


def test_pixels_are_limited(start_limited, photos: Path) -> None:
    answer = start_limited(pixels=10_000).post("/v1/search", **photo(photos / "rocket.jpg"))
    assert answer.status_code == 413 and "640×427" in answer.json()["detail"]


def test_requests_of_a_key_are_rate_limited(start_limited, tmp_path: Path) -> None:
    key, other = (new_key(tmp_path / "keys.toml", name, "search") for name in ("one", "two"))
    client = start_limited(keys=Keys.read(tmp_path / "keys.toml"), per_minute=2)
    responses = [client.get("/v1/jobs/none", headers={"Authorization": f"Bearer {key}"}) for _ in range(3)]
    assert [answer.status_code for answer in responses] == [403, 403, 429]  # failed requests count too
    assert 1 <= int(responses[-1].headers["retry-after"]) <= 30
    assert client.get("/v1/info", headers={"Authorization": f"Bearer {other}"}).status_code == 200


def test_the_rate_limit_refills_over_time() -> None:
    now = [0.0]
    rate_limiter = RateLimiter(2, clock=lambda: now[0])
    rate_limiter.check("a")
    rate_limiter.check("a")
    with pytest.raises(TooBusyError) as caught:
        rate_limiter.check("a")
    assert caught.value.headers == {"Retry-After": "30"}
    now[0] = 30
    rate_limiter.check("a")


def test_limits_below_one_are_refused() -> None:
    with pytest.raises(HomingError, match="photos must be at least 1"):
        Limits(photos=0)


def test_limits_are_parsed_by_name(template: Path, extractor: Extractor, tmp_path: Path, photos: Path) -> None:
    folder, limits = shutil.copytree(template, tmp_path / "c.homing"), Limits.parse(["pixels=10000", "photos=1"])
    with running_server(folder, extractor, limits=limits) as server:
        assert server.post("/v1/search", photos / "rocket.jpg").status_code == 413
        assert server.post("/v1/search", photos / "rocket.jpg", photos / "camera.png").status_code == 400
    for odd, line in (
        ("request=3", "did you mean 'request"),
        ("photos", "expected photos=NUMBER"),
        ("photos=0", "at least 1"),
    ):
        with pytest.raises(HomingError, match=line):
            Limits.parse([odd])


def test_waiting_inputs_are_batched_without_changing_their_descriptors() -> None:
    sizes: list[int] = []
    begun, go_on = threading.Event(), threading.Event()

    def on_batch(size: int) -> None:
        sizes.append(size)
        begun.set()
        go_on.wait(TIMEOUT)

    inputs = torch.rand(21, 3, 48, 48, generator=torch.Generator().manual_seed(0))
    batcher = Batcher(tiny_extractor(), capacity=20, on_batch=on_batch)
    first = batcher.submit(inputs[:1])
    begun.wait(TIMEOUT)
    others = [batcher.submit(network_input[None]) for network_input in inputs[1:]]
    with pytest.raises(TooBusyError):
        batcher.submit(inputs[:1])
    go_on.set()
    found = torch.cat([first.result(TIMEOUT), *(each.result(TIMEOUT) for each in others)])
    batcher.close()
    full, rest = divmod(20, size := batch_size(tiny_extractor().device))
    assert size > 1 and sizes == [1, *[size] * full, *[rest] * bool(rest)]
    assert torch.allclose(found, describe_images(tiny_extractor(), list(inputs)), atol=1e-5)


def test_a_failing_batch_raises_and_later_ones_succeed() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def on_batch(_: int) -> None:
        begun.set()
        go_on.wait(TIMEOUT)

    batcher = Batcher(tiny_extractor(), capacity=20, on_batch=on_batch)
    first = batcher.submit(torch.rand(1, 3, 48, 48))
    begun.wait(TIMEOUT)
    pair = [batcher.submit(torch.rand(1, 3, side, side)) for side in (48, 40)]  # different sizes cannot be in one batch
    go_on.set()
    for broken in pair:
        with pytest.raises(RuntimeError):
            broken.result(TIMEOUT)
    assert len(first.result(TIMEOUT)) == 1 and len(batcher.submit(torch.rand(2, 3, 48, 48)).result(TIMEOUT)) == 2
    batcher.close()


@pytest.mark.slow
def test_the_writer_works_in_order_and_interleaves_jobs() -> None:
    done: list[str] = []
    begun, hold = threading.Event(), threading.Event()
    writer = Writer(capacity=3)
    writer.submit(lambda: (begun.set(), hold.wait(TIMEOUT)))
    assert begun.wait(TIMEOUT)
    job = writer.submit(*[lambda name=name: done.append(name) for name in ("job 1", "job 2", "job 3")])
    writer.submit(lambda: done.append("change"))
    broken = writer.submit(lambda: 1 / 0)
    with pytest.raises(TooBusyError):
        writer.submit(lambda: done.append("too many"))
    hold.set()
    writer.close()
    assert done == ["job 1", "change", "job 2", "job 3"] and job.done()
    with pytest.raises(ZeroDivisionError):
        broken.result()
