"""Activate on the page: before and after, quality, which copies are found, and the file to release."""

import hashlib
import re
import shutil
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Locator, Page, expect
from tests.service.chromium import DESKTOP, PHONE, Open, check_accessibility, choose_files, width_of
from tests.service.conftest import Server, running_server

from homing.collection import Collection
from homing.extractors import Extractor


def activate(tab: Page, file: Path, recipe: str = "homing") -> Locator:
    """Activate a picture on the page and return the result element."""
    choose_files(tab, file, "activate")
    expect(tab.locator("#activate-name")).to_have_text(file.name)
    expect(tab.get_by_label("Recipe")).to_have_value("homing")
    tab.get_by_label("Recipe").select_option(recipe)
    tab.get_by_role("button", name="Activate").click()
    release = tab.locator("#release")
    expect(release.get_by_role("heading", level=2)).to_contain_text(file.name, timeout=120_000)
    return release


def test_a_picture_is_activated_shown_and_downloaded(open_page: Open, own_server: Server, photos: Path) -> None:
    tab = open_page(own_server.address, "activate")
    release = activate(tab, photos / "flower.jpg")
    (listed,) = own_server.client.get("/v1/photos?name=flower").json()["photos"]
    assert listed["state"] == "activated"
    (stored,) = own_server.client.get(f"/v1/photos/{listed['id']}").json()["releases"]

    expect(release).to_contain_text("Ready to release")
    expect(release).to_contain_text(f"{stored['quality']['psnr']:.1f} dB")
    expect(release).to_contain_text(f"{stored['quality']['linf']:.0f} of 255")
    expect(release.get_by_role("row")).to_have_count(15)
    rows = release.get_by_role("row").all_inner_texts()
    found = [sum(row.split("\t")[column].strip() == "found" for row in rows[1:]) for column in (1, 2)]
    expect(release).to_contain_text(
        f"{found[0]} of {len(rows) - 1} before activation, {found[1]} of {len(rows) - 1} now"
    )
    assert found[1] >= found[0] > 0

    with Image.open(photos / "flower.jpg") as flower:
        expected = flower.width
    assert [width_of(each) for each in release.locator(".slider img").all()] == [expected, expected]
    for name in ("Difference", "JND map"):
        release.get_by_role("radio", name=name).check()
        assert width_of(release.locator(".stage img")) == expected

    with tab.expect_download() as download:
        release.get_by_role("button", name="Download").click()
    assert download.value.suggested_filename == "flower.jpg"
    assert hashlib.sha256(download.value.path().read_bytes()).hexdigest() == stored["sha256"]


def test_the_slider_moves_by_keyboard(open_page: Open, own_server: Server, photos: Path) -> None:
    tab = open_page(own_server.address, "activate")
    release = activate(tab, photos / "rocket.jpg", "homing-fast")
    slider = release.get_by_role("slider", name="Share of the original that is shown")

    def cut() -> str:
        return str(release.locator(".over").evaluate("each => getComputedStyle(each).clipPath"))

    slider.focus()
    tab.keyboard.press("End")
    assert cut() == "inset(0px 0px 0px 100%)"
    tab.keyboard.press("Home")
    assert cut() in ("inset(0px)", "inset(0px 0px 0px 0%)")
    for screen in (DESKTOP, PHONE):
        tab.set_viewport_size(screen)
        for scheme in ("light", "dark"):
            tab.emulate_media(color_scheme=scheme)
            check_accessibility(tab)


def test_an_unchanged_picture_shows_the_reason(open_page: Open, own_server: Server, tmp_path: Path) -> None:
    Image.new("RGBA", (64, 64), (10, 200, 30, 0)).save(tmp_path / "nothing.png")
    tab = open_page(own_server.address, "activate")
    release = activate(tab, tmp_path / "nothing.png")
    (listed,) = own_server.client.get("/v1/photos?name=nothing").json()["photos"]
    (stored,) = own_server.client.get(f"/v1/photos/{listed['id']}").json()["releases"]
    assert stored["state"] == "unchanged"
    expect(release).to_contain_text("Released unchanged")
    expect(release.locator(".lead")).to_contain_text(stored["reason"])


def test_found_before_is_measured_on_the_uploaded_photo(
    open_page: Open, template: Path, extractor: Extractor, photos: Path, tmp_path: Path
) -> None:
    """The file that the reference was added from has changed."""
    shutil.copytree(template, tmp_path / "own.homing")
    shutil.copy(photos / "camera.png", tmp_path / "first.png")
    with Collection.open(tmp_path / "own.homing", extractor=extractor) as collection:
        collection.add(tmp_path / "first.png")
    shutil.copy(photos / "rocket.jpg", tmp_path / "first.png")
    with running_server(tmp_path / "own.homing", extractor) as server:
        tab = open_page(server.address, "activate")
        release = activate(tab, photos / "camera.png", "homing-fast")
        expect(release.get_by_role("columnheader")).to_have_text(["Edited copy", "Before", "Now"])
        expect(release.locator(".lead")).to_have_text(
            re.compile(r"^Edited copies found with one probe: \d+ of 14 before activation, \d+ of 14 now\.$")
        )


@pytest.mark.slow
def test_a_file_that_is_no_photo_shows_one_line(open_page: Open, server: Server, tmp_path: Path) -> None:
    (tmp_path / "letter.jpg").write_text("Dear editor")
    tab = open_page(server.address, "activate")
    choose_files(tab, tmp_path / "letter.jpg", "activate")
    tab.get_by_role("button", name="Activate").click()
    expect(tab.locator("#activate-notice").get_by_role("alert")).to_contain_text("letter.jpg: not a photo")
    expect(tab.get_by_role("button", name="Activate")).to_be_enabled()
    assert server.client.get("/v1/photos?name=letter").json()["total"] == 0
