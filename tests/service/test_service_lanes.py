"""What takes long holds up nobody who asks for something else."""

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
from tests.service.conftest import PATIENCE, Inside, stopped, until

from homing.collection import Collection
from homing.errors import PhotoError
from homing.extractors import Extractor
from homing.service import create_app
from homing.service.lanes import Lanes


def test_files_that_are_far_away_hold_up_nobody_who_looks_decodes_or_searches() -> None:
    come = threading.Event()

    async def ask(lanes: Lanes) -> None:
        far = [asyncio.ensure_future(lanes.read(lambda: come.wait(10 * PATIENCE))) for _ in range(32)]
        work = [lanes.look(int), lanes.search(int), lanes.browse(int), lanes.decode("a.jpg", 1, int)]
        assert await asyncio.wait_for(asyncio.gather(*work), PATIENCE) == [0] * 4
        assert not any(each.done() for each in far)
        come.set()
        await asyncio.gather(*far)

    with closing(Lanes()) as lanes:
        asyncio.run(ask(lanes))


def test_a_large_photo_holds_up_no_small_one(inside: Inside, copy: Path) -> None:
    client, service = inside()
    large, written = Image.new("RGB", (6000, 4001), "white"), BytesIO()
    large.save(written, "JPEG")

    def search(name: str, data: bytes) -> httpx.Response:
        return client.post("/v1/search", files={"photo": (name, data)})

    with ThreadPoolExecutor(1) as pool:
        with stopped(service.lanes._large):
            asked = pool.submit(search, "large.jpg", written.getvalue())
            until(lambda: service.lanes._large._work_queue.qsize() == 1)
            for _ in range(3):
                assert search("copy.jpg", copy.read_bytes()).status_code == 200
            assert not asked.done()
        assert asked.result().status_code == 200


def test_a_photo_that_memory_is_too_small_for_is_told_by_its_name() -> None:
    def too_large() -> None:
        raise MemoryError

    with closing(Lanes()) as lanes:
        for work in (lanes.decode("wide.tif", 1, too_large), lanes.report("wide.tif", too_large)):
            with pytest.raises(PhotoError, match=r"^wide\.tif: too large for the memory there is$"):
                asyncio.run(work)


def test_photos_that_wait_to_be_compared_are_not_held_at_full_size(
    made: Path, extractor: Extractor, tmp_path: Path
) -> None:
    Image.new("RGB", (3000, 2000), "white").save(tmp_path / "large.jpg")
    shutil.copytree(made, tmp_path / "c.homing")
    compared, hold = 3, threading.Event()

    def floats() -> int:
        found = [each for each in gc.get_objects() if type(each) is torch.Tensor]
        return sum(each.numel() for each in found)

    async def ask(app: FastAPI) -> int:
        waiting = app.state.service.lanes._report
        waiting.submit(hold.wait, 10 * PATIENCE)
        data, transport = (tmp_path / "large.jpg").read_bytes(), httpx.ASGITransport(app)
        files = {"first": ("a.jpg", data), "second": ("b.jpg", data)}
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=PATIENCE) as client:
            before = floats()
            asked = [asyncio.ensure_future(client.post("/v1/compare", files=files)) for _ in range(compared)]
            try:
                end = time.monotonic() + PATIENCE
                while waiting._work_queue.qsize() < compared:
                    assert time.monotonic() < end
                    await asyncio.sleep(0.01)
                return floats() - before
            finally:
                hold.set()
                assert {(await each).json()["quality"]["ssim"] for each in asked} == {1.0}

    with Collection.open(tmp_path / "c.homing", extractor=extractor) as collection:
        app = create_app(collection)
        app.state.service.start()
        with ExitStack() as stack:
            stack.callback(app.state.service.stop)
            assert asyncio.run(ask(app)) < 3000 * 2000  # which is less than half of one


def test_what_the_collection_holds_is_told_while_its_catalogue_is_in_use(
    made: Path, extractor: Extractor, tmp_path: Path
) -> None:
    folder = tmp_path / "c.homing"
    shutil.copytree(made, folder)
    with Collection.open(folder, extractor=extractor) as collection:
        app = create_app(collection)

        async def ask() -> dict[str, int]:
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                told: dict[str, int] = (await asyncio.wait_for(client.get("/v1/info"), PATIENCE)).json()
                return told

        app.state.service.start()
        with ExitStack() as stack:
            stack.callback(app.state.service.stop)
            stack.enter_context(collection.folder.catalogue._lock)
            first = asyncio.run(ask())
            (folder / "more").write_bytes(bytes(1_000_000))
            assert asyncio.run(ask()) == first  # files are counted once a minute
    assert first["photos"] == 3 and first["bytes_on_disk"] > 1_000_000
