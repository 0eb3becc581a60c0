"""A service that is busy is waited for, and the page says so."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect
from tests.service.chromium import Open, choose
from tests.service.conftest import in_thread

from homing.extractors import Extractor
from homing.service import Limits


@pytest.fixture
def narrow(made: Path, extractor: Extractor) -> Iterator[str]:
    """The address of a server that works on one request at a time."""
    with in_thread(made, extractor, limits=Limits(requests=1)) as client:
        yield str(client.base_url).rstrip("/")


@contextmanager
def occupied(address: str) -> Iterator[None]:
    """While the one request that is worked on is that of a client who never sends the rest."""
    place = urlsplit(address)
    assert place.hostname and place.port
    with socket.create_connection((place.hostname, place.port)) as slow:
        head = f"POST /v1/search HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Length: 1000\r\n"
        slow.sendall(f"{head}Content-Type: multipart/form-data; boundary=b\r\n\r\n--b\r\n".encode())
        yield


def test_a_busy_service_is_asked_again(open_page: Open, narrow: str, copy: Path) -> None:
    tab = open_page(narrow)
    status = tab.locator("#search-notice").get_by_role("status")
    with occupied(narrow):
        choose(tab, copy)
        expect(status).to_contain_text("The service is busy. Trying again in 1 s.")
    expect(tab.locator("#answer h2")).to_contain_text("rocket.jpg")
    expect(status).to_be_empty()


def test_at_last_it_is_told_why(open_page: Open, narrow: str, copy: Path) -> None:
    tab = open_page(narrow)
    with occupied(narrow):
        choose(tab, copy)
        alert = tab.locator("#search-notice").get_by_role("alert")
        expect(alert).to_contain_text("requests are being worked on", timeout=30_000)
