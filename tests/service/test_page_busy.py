"""A service that is busy is waited for, and the page says so."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import uvicorn
from playwright.sync_api import expect
from tests.service.chromium import Open, choose

from homing.collection import Collection
from homing.extractors import Extractor
from homing.service import Limits, create_app
from homing.service.running import bind


class Narrow:
    """A server that works on one request at a time."""

    def __init__(self, address: str) -> None:
        self.address = address

    @contextmanager
    def occupied(self) -> Iterator[None]:
        """While the one request that is worked on is that of a client who never sends the rest."""
        place = urlsplit(self.address)
        with socket.create_connection((place.hostname or "", place.port or 0)) as slow:
            head = f"POST /v1/search HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Length: 1000\r\n"
            slow.sendall(f"{head}Content-Type: multipart/form-data; boundary=b\r\n\r\n--b\r\n".encode())
            yield


@pytest.fixture
def narrow(made: Path, extractor: Extractor) -> Iterator[Narrow]:
    with Collection.open(made, extractor=extractor) as collection:
        app = create_app(collection, limits=Limits(requests=1))
        listening = bind("127.0.0.1", 0)
        server = uvicorn.Server(uvicorn.Config(app, log_config=None))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield Narrow(f"http://127.0.0.1:{listening.getsockname()[1]}")
        server.should_exit = True
        thread.join()


def test_a_busy_service_is_asked_again(open_page: Open, narrow: Narrow, copy: Path) -> None:
    tab = open_page(narrow)
    status = tab.locator("#search-notice").get_by_role("status")
    with narrow.occupied():
        choose(tab, copy)
        expect(status).to_contain_text("The service is busy. Trying again in 1 s.")
    expect(tab.locator("#answer h2")).to_contain_text("rocket.jpg")
    expect(status).to_be_empty()


def test_at_last_it_is_told_why(open_page: Open, narrow: Narrow, copy: Path) -> None:
    tab = open_page(narrow)
    with narrow.occupied():
        choose(tab, copy)
        alert = tab.locator("#search-notice").get_by_role("alert")
        expect(alert).to_contain_text("1 requests are being worked on", timeout=30_000)
