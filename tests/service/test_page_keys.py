"""The page of a service with keys: asks once, keeps the key until the tab is closed, shows errors."""

from pathlib import Path

from playwright.sync_api import expect
from tests.service.chromium import Open, check_accessibility, choose_files, width_of
from tests.service.conftest import Server


def test_a_key_is_asked_for_once_and_used_for_pictures(
    open_page: Open, keyed_server: Server, copy: Path, keys: dict[str, str]
) -> None:
    tab = open_page(keyed_server.address)
    choose_files(tab, copy)
    dialog = tab.get_by_role("dialog", name="This service requires a key")
    expect(dialog.get_by_label("Key")).to_be_focused()
    check_accessibility(tab)
    tab.keyboard.type("a-wrong-one")
    tab.keyboard.press("Enter")
    expect(dialog.get_by_role("alert")).to_have_text("The service does not know this key.")
    dialog.get_by_label("Key").fill(keys["search"])
    tab.keyboard.press("Enter")
    expect(tab.locator("#results h2")).to_contain_text("rocket.jpg")
    picture = tab.locator(".pair img").last
    assert width_of(picture) > 100
    tab.get_by_role("link", name="Collection").click()
    expect(tab.locator("#photos h3")).to_have_count(3)
    tab.reload()
    expect(tab.locator("#photos h3")).to_have_count(3)
    expect(dialog).to_be_hidden()


def test_concurrent_requests_share_one_key_dialog(open_page: Open, keyed_server: Server, keys: dict[str, str]) -> None:
    tab = open_page(keyed_server.address, "collection")
    tab.get_by_role("dialog").get_by_label("Key").fill(keys["search"])
    tab.keyboard.press("Enter")
    expect(tab.locator("#photos h3")).to_have_count(3)
    expect(tab.locator("#counts")).to_contain_text("118,287")
    expect(tab.get_by_role("dialog")).to_have_count(0)


def test_a_missing_key_shows_an_error(open_page: Open, keyed_server: Server, copy: Path) -> None:
    tab = open_page(keyed_server.address)
    choose_files(tab, copy)
    tab.get_by_role("button", name="Cancel").click()
    expect(tab.locator("#search-notice").get_by_role("alert")).to_contain_text("requires a key")


def test_a_forbidden_action_shows_an_error(open_page: Open, keyed_server: Server, keys: dict[str, str]) -> None:
    tab = open_page(keyed_server.address, "collection")
    tab.get_by_role("dialog").get_by_label("Key").fill(keys["search"])
    tab.keyboard.press("Enter")
    tab.get_by_role("button", name="Remove rocket.jpg").click()
    dialog = tab.get_by_role("dialog", name="Remove rocket.jpg?")
    dialog.get_by_role("button", name="Remove").click()
    expect(dialog.get_by_role("alert")).to_have_text("key 'search-user' has the role search; this request needs admin")
    with_key = {"Authorization": f"Bearer {keys['admin']}"}
    assert keyed_server.client.get("/v1/photos", headers=with_key).json()["total"] == 3
