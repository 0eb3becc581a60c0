"""A service that is busy is waited for, and the page says so."""

from pathlib import Path

from playwright.sync_api import expect
from tests.service.chromium import Open, choose
from tests.service.conftest import occupied


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
        expect(alert).to_contain_text("the photos of other requests fill the memory", timeout=120_000)
