"""A real Chromium, Debian's package, that Playwright drives; what a page must never do is checked at the end."""

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
_REFUSED = "Failed to load resource:"  # which a browser logs of what a service refuses, whatever a page does

Open = Callable[..., Page]


@pytest.fixture(scope="module")  # no longer: while Playwright runs, this thread can run no event loop of its own
def chromium() -> Iterator[Browser]:
    """The browser, for the tests of a file."""
    if PATH is None:
        pytest.skip("there is no Chromium to open the page in; Debian: apt-get install chromium")
    expect.set_options(timeout=_TIMEOUT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=PATH, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Browser) -> Iterator[Open]:
    """Opens the page of the server at an address, in a tab of its own, with the options of a browser's context."""
    errors: list[str] = []
    asked: list[str] = []
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
        tab.on("request", lambda request: asked.append(request.url))
        origins.append(address)
        tab.goto(f"{address}/#{view}")
        return tab

    yield open_
    for context in contexts:
        context.close()
    assert not errors
    origins += ["blob:", "data:"]
    assert all(url.startswith(tuple(origins)) for url in asked), "the page asks nobody but the service"


def choose_files(tab: Page, files: Path | list[Path], view: str = "search") -> None:
    """Choose a picture, or several, as a person does who presses the button."""
    tab.set_input_files(f"#{view}-file", files)


def drop_or_paste(tab: Page, by: str, *files: Path) -> None:
    """Drop or paste pictures, as a browser tells a page of it."""
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
    """How many pixels wide a picture came."""
    expect(picture).not_to_have_class("loading")
    return int(picture.evaluate("each => each.decode().then(() => each.naturalWidth)"))


def check_accessibility(tab: Page) -> None:
    """That axe finds nothing which keeps people out, and that nothing sticks out at the side."""
    expect(tab.locator("img.loading")).to_have_count(0)
    found = Axe().run(tab)
    assert found.violations_count == 0, found.generate_report()
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
