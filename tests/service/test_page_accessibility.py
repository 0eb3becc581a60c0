"""Accessibility of the page: keyboard, screen readers, light and dark, phone and desktop."""

from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.service.chromium import DESKTOP, PHONE, Open, check_accessibility, choose_files
from tests.service.conftest import Server


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_every_view_is_accessible(
    open_page: Open, server: Server, copy: Path, photos: Path, tmp_path: Path, scheme: str, screen: dict[str, int]
) -> None:
    tab = open_page(server.address, viewport=screen, color_scheme=scheme)
    check_accessibility(tab)
    choose_files(tab, copy)
    expect(tab.locator("#results h2")).to_be_visible()
    tab.locator("summary").click()
    check_accessibility(tab)
    tab.get_by_role("button", name="Compare with rocket.jpg").click()
    check_accessibility(tab)
    tab.keyboard.press("f")
    check_accessibility(tab)
    tab.keyboard.press("Escape")
    (tmp_path / "letter.jpg").write_text("Dear editor")
    choose_files(tab, tmp_path / "letter.jpg")
    expect(tab.get_by_role("alert").first).not_to_be_empty()
    check_accessibility(tab)
    tab.get_by_role("link", name="Collection").click()
    expect(tab.locator("#photos li").first).to_be_visible()
    check_accessibility(tab)
    tab.get_by_role("button", name="Remove rocket.jpg").click()
    check_accessibility(tab)
    tab.keyboard.press("Escape")
    tab.get_by_role("link", name="Activate").click()
    check_accessibility(tab)
    choose_files(tab, photos / "flower.jpg", "activate")
    check_accessibility(tab)


def test_the_keyboard_reaches_everything_in_order(open_page: Open, server: Server, copy: Path) -> None:
    tab = open_page(server.address)
    choose_files(tab, copy)
    expect(tab.locator("#results h2")).to_be_visible()
    names = ["Skip to the content", "homing", "Search", "Activate", "Collection", "Choose a picture", "Also search for"]
    for name in [*names, "Compare with rocket.jpg"]:
        tab.keyboard.press("Tab")
        focused = tab.locator(":focus")
        named = focused.evaluate("each => (each.labels?.[0] ?? each).innerText")
        assert name in named.replace("\n", " "), (name, named)
        assert focused.evaluate(
            "each => [each, each.parentElement].some(one => getComputedStyle(one).outlineStyle === 'solid')"
        ), f"{name} does not show its focus"
    tab.keyboard.press("Enter")
    expect(tab.get_by_role("dialog")).to_be_visible()
    tab.keyboard.press("Escape")
    expect(tab.get_by_role("button", name="Compare with rocket.jpg")).to_be_focused()


def test_a_view_sets_url_title_and_focus(open_page: Open, server: Server) -> None:
    tab = open_page(server.address)
    tab.get_by_role("link", name="Activate").press("Enter")
    expect(tab).to_have_title("Activate · homing")
    expect(tab.locator("#activate-title")).to_be_focused()
    assert tab.url.endswith("#activate")
    tab.go_back()
    expect(tab.locator("#search-title")).to_be_focused()
    expect(tab.get_by_role("navigation").locator("[aria-current=page]")).to_have_text("Search")


@pytest.mark.slow
def test_the_skip_link_works(open_page: Open, server: Server) -> None:
    tab = open_page(server.address)
    tab.keyboard.press("Tab")
    tab.keyboard.press("Enter")
    tab.keyboard.press("Tab")
    expect(tab.locator("#search-file")).to_be_focused()
