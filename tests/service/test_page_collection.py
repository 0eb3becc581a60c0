"""The collection on the page: counts, names, paging and removal."""

from pathlib import Path

from PIL import Image
from playwright.sync_api import expect
from tests.service.chromium import Open, choose_files
from tests.service.conftest import Server

from homing.collection.storage._sqlite_database import file_lock


def fill(server: Server, photos: Path, count: int) -> None:
    """Add `count` small crops of a photo, named crop-00.jpg and so on."""
    files = []
    with Image.open(photos / "rocket.jpg") as rocket:
        for number in range(count):
            path = server.folder.parent / f"crop-{number:02}.jpg"
            rocket.crop((4 * number, 0, 4 * number + 200, 200)).save(path)
            files.append(path)
    assert server.post("/v1/photos", *files).status_code == 201


def test_counts_and_latest_photos_are_shown(open_page: Open, server: Server) -> None:
    tab = open_page(server.address, "collection")
    figures = tab.locator("#counts")
    expect(figures).to_contain_text("118,287")
    assert figures.locator("div", has_text="Photos").locator("dd").first.inner_text() == str(
        server.client.get("/v1/info").json()["photos"]
    )
    names = [each["photo"] for each in server.client.get("/v1/photos").json()["photos"]]
    expect(tab.locator("#photos h3")).to_have_text(names)
    expect(tab).to_have_title("Collection · homing")


def test_names_are_searched_while_typing(open_page: Open, server: Server) -> None:
    tab = open_page(server.address, "collection")
    expect(tab.locator("#photos li").nth(2)).to_be_visible()
    tab.get_by_role("searchbox", name="Search by name").fill("chel")
    expect(tab.locator("#photos h3")).to_have_text(["chelsea.png"])
    tab.get_by_role("searchbox").fill("unknown name")
    expect(tab.locator("#collection-notice")).to_contain_text("No photo has this name.")
    expect(tab.locator("#photos li")).to_have_count(0)


def test_photos_are_paged_and_removed_after_confirmation(open_page: Open, own_server: Server, photos: Path) -> None:
    fill(own_server, photos, 33)
    tab = open_page(own_server.address, "collection")
    items = tab.locator("#photos li")
    expect(items).to_have_count(30)
    tab.get_by_role("button", name="Show more").evaluate("each => { each.click(); each.click(); }")
    expect(tab.get_by_role("button", name="Show more")).to_be_hidden()
    tab.wait_for_load_state("networkidle")
    expect(items).to_have_count(36)
    expect(items.nth(30).get_by_role("button")).to_be_focused()

    remove = tab.get_by_role("button", name="Remove crop-32.jpg")
    remove.click()
    dialog = tab.get_by_role("dialog", name="Remove crop-32.jpg?")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    tab.keyboard.press("Enter")
    expect(dialog).to_be_hidden()
    expect(remove).to_be_focused()
    assert own_server.client.get("/v1/photos?name=crop-32").json()["total"] == 1

    remove.click()
    dialog.get_by_role("button", name="Remove").click()
    expect(tab.locator("#collection-notice")).to_contain_text("Removed crop-32.jpg.")
    expect(items).to_have_count(35)
    assert own_server.client.get("/v1/photos?name=crop-32").json()["total"] == 0
    expect(tab.locator("#counts").locator("div", has_text="Photos").locator("dd").first).to_have_text("35")


def test_removing_a_removed_photo_shows_an_error_in_the_dialog(open_page: Open, own_server: Server) -> None:
    tab = open_page(own_server.address, "collection")
    tab.get_by_role("button", name="Remove flower.jpg").click()
    (flower,) = own_server.client.get("/v1/photos?name=flower").json()["photos"]
    assert own_server.client.delete(f"/v1/photos/{flower['id']}").status_code == 204
    dialog = tab.get_by_role("dialog")
    dialog.get_by_role("button", name="Remove").click()
    expect(dialog.get_by_role("alert")).to_contain_text(f"no reference has the id {flower['id']}")
    tab.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_a_late_response_does_not_close_the_dialog_of_another_photo(open_page: Open, own_server: Server) -> None:
    tab = open_page(own_server.address, "collection")
    with file_lock(own_server.folder, "uploads.lock"):
        tab.get_by_role("button", name="Remove flower.jpg").click()
        tab.evaluate("""() => {
            const before = window.fetch;
            const gate = new Promise((open) => (window.goOn = open));
            window.fetch = async (...request) => { await gate; return before(...request); };
        }""")
        dialog = tab.get_by_role("dialog")
        dialog.get_by_role("button", name="Remove").click()
        tab.keyboard.press("Escape")
        tab.get_by_role("button", name="Remove rocket.jpg").click()
        tab.evaluate("window.goOn()")
        expect(tab.locator("#collection-notice").get_by_role("alert")).to_contain_text("another process")
    expect(dialog).to_be_visible()
    expect(tab.locator("#remove-title")).to_have_text("Remove rocket.jpg?")
    expect(dialog.get_by_role("alert")).to_be_empty()


def test_names_are_never_read_as_html(open_page: Open, own_server: Server, photos: Path, tmp_path: Path) -> None:
    name = "<img src=x onerror=document.title='mine'>.jpg"
    assert own_server.post("/v1/photos", (name, (photos / "camera.png").read_bytes())).status_code == 201
    (reference,) = own_server.client.get("/v1/photos?name=onerror").json()["photos"]
    tab = open_page(own_server.address, "collection")
    expect(tab.locator("#photos h3").first).to_have_text(reference["photo"])
    tab.get_by_role("button", name="Remove").first.click()
    expect(tab.locator("#remove-title")).to_contain_text("<img")
    tab.keyboard.press("Escape")
    tab.get_by_role("link", name="Search").click()
    (tmp_path / name).write_bytes((photos / "camera.png").read_bytes())
    choose_files(tab, tmp_path / name)
    expect(tab.locator("#results h2")).to_contain_text("<img")
    assert tab.locator("[onerror]").count() == 0
    expect(tab).to_have_title("Search · homing")
