"""Searching on the page: a picture comes in three ways, and the answer is in words."""

from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import expect
from tests.service.chromium import Open, bring, choose, width_of
from tests.service.conftest import Process, Server


def test_a_chosen_copy_is_told_by_name_with_its_chance(open_page: Open, server: Server, copy: Path) -> None:
    best = server.post("/v1/search", copy).json()["matches"][0]
    tab = open_page(server.address)
    choose(tab, copy)
    answer = tab.locator("#answer")
    expect(answer.get_by_role("heading", level=2)).to_contain_text("copy of rocket.jpg")
    expect(answer).to_contain_text(f"Chance of a false match: {best['chance_in_words']}.")
    expect(answer).to_contain_text("references")
    for picture in answer.locator(".pair img").all():
        assert width_of(picture) > 100
    expect(tab.locator("#heard")).to_contain_text("rocket.jpg")


@pytest.mark.parametrize("by", ["drop", "paste"])
def test_a_picture_is_dropped_or_pasted(open_page: Open, server: Server, copy: Path, by: str) -> None:
    tab = open_page(server.address)
    bring(tab, by, copy)
    expect(tab.locator("#answer h2")).to_contain_text("rocket.jpg")


@pytest.mark.parametrize("view", ["search", "activate"])
def test_what_is_dropped_and_no_file_is_told(open_page: Open, server: Server, view: str) -> None:
    tab = open_page(server.address, view)
    bring(tab, "drop")
    expect(tab.locator(f"#{view}-notice").get_by_role("alert")).to_contain_text("That is no file.")


def test_of_a_picture_that_is_not_there_is_no_sign(open_page: Open, server: Server, photos: Path) -> None:
    tab = open_page(server.address)
    choose(tab, photos / "camera.png")
    expect(tab.locator("#answer h2")).to_have_text("No sign of it in this collection")
    tab.get_by_text("What came nearest", exact=True).click()
    expect(tab.locator(".matches li")).to_have_count(10)
    expect(tab.locator(".matches")).to_contain_text("a stranger of the background")


def test_turned_copies_are_looked_for_when_asked(open_page: Open, server: Server, photos: Path, tmp_path: Path) -> None:
    with Image.open(photos / "chelsea.png") as cat:
        cat.convert("RGB").transpose(Image.Transpose.ROTATE_180).save(tmp_path / "turned.jpg")
    tab = open_page(server.address)
    asked = []
    tab.on("request", lambda request: asked.append(request.url))
    choose(tab, tmp_path / "turned.jpg")
    expect(tab.locator("#answer h2")).to_be_visible()
    tab.get_by_label("turned and mirrored").check()
    expect(tab.locator("#answer h2")).to_contain_text("copy of chelsea.png")
    assert [url for url in asked if "turned=true" in url]


def test_what_is_no_photo_gets_one_line(open_page: Open, server: Server, copy: Path, tmp_path: Path) -> None:
    (tmp_path / "letter.jpg").write_text("Dear editor")
    tab = open_page(server.address)
    choose(tab, tmp_path / "letter.jpg")
    problem = tab.locator("#search-notice").get_by_role("alert")
    expect(problem).to_contain_text("letter.jpg: not a photo")
    assert "\n" not in problem.inner_text().strip()
    choose(tab, copy)
    expect(tab.locator("#answer h2")).to_contain_text("rocket.jpg")
    expect(problem).to_be_empty()


def test_a_picture_no_browser_shows_is_searched_for_all_the_same(
    open_page: Open, server: Server, photos: Path, tmp_path: Path
) -> None:
    with Image.open(photos / "rocket.jpg") as rocket:
        rocket.save(tmp_path / "rocket.tiff")
    tab = open_page(server.address)
    choose(tab, tmp_path / "rocket.tiff")
    expect(tab.locator("#answer h2")).to_contain_text("rocket.jpg")
    expect(tab.locator(".pair")).to_contain_text("No preview of this file")


def test_a_service_that_is_gone_is_told(open_page: Open, own_process: Process, copy: Path) -> None:
    tab = open_page(own_process.address)
    own_process.stop()
    choose(tab, copy)
    expect(tab.locator("#search-notice").get_by_role("alert")).to_have_text(
        "The service cannot be reached; is it still running?"
    )
