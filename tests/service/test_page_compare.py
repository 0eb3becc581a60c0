"""Two pictures compared on the page: beside each other, and in turn at the same place."""

from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.service.chromium import Open, choose
from tests.service.conftest import Server


def compare(tab: Page, copy: Path) -> Locator:
    """The dialog that compares a copy of rocket.jpg with it."""
    choose(tab, copy)
    tab.get_by_role("button", name="Compare with rocket.jpg").click()
    return tab.get_by_role("dialog", name="Your picture and rocket.jpg")


def shown(dialog: Locator) -> list[str]:
    """The captions of the pictures that are to be seen."""
    return [each.inner_text() for each in dialog.locator("figcaption").all() if each.is_visible()]


def test_the_two_are_beside_each_other(open_page: Open, server: Server, copy: Path) -> None:
    dialog = compare(open_page(server), copy)
    expect(dialog.locator("img")).to_have_count(2)
    first, second = (each.bounding_box() for each in dialog.locator("img").all())
    assert first and second and first["y"] == second["y"] and first["x"] + first["width"] <= second["x"]
    for picture in dialog.locator("img").all():
        assert picture.evaluate("each => each.decode().then(() => each.naturalWidth)") >= 320


@pytest.mark.parametrize("by", ["key", "button"])
def test_they_are_flipped_by_key_and_by_button(open_page: Open, server: Server, copy: Path, by: str) -> None:
    tab = open_page(server)
    dialog = compare(tab, copy)
    dialog.get_by_role("radio", name="Flicker").check()
    assert shown(dialog) == ["Your picture"]
    boxes = [each.bounding_box() for each in dialog.locator("img").all()]
    assert boxes[0] == boxes[1]
    for name in ("rocket.jpg", "Your picture", "rocket.jpg"):
        if by == "key":
            tab.keyboard.press("f")
        else:
            dialog.get_by_role("button", name="Flip", exact=False).first.click()
        assert shown(dialog) == [name]
        expect(tab.locator("#compare-heard")).to_have_text(name)


def test_they_keep_flipping_until_told_to_stop(open_page: Open, server: Server, copy: Path) -> None:
    tab = open_page(server)
    dialog = compare(tab, copy)
    dialog.get_by_role("radio", name="Flicker").check()
    keep = dialog.get_by_role("button", name="Keep flipping")
    keep.click()
    expect(keep).to_have_attribute("aria-pressed", "true")
    stage = tab.locator("#compare-stage")
    for side in ("1", "0", "1"):
        expect(stage).to_have_attribute("data-side", side)
    keep.click()
    expect(keep).to_have_attribute("aria-pressed", "false")
    side = stage.get_attribute("data-side")
    tab.wait_for_timeout(1500)
    expect(stage).to_have_attribute("data-side", side or "")


def test_nothing_moves_by_itself_for_those_who_ask_for_less_motion(open_page: Open, server: Server, copy: Path) -> None:
    tab = open_page(server, reduced_motion="reduce")
    dialog = compare(tab, copy)
    tab.keyboard.press("f")
    assert shown(dialog) == ["rocket.jpg"]
    expect(dialog.get_by_role("button", name="Keep flipping")).to_be_hidden()
    expect(dialog).to_contain_text("asks for less motion")


def test_the_dialog_keeps_the_focus_and_gives_it_back(open_page: Open, server: Server, copy: Path) -> None:
    tab = open_page(server)
    dialog = compare(tab, copy)
    for _ in range(8):
        tab.keyboard.press("Tab")
        assert tab.evaluate("document.activeElement === document.body || !!document.activeElement.closest('#compare')")
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_be_hidden()
    expect(tab.get_by_role("button", name="Compare with rocket.jpg")).to_be_focused()
