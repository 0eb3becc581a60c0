"""Slow requests do not block other requests."""

from __future__ import annotations

import asyncio
import gc
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from io import BytesIO
from pathlib import Path

import httpx
import pytest
import torch
from fastapi import FastAPI
from PIL import Image
from tests.service.conftest import TIMEOUT, StartInProcess, blocked, wait_until

from homing.collection import Collection
from homing.errors import PhotoError
from homing.extractors import Extractor
from homing.service import create_app
from homing.service.executors import Executors


def test_slow_file_reads_do_not_block_other_work() -> None:
    release = threading.Event()

    async def ask(executors: Executors) -> None:
        slow = [asyncio.ensure_future(executors.run("read", lambda: release.wait(10 * TIMEOUT))) for _ in range(32)]
        work = [executors.run(kind, int) for kind in ("lookup", "search", "browse", "decode")]
        assert await asyncio.wait_for(asyncio.gather(*work), TIMEOUT) == [0] * 4
        assert not any(each.done() for each in slow)
        release.set()
        await asyncio.gather(*slow)

    with closing(Executors()) as executors:
        asyncio.run(ask(executors))


def test_a_large_photo_does_not_block_small_ones(start_in_process: StartInProcess, copy: Path) -> None:
    client, service = start_in_process()
    wide, written = Image.new("RGB", (6000, 4001), "white"), BytesIO()
    wide.save(written, "JPEG")

    def search(name: str, data: bytes) -> httpx.Response:
        return client.post("/v1/search", files={"photo": (name, data)})

    with ThreadPoolExecutor(1) as pool:
        with blocked(large := service.executors.pools["large"]):
            pending = pool.submit(search, "large.jpg", written.getvalue())
            wait_until(lambda: large._work_queue.qsize() == 1)
            for _ in range(3):
                assert search("copy.jpg", copy.read_bytes()).status_code == 200
            assert not pending.done()
        assert pending.result().status_code == 200


def test_running_out_of_memory_names_the_photo() -> None:
    def too_large() -> None:
        raise MemoryError

    with closing(Executors()) as executors:
        for kind in ("decode", "report"):
            work = executors.run(kind, too_large, photo="wide.tif")
            with pytest.raises(PhotoError, match=r"^wide\.tif: too large for the available memory$"):
                asyncio.run(work)


@pytest.mark.slow
def test_queued_comparisons_hold_no_full_size_pixels(template: Path, extractor: Extractor, tmp_path: Path) -> None:
    Image.new("RGB", (3000, 2000), "white").save(tmp_path / "large.jpg")
    shutil.copytree(template, tmp_path / "c.homing")
    compared, hold = 3, threading.Event()

    def floats() -> int:
        found = [each for each in gc.get_objects() if type(each) is torch.Tensor]
        return sum(each.numel() for each in found)

    async def ask(app: FastAPI) -> int:
        waiting = app.state.service.executors.pools["report"]
        waiting.submit(hold.wait, 10 * TIMEOUT)
        data, transport = (tmp_path / "large.jpg").read_bytes(), httpx.ASGITransport(app)
        files = {"first": ("a.jpg", data), "second": ("b.jpg", data)}
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=TIMEOUT) as client:
            before = floats()
            pending = [asyncio.ensure_future(client.post("/v1/compare", files=files)) for _ in range(compared)]
            try:
                end = time.monotonic() + TIMEOUT
                while waiting._work_queue.qsize() < compared:
                    assert time.monotonic() < end
                    await asyncio.sleep(0.01)
                return floats() - before
            finally:
                hold.set()
                assert {(await each).json()["quality"]["ssim"] for each in pending} == {1.0}

    with Collection.open(tmp_path / "c.homing", extractor=extractor) as collection:
        app = create_app(collection)
        app.state.service.start()
        with ExitStack() as stack:
            stack.callback(app.state.service.stop)
            assert asyncio.run(ask(app)) < 3000 * 2000  # which is less than half of one


def test_info_is_answered_while_the_catalog_is_locked(template: Path, extractor: Extractor, tmp_path: Path) -> None:
    folder = tmp_path / "c.homing"
    shutil.copytree(template, folder)
    with Collection.open(folder, extractor=extractor) as collection:
        app = create_app(collection)

        async def ask() -> dict[str, int]:
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                info: dict[str, int] = (await asyncio.wait_for(client.get("/v1/info"), TIMEOUT)).json()
                return info

        app.state.service.start()
        with ExitStack() as stack:
            stack.callback(app.state.service.stop)
            stack.enter_context(collection.storage._lock)
            first = asyncio.run(ask())
            (folder / "more").write_bytes(bytes(1_000_000))
            assert asyncio.run(ask()) == first  # files are counted once a minute
    assert first["photos"] == 3 and first["bytes_on_disk"] > 1_000_000
