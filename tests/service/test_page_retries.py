"""The page retries while the service is busy, and says so."""

from pathlib import Path

from playwright.sync_api import expect
from tests.service.chromium import Open, choose_files
from tests.service.conftest import memory_full


def test_the_page_retries_when_the_service_is_busy(open_page: Open, low_memory_address: str, copy: Path) -> None:
    tab = open_page(low_memory_address)
    status = tab.locator("#search-notice").get_by_role("status")
    with memory_full(low_memory_address):
        choose_files(tab, copy)
        expect(status).to_contain_text("The service is busy. Trying again in 1 s.")
    expect(tab.locator("#results h2")).to_contain_text("rocket.jpg")
    expect(status).to_be_empty()


def test_the_page_shows_the_reason_after_the_last_retry(open_page: Open, low_memory_address: str, copy: Path) -> None:
    tab = open_page(low_memory_address)
    with memory_full(low_memory_address):
        choose_files(tab, copy)
        alert = tab.locator("#search-notice").get_by_role("alert")
        expect(alert).to_contain_text("the memory for photos is full", timeout=120_000)
