"""The stored results of the page are those of the repository, and the reference page follows the API."""

import json
import re
import runpy
from importlib.resources import files
from pathlib import Path

from live_server import Live

import tamedit

ROOT = Path(__file__).parents[2]
PAGE = files("tamedit") / "serve" / "page"


def test_stored_results_are_current() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "playground_results.py"))
    place = files("tamedit") / "serve" / "stored.json"
    assert place.read_text(encoding="utf-8") == tool["text"](), "run python tools/playground_results.py"


def test_a_stored_number_is_that_of_its_runs(live: Live) -> None:
    found = live.ask("GET", "/api/measured")[1]
    (row,) = (one for one in found["units"]["series"] if one["epsilon"] == 8)
    folder = ROOT / "paper/results/laptop/ideal/aware/epsilon=8/unit=series/medium/tanh/free/public=homes"
    ratios = []
    for seed in range(3):
        tasks = json.loads((folder / f"seed={seed}.json").read_text(encoding="utf-8"))["evaluation"]["tasks"]
        ratios.append(tasks["long_gap"]["model"]["z"]["CRPS"] / tasks["long_gap"]["free_distribution"]["z"]["CRPS"])
    assert row["seeds"] == 3
    assert abs(row["ratio"]["long_gap"] - sum(ratios) / 3) < 1e-5
    assert abs(row["high"]["long_gap"] - max(ratios)) < 1e-5


def test_the_reference_names_every_address_and_field(live: Live) -> None:
    schema = live.ask("GET", "/api/openapi.json")[1]
    assert schema["info"]["version"] == tamedit.__version__
    words = live.ask("GET", "/api/docs")[1]
    assert {"/api/impute", "/api/forecast", "/api/generate", "/api/account", "/api/plan", "/api/card"} <= set(
        schema["paths"]
    )
    for path in schema["paths"]:
        assert path in words
    for name, one in schema["components"]["schemas"].items():
        assert all(f"<code>{field}</code>" in words for field in one.get("properties", {})), name
    assert "<script" not in words


def test_pages_name_nothing_from_elsewhere() -> None:
    for file in PAGE.iterdir():
        addresses = re.findall(r"https?://[^\s\"'`)]+", file.read_text(encoding="utf-8"))
        assert set(addresses) <= {"http://www.w3.org/2000/svg"}, file.name
    page = (PAGE / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"\sstyle=|\son\w+=|<script(?![^>]*src=)", page)  # the policy would stop them
