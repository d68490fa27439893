"""The page in a real browser, against the server that `tamedit serve` starts: drop a file, fill, forecast, compare, download."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tamedit.diffusion.sample import SamplerConfig
from tamedit.tasks.model import Model

ALIKE = SamplerConfig(starts="antithetic")  # the page scores its samples; a table of quantiles alone comes from others

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
FLAGS += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
DROP = """text => {
  const given = new DataTransfer();
  given.items.add(new File([text], "mine.csv", {type: "text/csv"}));
  document.body.dispatchEvent(new DragEvent("drop", {dataTransfer: given, bubbles: true, cancelable: true}));
}"""
DONE = "document.getElementById('explore-status').textContent.startsWith('Done')"
NAMELESS = """() => [...document.querySelectorAll('input, select, button, [tabindex]')].filter(one =>
  !(one.labels?.length || one.getAttribute('aria-label') || one.getAttribute('aria-labelledby') || one.textContent.trim())
).map(one => one.outerHTML)"""
LOOSE = """() => [...document.querySelectorAll('p, h1, h2, button, label, dd, dt, th, td, .panel')].filter(one => {
  const box = one.getBoundingClientRect();
  return box.width && !one.closest('.tabs, .scroll, .unseen') && (box.right > innerWidth + 1 || box.left < -1);
}).map(one => one.outerHTML.slice(0, 80))"""


def lacking(what: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what}, and CI must open the playground in a browser")
    pytest.skip(what)


def wait(page: Any, condition: str) -> None:
    """Until this is true. The page's policy forbids what playwright's own waiting would evaluate in it."""
    until = time.monotonic() + 40
    while not page.evaluate(condition):
        assert time.monotonic() < until, condition
        page.wait_for_timeout(50)


@pytest.fixture(scope="module")
def address(smoke_run: Path) -> Iterator[str]:
    """`tamedit serve`, in a process of its own; Ctrl-C ends it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tamedit", "serve", str(smoke_run), "--port", str(port)]
    plain = {**os.environ, "PYTHONUNBUFFERED": "1"}
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=plain)
    try:
        assert server.stdout is not None
        found = re.search(r"open (http://127\.0\.0\.1:\d+/)", server.stdout.readline())
        assert found is not None, server.stderr
        yield found[1]
        server.send_signal(signal.SIGINT)
        _, said = server.communicate(timeout=20)
        assert server.returncode == 0
        assert said == ""  # no mistake of the server while the page was used
    finally:
        server.kill()
        server.wait()


