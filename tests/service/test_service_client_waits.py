"""homing.Client and a server that is busy."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.service.conftest import occupied, until

import homing
from homing.errors import HomingError


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long a client has waited, each time, from now on."""
    seconds: list[float] = []

    def sleep(each: float) -> None:
        seconds.append(each)
        time.sleep(each)

    monkeypatch.setattr("homing.service.asking.time", SimpleNamespace(sleep=sleep))
    return seconds


def test_a_busy_service_is_waited_for(narrow: str, copy: Path, waited: list[float]) -> None:
    with occupied(narrow) as connections, homing.Client(narrow) as client, ThreadPoolExecutor(1) as pool:
        found = pool.submit(client.search, copy, k=1)
        until(lambda: waited != [])
        connections.close()
        assert found.result()[0].photo == "rocket.jpg"
        assert set(waited) == {1}  # as long as it said


def test_it_is_not_waited_for_without_end(
    narrow: str, copy: Path, waited: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("homing.service.asking._TIMES", 2)
    with occupied(narrow), homing.Client(narrow) as client:
        with pytest.raises(HomingError, match=r"^the photos of other requests fill the memory[^\n]+$"):
            client.search(copy)
        assert waited == [1, 1]
