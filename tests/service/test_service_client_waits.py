"""homing.Client and a server that is busy."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from tests.service.conftest import occupied

import homing
from homing.errors import HomingError


def test_a_busy_service_is_waited_for(narrow: str, copy: Path) -> None:
    with occupied(narrow) as connections, homing.Client(narrow) as client:
        started = time.monotonic()
        threading.Timer(0.5, connections.close).start()
        assert client.search(copy, k=1)[0].photo == "rocket.jpg"
        assert time.monotonic() - started >= 1  # as long as it said


def test_it_is_not_waited_for_without_end(narrow: str, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("homing.service.asking._TIMES", 1)
    with occupied(narrow), homing.Client(narrow) as client:
        started = time.monotonic()
        with pytest.raises(HomingError, match=r"^the photos of other requests fill the memory[^\n]+$"):
            client.search(copy)
        assert 1 <= time.monotonic() - started < 10