@dataclass
class Visit:
    """A page and what it did."""

    page: Any
    address: str
    asked: list[str]
    said: list[str]

    def gap(self, first: float, last: float) -> None:
        """Drag over these shares of the chart, and wait for the fill."""
        box = self.page.locator("#chart").bounding_box()
        level = box["y"] + box["height"] / 2
        self.page.mouse.move(box["x"] + first * box["width"], level)
        self.page.mouse.down()
        self.page.mouse.move(box["x"] + last * box["width"], level, steps=3)
        self.page.mouse.up()

    def tile(self, name: str) -> str:
        return str(self.page.locator(name).inner_text())


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    program = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    if program is None:
        lacking("no Chromium on PATH; install the package chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        lacking("playwright is not installed")
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=program, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def visit(browser: Any, address: str) -> Iterator[Visit]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    page = context.new_page()
    page.set_default_timeout(30_000)
    found = Visit(page, address, [], [])
    page.on("request", lambda request: found.asked.append(request.url))
    page.on("console", lambda message: found.said.append(message.text))
    page.on("pageerror", lambda error: found.said.append(str(error)))
    page.goto(address)
    wait(page, "document.getElementById('served').textContent.includes('kwh')")
    yield found
    context.close()
    assert found.said == []  # no mistake, and nothing that the policy stopped
    assert all(one.startswith((address, f"blob:{address}")) for one in found.asked)


def test_drop_fill_compare_and_download(visit: Visit, frame: pd.DataFrame, smoke_run: Path) -> None:
    page = visit.page
    text = frame.rename(columns={"kwh": "load"}).to_csv()
    page.evaluate(DROP, text)
    page.wait_for_selector("#chart svg .seen")
    assert "240 rows, 0 missing" in visit.tile("#explore-status")
    assert "load was read as kwh" in page.locator("#notes").inner_text() + page.locator("#notes ul").text_content()
    page.fill("#samples", "20")
    visit.gap(0.4, 0.5)
    wait(page, DONE)
    for drawn in (".band90", ".band50", ".median", ".path", ".free", ".truth"):
        assert page.locator(f"#chart {drawn}").count() >= 1, drawn
    with page.expect_download() as waiting:
        page.click("#download")
    table = pd.read_csv(waiting.value.path(), index_col="time", parse_dates=True)
    assert waiting.value.suggested_filename == "mine-filled.csv"
    filled = table["filled"] == 1
    assert 10 < filled.sum() < 40
    assert len(table) == 240
    holed = frame.mask(filled)
    wanted = Model.load(smoke_run, "cpu").impute(holed, samples=20, seed=0, sampler=ALIKE)
    for column, own in (("load", "kwh"), ("load_q05", "kwh_q05"), ("load_q95", "kwh_q95")):
        np.testing.assert_allclose(table[column], wanted[own], rtol=1e-5)
    assert int(visit.tile("#compared")) == filled.sum()
    model, free = (float(visit.tile(name)) for name in ("#crps-model", "#crps-free"))
    winner = "Both" if abs(1 - model / free) < 0.02 else "The model" if model < free else "The free distribution"
    assert visit.tile("#verdict").startswith(winner)
    page.click("#clear")
    assert page.locator("#result").is_hidden()


def test_forecast_the_hidden_end_and_the_future(visit: Visit, frame: pd.DataFrame, smoke_run: Path) -> None:
    page = visit.page
    page.set_input_files("#file", {"name": "kwh.csv", "mimeType": "text/csv", "buffer": frame.to_csv().encode()})
    page.wait_for_selector("#chart svg .seen")
    page.fill("#samples", "20")
    page.locator("label[for=mode-forecast]").click()
    page.check("#hold")
    page.click("#go")
    wait(page, DONE)
    assert visit.tile("#compared") == "24"
    assert page.locator("#chart .truth").count() == 1
    page.uncheck("#hold")
    page.select_option("#horizon", "48")
    page.click("#go")
    wait(page, DONE)
    assert visit.tile("#crps-model") == "–"
    with page.expect_download() as waiting:
        page.click("#download")
    table = pd.read_csv(waiting.value.path(), index_col="time", parse_dates=True)
    wanted = Model.load(smoke_run, "cpu").forecast(frame, 48, samples=20, seed=0, sampler=ALIKE)
    assert list(table.index) == list(wanted.index)
    np.testing.assert_allclose(table["kwh"], wanted["kwh"], rtol=1e-5)


def test_gaps_by_keys_and_names_for_readers(visit: Visit, frame: pd.DataFrame) -> None:
    page = visit.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.evaluate(DROP, frame.to_csv())
    page.wait_for_selector("#chart svg .seen")
    page.fill("#samples", "4")
    page.focus("#chart")
    page.keyboard.press("ArrowLeft")
    for _ in range(5):
        page.keyboard.press("Shift+ArrowLeft")
    assert "6 rows selected" in visit.tile("#explore-status")
    page.keyboard.press("Enter")
    assert "1 gap, 6 rows hidden." in visit.tile("#explore-status")
    wait(page, DONE)
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(NAMELESS) == []
    assert visit.tile("#compared") == "6"
    page.focus("#tab-explore")
    page.keyboard.press("End")
    assert page.evaluate("document.activeElement.id") == "tab-card"
    page.wait_for_selector("#card-panel h2")
    assert "Trained without privacy" in visit.tile("#card-panel")
    assert page.locator("#explore").is_hidden()


def test_a_mistake_is_one_sentence_and_stopping_stops(visit: Visit) -> None:
    page = visit.page
    page.evaluate(DROP, "time,x\nyesterday,1\n")
    page.wait_for_selector("#explore-problem:not([hidden])")
    assert "yesterday" in visit.tile("#explore-problem") or "time" in visit.tile("#explore-problem")
    visit.said.clear()  # the browser notes the refused request
    page.click("#sample")
    page.wait_for_selector("#chart svg .seen")
    page.fill("#samples", "500")
    page.locator("label[for=mode-forecast]").click()
    page.select_option("#horizon", "168")
    page.click("#go")
    health = "fetch('/api/health').then(answer => answer.json())"
    wait(page, f"{health}.then(found => found.computing === 1)")
    page.click("#stop")
    wait(page, "document.getElementById('explore-status').textContent === 'Stopped.'")
    until = time.monotonic() + 10
    while (found := page.evaluate(health))["computing"]:
        assert time.monotonic() < until
    assert found["cancelled"] >= 1


def test_a_phone_and_the_dark(browser: Any, address: str) -> None:
    colours = []
    for scheme in ("light", "dark"):
        context = browser.new_context(viewport={"width": 375, "height": 800}, color_scheme=scheme)
        page = context.new_page()
        page.goto(address)
        page.click("#sample")
        page.wait_for_selector("#chart svg .seen")
        for tab in ("explore", "homes", "budget", "card"):
            page.click(f"#tab-{tab}")
            assert page.evaluate("document.documentElement.scrollWidth") <= 375
            assert page.evaluate(LOOSE) == [], tab
        colours.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        context.close()
    light, dark = (sum(map(int, re.findall(r"\d+", colour))) for colour in colours)
    assert light > 600
    assert dark < 150
