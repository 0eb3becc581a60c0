"""Take docs/images/page.png: the page of the service with the photos that `make demo` writes to demo/.

    python tools/screenshot_page.py demo docs/images/page.png

Needs Chromium (Debian: apt-get install chromium) and the extra dev.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from homing.edits import parse

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.service.server_process import serve

PHOTO, EDIT = "chelsea.png", "meme"  # the query: a photo of the demo, edited


def main() -> None:
    """Serve the collection of the demo, search for a copy on the page and take a screenshot."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("demo", type=Path, help="the folder that homing demo wrote")
    parser.add_argument("out", type=Path, help="the PNG to write")
    options = parser.parse_args()
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("Chromium is not installed; on Debian: apt-get install chromium")
    if not (options.demo / "demo.homing").is_dir():
        sys.exit(f"{options.demo} has no demo.homing; run make demo")
    with serve(options.demo / "demo.homing") as server, tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.jpg"
        with Image.open(options.demo / "released" / PHOTO) as photo:
            parse(EDIT)(photo.convert("RGB"), 0).save(copy, quality=70)
        take(chromium, server.address, copy, options.out)
    print(f"wrote {options.out}")


def take(chromium: str, address: str, copy: Path, out: Path) -> None:
    """Search for a copy on the page and take a screenshot of the results."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1180, "height": 820}, locale="en-US", color_scheme="light")
        page.goto(address)
        page.set_input_files("#search-file", copy)
        page.locator("#results h2").wait_for()
        page.locator(".pair img:not(.loading)").nth(1).wait_for()
        page.mouse.move(0, 0)
        page.screenshot(path=out)
        browser.close()


if __name__ == "__main__":
    main()
