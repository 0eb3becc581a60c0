"""Compare two pictures on the page: side by side, and flipped at one position."""

import shutil
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Locator, Page, expect
from tests.service.chromium import Open, choose_files, width_of
from tests.service.conftest import Server, running_server

from homing.collection import Collection
from homing.extractors import Extractor


def compare(tab: Page, copy: Path) -> Locator:
    """Open the dialog that compares rocket.jpg with a copy of it."""
    choose_files(tab, copy)
    tab.get_by_role("button", name="Compare with rocket.jpg").click()
    return tab.get_by_role("dialog", name="Your picture and rocket.jpg")


def visible_captions(dialog: Locator) -> list[str]:
    """The captions of the visible pictures, once the two are aligned."""
    expect(dialog.get_by_role("radio", name="Difference")).to_be_visible()
    return [each.inner_text() for each in dialog.locator("figcaption").all() if each.is_visible()]


def test_two_pictures_are_shown_side_by_side(open_page: Open, server: Server, copy: Path) -> None:
    dialog = compare(open_page(server.address), copy)
    expect(dialog.locator("img")).to_have_count(2)
    first, second = (each.bounding_box() for each in dialog.locator("img").all())
    assert first and second and first["y"] == second["y"] and first["x"] + first["width"] <= second["x"]
    for picture in dialog.locator("img").all():
        assert width_of(picture) >= 320


@pytest.mark.parametrize("by", ["key", "button"])
def test_pictures_are_flipped_by_key_and_by_button(open_page: Open, server: Server, copy: Path, by: str) -> None:
    tab = open_page(server.address)
    dialog = compare(tab, copy)
    dialog.get_by_role("radio", name="Flicker").check()
    assert visible_captions(dialog) == ["Your picture"]
    boxes = [each.bounding_box() for each in dialog.locator("img").all()]
    assert boxes[0] == boxes[1]
    for name in ("The same part of rocket.jpg", "Your picture", "The same part of rocket.jpg"):
        if by == "key":
            tab.keyboard.press("f")
        else:
            dialog.get_by_role("button", name="Flip", exact=False).first.click()
        assert visible_captions(dialog) == [name]
        expect(tab.locator("#compare-announcer")).to_have_text(name)


def test_pictures_keep_flipping_until_stopped(open_page: Open, server: Server, copy: Path) -> None:
    tab = open_page(server.address)
    dialog = compare(tab, copy)
    dialog.get_by_role("radio", name="Flicker").check()
    keep = dialog.get_by_role("button", name="Flip automatically")
    keep.click()
    expect(keep).to_have_attribute("aria-pressed", "true")
    stage = tab.locator("#compare-stage")
    for side in ("1", "0", "1"):
        expect(stage).to_have_attribute("data-side", side)
    keep.click()
    expect(keep).to_have_attribute("aria-pressed", "false")
    stage.evaluate(
        """each => {
            window.flips = 0;
            const seen = {attributes: true, attributeFilter: ["data-side"]};
            new MutationObserver(() => window.flips++).observe(each, seen);
        }"""
    )
    tab.wait_for_timeout(2000)
    assert tab.evaluate("window.flips") == 0


def test_no_automatic_flicker_with_reduced_motion(open_page: Open, server: Server, copy: Path) -> None:
    tab = open_page(server.address, reduced_motion="reduce")
    dialog = compare(tab, copy)
    tab.keyboard.press("f")
    assert visible_captions(dialog) == ["The same part of rocket.jpg"]
    expect(dialog.get_by_role("button", name="Flip automatically")).to_be_hidden()
    expect(dialog).to_contain_text("asks for reduced motion")


def test_the_dialog_traps_and_returns_the_focus(open_page: Open, server: Server, copy: Path) -> None:
    tab = open_page(server.address)
    dialog = compare(tab, copy)
    for _ in range(8):
        tab.keyboard.press("Tab")
        assert tab.evaluate("document.activeElement === document.body || !!document.activeElement.closest('#compare')")
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_be_hidden()
    expect(tab.get_by_role("button", name="Compare with rocket.jpg")).to_be_focused()


def test_two_pictures_are_aligned(open_page: Open, server: Server, photos: Path, tmp_path: Path) -> None:
    with Image.open(photos / "rocket.jpg") as rocket:
        width, height = rocket.size
        cut = rocket.crop((width // 10, height // 10, width - width // 10, height))
        cut.paste("white", (0, 0, cut.width, cut.height // 8))
        cut.save(tmp_path / "cut.jpg", quality=80)
    tab = open_page(server.address)
    dialog = compare(tab, tmp_path / "cut.jpg")
    dialog.get_by_role("radio", name="Difference").check()
    assert visible_captions(dialog) == ["Your picture in rocket.jpg", "Difference; mid-gray means equal"]
    dialog.get_by_role("radio", name="Flicker").check()
    tab.keyboard.press("f")
    assert visible_captions(dialog) == ["The same part of rocket.jpg"]
    ratio = "each => each.decode().then(() => each.naturalWidth / each.naturalHeight)"
    sizes = [each.evaluate(ratio) for each in dialog.locator("img").all()]
    assert sizes[0] == sizes[1]


def test_a_reference_may_have_a_name_that_uploads_may_not(
    open_page: Open, template: Path, extractor: Extractor, photos: Path, tmp_path: Path
) -> None:
    with Image.open(photos / "camera.png") as camera:
        camera.save(tmp_path / "12:00.jpg")
        camera.resize((256, 256)).save(tmp_path / "copy.jpg")
    shutil.copytree(template, tmp_path / "own.homing")
    with Collection.open(tmp_path / "own.homing", extractor=extractor) as collection:
        collection.add(tmp_path / "12:00.jpg")
    with running_server(tmp_path / "own.homing", extractor) as server:
        tab = open_page(server.address)
        choose_files(tab, tmp_path / "copy.jpg")
        tab.get_by_role("button", name="Compare with 12:00.jpg").click()
        assert "Your picture" in visible_captions(tab.get_by_role("dialog", name="Your picture and 12:00.jpg"))
