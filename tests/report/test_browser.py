"""The page in a real browser: every figure is drawn, nothing is fetched, nothing runs over the edge of a phone."""

import json
import os
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tamedit.runs.release import release

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND",  # neither the page nor the browser itself reaches anyone
    "--virtual-time-budget=20000",
)
# What the page looks like and asked for; then a picture from elsewhere, to see that asking would have been noticed.
SCRIPT = """<script>
const asked = () => performance.getEntriesByType("resource").map(entry => entry.name);
(async () => {
  const found = {images: [], fetched: asked()};
  for (const image of document.images) {
    await image.decode().catch(() => 0);
    const box = image.getBoundingClientRect();
    found.images.push([image.naturalWidth, image.naturalHeight, box.width, box.height]);
  }
  found.fetched.push(...asked());
  document.body.style.width = "375px";
  const edge = document.body.getBoundingClientRect().right;
  const loose = [...document.querySelectorAll("p, li, h1, h2, h3, dt, dd, .card, .wide, .warning, .statement")];
  found.outside = loose.filter(one => one.getBoundingClientRect().right > edge + 1).map(one => one.outerHTML.slice(0, 80));
  const control = new Image();
  const ended = new Promise(done => { control.onerror = control.onload = done; });
  control.src = "http://elsewhere.invalid/control.png";
  await ended;
  found.control = asked();
  document.body.textContent = JSON.stringify(found);
})();
</script>"""


def browser() -> str:
    """Chromium's place; without one the test is skipped, but not where it must run."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    if os.environ.get("CI") == "true":
        pytest.fail("no Chromium on PATH, and CI must open the report in one; install the package chromium")
    pytest.skip("no Chromium on PATH; install the package chromium to test the report in a browser")


@pytest.mark.parametrize("name", ["private_page"])
def test_every_figure_is_drawn_and_nothing_is_fetched(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    page = request.getfixturevalue(name)
    found = opened(page, tmp_path)
    assert len(found["images"]) == page.count("<img ") >= 6
    assert all(min(sizes) > 100 for sizes in found["images"])
    assert found["fetched"] == []
    assert found["outside"] == []


def opened(page: str, tmp_path: Path) -> dict[str, Any]:
    """What a browser finds on a page; it is sure to notice what the page would fetch."""
    program = browser()
    # The copy is without the policy, which would forbid the script and hide what the page itself would fetch.
    free, dropped = re.subn(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    assert dropped == 1
    copy = tmp_path / "copy.html"
    copy.write_text(free.replace("</body>", SCRIPT + "</body>"), encoding="utf-8")
    command = [program, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", copy.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = json.loads(unescape(re.search(r"<body[^>]*>(.*)</body>", done.stdout, re.DOTALL).group(1)))
    assert found["control"] == ["http://elsewhere.invalid/control.png"]
    return found


def test_the_privacy_card_fetches_nothing_and_fits_a_phone(private_run: Path, tmp_path: Path) -> None:
    release(private_run, tmp_path / "out")
    page = (tmp_path / "out" / "privacy-card.html").read_text(encoding="utf-8")
    found = opened(page, tmp_path)
    assert found["fetched"] == found["outside"] == []
    assert "@media print" in page
    assert "prefers-color-scheme: dark" in page
