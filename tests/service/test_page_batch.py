"""Search for several pictures on the page: the best match of each, and details on request."""

from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Page, expect
from tests.collection.tiny import tiny_photos
from tests.service.chromium import DESKTOP, PHONE, Open, check_accessibility, choose_files, drop_or_paste, width_of
from tests.service.conftest import Server


@pytest.fixture
def incoming(copy: Path, photos: Path, tmp_path: Path) -> list[Path]:
    """Four files: an unrelated photo, a text file, and copies of two references."""
    (tmp_path / "letter.jpg").write_text("Dear editor")
    with Image.open(photos / "chelsea.png") as cat:
        cat.convert("RGB").save(tmp_path / "cat.jpg", quality=50)
    return [photos / "camera.png", tmp_path / "letter.jpg", copy, tmp_path / "cat.jpg"]


def shown_texts(tab: Page) -> dict[str, str]:
    """The text of each picture by name, in the order shown."""
    rows = [row.locator("p").all_inner_texts() for row in tab.locator(".each li").all()]
    return {name: words for name, words, *_ in rows}


@pytest.mark.parametrize("by", ["choose", "drop", "paste"])
def test_each_picture_shows_its_best_match(open_page: Open, server: Server, incoming: list[Path], by: str) -> None:
    tab = open_page(server.address)
    if by == "choose":
        choose_files(tab, incoming)
    else:
        drop_or_paste(tab, by, *incoming)
    expect(tab.locator("#results h2")).to_have_text("2 of 4 pictures have a match")
    expect(tab.locator("#results .lead")).to_contain_text("1 picture could not be searched for.")
    expect(tab.locator("#announcer")).to_have_text("2 of 4 pictures have a match")
    texts = shown_texts(tab)
    copies = {"copy.jpg": "rocket.jpg", "cat.jpg": "chelsea.png"}
    assert {name: texts[name] for name in copies} == {name: f"Match: {of}" for name, of in copies.items()}
    assert texts["letter.jpg"].startswith("Not a photo") and texts["camera.png"] == "No match in this collection"
    assert set(list(texts)[:2]) == set(copies) and list(texts)[2:] == ["letter.jpg", "camera.png"]
    for row in tab.locator(".each li").all()[:2]:
        assert [width_of(picture) > 100 for picture in row.locator("img").all()] == [True, True]
    expect(tab.get_by_role("button", name="Details")).to_have_count(3)


def test_one_result_opens_in_detail_and_leads_back(open_page: Open, server: Server, incoming: list[Path]) -> None:
    tab = open_page(server.address)
    choose_files(tab, incoming)
    details = tab.get_by_role("button", name="Details of copy.jpg")
    details.press("Enter")
    title = tab.get_by_role("heading", level=2, name="Match: rocket.jpg")
    expect(title).to_be_focused()
    several = tab.locator(".pair, details").all_inner_texts()
    tab.get_by_role("button", name="Compare with rocket.jpg").click()
    expect(tab.get_by_role("dialog", name="Your picture and rocket.jpg")).to_be_visible()
    tab.keyboard.press("Escape")
    tab.get_by_role("button", name="Back to all 4 pictures").press("Enter")
    expect(details).to_be_focused()
    expect(tab.locator(".each li")).to_have_count(4)
    tab.get_by_role("button", name="Details of camera.png").click()
    expect(tab.locator("#results h2")).to_have_text("No match in this collection")
    choose_files(tab, incoming[2])
    expect(title).to_be_visible()
    expect(tab.get_by_role("button", name="Back to")).to_have_count(0)
    assert tab.locator(".pair, details").all_inner_texts() == several


def test_uncertain_matches_are_counted_separately(
    open_page: Open, server: Server, copy: Path, photos: Path, tmp_path: Path
) -> None:
    with Image.open(photos / "rocket.jpg") as rocket:
        for side in range(250, 20, -10):  # until the crop is too small for a certain match
            rocket.crop((200, 50, 200 + side, 50 + side)).save(tmp_path / "part.jpg", quality=60)
            matches = server.post("/v1/search", tmp_path / "part.jpg").json()["matches"]
            if matches[0]["verdict"] == "possible":
                break
        else:
            raise AssertionError("no crop has an uncertain match")
    tab = open_page(server.address)
    choose_files(tab, [tmp_path / "part.jpg", photos / "camera.png"])
    expect(tab.locator("#results h2")).to_have_text("None of 2 pictures has a match")
    expect(tab.locator("#results .lead")).to_have_text("1 possible match.")
    choose_files(tab, [tmp_path / "part.jpg", copy])
    expect(tab.locator("#results h2")).to_have_text("1 of 2 pictures has a match")
    expect(tab.locator("#results .lead")).to_have_text("1 possible match.")
    assert shown_texts(tab)["part.jpg"].startswith("Possible match: ")


def test_many_pictures_are_sent_in_several_requests(
    open_page: Open, server: Server, copy: Path, tmp_path: Path
) -> None:
    """Also if one is rejected together with the others of its request."""
    requests = []
    many = [*tiny_photos(tmp_path / "many", 18), copy]
    (tmp_path / ".hidden.jpg").write_bytes(copy.read_bytes())
    tab = open_page(server.address)
    tab.on("request", lambda request: requests.append(request.url) if "/v1/search" in request.url else None)
    choose_files(tab, many)
    expect(tab.locator("#results h2")).to_have_text("1 of 19 pictures has a match")
    assert len(requests) == 2 and next(iter(shown_texts(tab))) == "copy.jpg"
    choose_files(tab, [many[0], tmp_path / ".hidden.jpg", copy])
    expect(tab.locator("#results h2")).to_have_text("1 of 3 pictures has a match")
    assert list(shown_texts(tab)) == ["copy.jpg", ".hidden.jpg", "0000.png"]
    assert "plain file name" in shown_texts(tab)[".hidden.jpg"]


def test_variants_of_all_pictures_are_searched_for(
    open_page: Open, server: Server, incoming: list[Path], tmp_path: Path
) -> None:
    with Image.open(incoming[2]) as copy:
        copy.transpose(Image.Transpose.ROTATE_180).save(tmp_path / "turned.jpg")
    tab = open_page(server.address)
    choose_files(tab, [incoming[0], tmp_path / "turned.jpg"])
    expect(tab.locator(".each li")).to_have_count(2)
    tab.get_by_label("rotated and mirrored").check()
    expect(tab.locator("#results h2")).to_have_text("1 of 2 pictures has a match")
    assert shown_texts(tab)["turned.jpg"].endswith("atch: rocket.jpg")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_result_list_is_accessible(
    open_page: Open, server: Server, incoming: list[Path], scheme: str, screen: dict[str, int]
) -> None:
    tab = open_page(server.address, viewport=screen, color_scheme=scheme)
    choose_files(tab, incoming)
    expect(tab.locator(".each li")).to_have_count(4)
    check_accessibility(tab)
    tab.get_by_role("button", name="Details of copy.jpg").click()
    check_accessibility(tab)
