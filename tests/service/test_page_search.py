"""Search on the page: choose, drop or paste a picture."""

from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import expect
from tests.service.chromium import Open, choose_files, drop_or_paste, width_of
from tests.service.conftest import Process, Server


def test_a_match_shows_its_name_and_false_match_probability(open_page: Open, server: Server, copy: Path) -> None:
    best = server.post("/v1/search", copy).json()["matches"][0]
    tab = open_page(server.address)
    choose_files(tab, copy)
    answer = tab.locator("#results")
    expect(answer.get_by_role("heading", level=2)).to_have_text("Match: rocket.jpg")
    expect(answer).to_contain_text(f"False-match probability: {best['false_match_text']}.")
    expect(answer).to_contain_text("references")
    for picture in answer.locator(".pair img").all():
        assert width_of(picture) > 100
    expect(tab.locator("#announcer")).to_contain_text("rocket.jpg")


@pytest.mark.parametrize("by", ["drop", "paste"])
def test_a_picture_is_dropped_or_pasted(open_page: Open, server: Server, copy: Path, by: str) -> None:
    tab = open_page(server.address)
    drop_or_paste(tab, by, copy)
    expect(tab.locator("#results h2")).to_contain_text("rocket.jpg")


@pytest.mark.parametrize("view", ["search", "activate"])
def test_dropping_something_else_than_a_file_shows_an_error(open_page: Open, server: Server, view: str) -> None:
    tab = open_page(server.address, view)
    drop_or_paste(tab, "drop")
    expect(tab.locator(f"#{view}-notice").get_by_role("alert")).to_contain_text("This is not a file.")


def test_a_picture_without_a_match(open_page: Open, server: Server, photos: Path) -> None:
    tab = open_page(server.address)
    choose_files(tab, photos / "camera.png")
    expect(tab.locator("#results h2")).to_have_text("No match in this collection")
    tab.get_by_text("Nearest references", exact=True).click()
    expect(tab.locator(".matches li")).to_have_count(10)
    expect(tab.locator(".matches")).to_contain_text("distractor")


def test_variants_are_searched_for_on_request(open_page: Open, server: Server, photos: Path, tmp_path: Path) -> None:
    with Image.open(photos / "chelsea.png") as cat:
        cat.convert("RGB").transpose(Image.Transpose.ROTATE_180).save(tmp_path / "turned.jpg")
    tab = open_page(server.address)
    requests = []
    tab.on("request", lambda request: requests.append(request.url))
    choose_files(tab, tmp_path / "turned.jpg")
    expect(tab.locator("#results h2")).to_be_visible()
    tab.get_by_label("rotated and mirrored").check()
    expect(tab.locator("#results h2")).to_have_text("Match: chelsea.png")
    assert [url for url in requests if "variants=true" in url]


def test_a_file_that_is_no_photo_shows_one_line(open_page: Open, server: Server, copy: Path, tmp_path: Path) -> None:
    (tmp_path / "letter.jpg").write_text("Dear editor")
    tab = open_page(server.address)
    choose_files(tab, tmp_path / "letter.jpg")
    problem = tab.locator("#search-notice").get_by_role("alert")
    expect(problem).to_contain_text("letter.jpg: not a photo")
    assert "\n" not in problem.inner_text().strip()
    choose_files(tab, copy)
    expect(tab.locator("#results h2")).to_contain_text("rocket.jpg")
    expect(problem).to_be_empty()


def test_a_picture_without_a_preview_is_searched_for(
    open_page: Open, server: Server, photos: Path, tmp_path: Path
) -> None:
    with Image.open(photos / "rocket.jpg") as rocket:
        rocket.save(tmp_path / "rocket.tiff")
    tab = open_page(server.address)
    choose_files(tab, tmp_path / "rocket.tiff")
    expect(tab.locator("#results h2")).to_contain_text("rocket.jpg")
    expect(tab.locator(".pair")).to_contain_text("No preview of this file")


@pytest.mark.slow
def test_an_unreachable_service_shows_an_error(open_page: Open, own_process: Process, copy: Path) -> None:
    tab = open_page(own_process.address)
    own_process.stop()
    choose_files(tab, copy)
    expect(tab.locator("#search-notice").get_by_role("alert")).to_have_text(
        "The service cannot be reached; is it still running?"
    )
