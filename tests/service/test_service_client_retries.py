"""Retries of homing.Client while the server is busy."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.service.conftest import memory_full, wait_until

import homing
from homing.errors import HomingError


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds of each wait of the client."""
    seconds: list[float] = []

    def sleep(each: float) -> None:
        seconds.append(each)
        time.sleep(each)

    monkeypatch.setattr("homing.service.transport.time", SimpleNamespace(sleep=sleep))
    return seconds


def test_the_client_retries_when_the_service_is_busy(low_memory_address: str, copy: Path, waits: list[float]) -> None:
    with (
        memory_full(low_memory_address) as connections,
        homing.Client(low_memory_address) as client,
        ThreadPoolExecutor(1) as pool,
    ):
        found = pool.submit(client.search, copy, k=1)
        wait_until(lambda: waits != [])
        connections.close()
        assert found.result()[0].photo == "rocket.jpg"
        assert set(waits) == {1}  # as in Retry-After


def test_retries_are_limited(
    low_memory_address: str, copy: Path, waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("homing.service.transport._MAX_RETRIES", 2)
    with memory_full(low_memory_address), homing.Client(low_memory_address) as client:
        with pytest.raises(HomingError, match=r"^the memory for photos is full[^\n]+$"):
            client.search(copy)
        assert waits == [1, 1]
