"""Draws the four pictures of docs/playground.md: the playground at 1280 and 375 pixels, light and dark.

python tools/playground_pictures.py RUN        # a run, a release, or homes; needs the extra dev and Chromium
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

OUT = Path(__file__).parents[1] / "docs" / "images"
PORT = 8733
WAIT = 240_000


def gap(page: Page, first: float, last: float) -> None:
    """Drag over these shares of the chart, and wait for the fill."""
    box = page.locator("#chart").bounding_box()
    assert box is not None
    level = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + first * box["width"], level)
    page.mouse.down()
    page.mouse.move(box["x"] + last * box["width"], level, steps=3)
    page.mouse.up()
    page.wait_for_selector("#result:not([hidden])", timeout=WAIT)


def fill(page: Page) -> None:
    page.click("#sample")
    page.wait_for_selector("#chart svg .seen")
    page.click("#closer")
    gap(page, 0.42, 0.58)


def forecast(page: Page) -> None:
    page.click("#sample")
    page.wait_for_selector("#chart svg .seen")
    page.locator("label[for=mode-forecast]").click()
    page.check("#hold")
    page.click("#closer")
    page.click("#later")
    page.click("#go")
    page.wait_for_selector("#result:not([hidden])", timeout=WAIT)


def budget(page: Page) -> None:
    page.click("#tab-budget")
    page.wait_for_selector("#plan-result:not([hidden])", timeout=WAIT)


def homes(page: Page) -> None:
    page.click("#tab-homes")
    page.click("#homes-form button[type=submit]")
    page.wait_for_selector("#homes-grid figure", timeout=WAIT)


SCENES: tuple[tuple[int, str, Any], ...] = (
    (1280, "light", fill),
    (1280, "dark", budget),
    (375, "light", forecast),
    (375, "dark", homes),
)


def main(run: str) -> None:
    command = [sys.executable, "-m", "tamedit", "serve", run, "--port", str(PORT)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        said = server.stdout.readline()
        address = re.search(r"http\S+", said)
        assert address is not None, said
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            for width, scheme, scene in SCENES:
                context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)  # type: ignore[arg-type]
                page = context.new_page()
                page.goto(address[0])
                page.wait_for_selector("#served:has-text('every')")
                scene(page)
                page.mouse.move(0, 0)
                page.wait_for_timeout(300)
                place = OUT / f"playground-{width}-{scheme}.png"
                page.screenshot(path=place, full_page=True)
                print(f"wrote {place.name} ({place.stat().st_size // 1000} kB)")
                context.close()
            browser.close()
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "homes")
