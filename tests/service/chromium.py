"""A real Chromium, driven by Playwright. After each test, console errors and foreign requests fail it."""

from __future__ import annotations

import shutil
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, expect, sync_playwright

PATH = shutil.which("chromium")
DESKTOP, PHONE = {"width": 1280, "height": 860}, {"width": 360, "height": 740}
_TIMEOUT_MS = 60_000  # milliseconds: a busy machine may be slow
_REFUSED = "Failed to load resource:"  # logged by browsers for every error response

Open = Callable[..., Page]


@pytest.fixture(scope="module")  # not per session: while Playwright runs, this thread cannot run another event loop
def chromium() -> Iterator[Browser]:
    """The browser for the tests of one file."""
    if PATH is None:
        pytest.skip("there is no Chromium to open the page in; Debian: apt-get install chromium")
    expect.set_options(timeout=_TIMEOUT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=PATH, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Browser) -> Iterator[Open]:
    """Open the page of a server in a new tab, with options of a browser context."""
    errors: list[str] = []
    requested: list[str] = []
    origins: list[str] = []
    contexts = []

    def log(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(_REFUSED):
            errors.append(message.text)

    def open_(address: str, view: str = "search", **options: Any) -> Page:
        context = chromium.new_context(**{"viewport": DESKTOP, "locale": "en-GB", **options})
        contexts.append(context)
        tab = context.new_page()
        tab.set_default_timeout(_TIMEOUT_MS)
        tab.on("console", log)
        tab.on("pageerror", lambda error: errors.append(str(error)))
        tab.on("request", lambda request: requested.append(request.url))
        origins.append(address)
        tab.goto(f"{address}/#{view}")
        return tab

    yield open_
    for context in contexts:
        context.close()
    assert not errors
    origins += ["blob:", "data:"]
    assert all(url.startswith(tuple(origins)) for url in requested), "the page sent a request to another host"


def choose_files(tab: Page, files: Path | list[Path], view: str = "search") -> None:
    """Choose pictures with the button of a view."""
    tab.set_input_files(f"#{view}-file", files)


def drop_or_paste(tab: Page, by: str, *files: Path) -> None:
    """Drop or paste pictures with the events of a browser."""
    event = "new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true})"
    if by == "paste":
        event = "new ClipboardEvent('paste', {clipboardData: data, bubbles: true})"
    tab.evaluate(
        f"""(files) => {{
            const data = new DataTransfer();
            for (const [name, text] of files) {{
                const bytes = Uint8Array.from(atob(text), (each) => each.charCodeAt(0));
                data.items.add(new File([bytes], name, {{type: "image/jpeg"}}));
            }}
            document.body.dispatchEvent({event});
        }}""",
        [[file.name, b64encode(file.read_bytes()).decode()] for file in files],
    )


def width_of(picture: Locator) -> int:
    """The natural width of a picture in pixels."""
    expect(picture).not_to_have_class("loading")
    return int(picture.evaluate("each => each.decode().then(() => each.naturalWidth)"))


def check_accessibility(tab: Page) -> None:
    """Check with axe for violations, and for horizontal overflow."""
    expect(tab.locator("img.loading")).to_have_count(0)
    found = Axe().run(tab)
    assert found.violations_count == 0, found.generate_report()
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
