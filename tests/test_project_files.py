"""What stands beside the code: one version everywhere, and a citation that can be read."""

import tomllib
from pathlib import Path

import yaml

import tamedit
from support import Run

ROOT = Path(__file__).parents[1]


def test_one_version_stands_everywhere(run: Run) -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    product = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    paper = tomllib.loads((ROOT / "paper" / "pyproject.toml").read_text(encoding="utf-8"))
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert run("--version").out == f"tamedit {tamedit.__version__}\n"
    assert citation["version"] == tamedit.__version__ == paper["project"]["version"]
    assert product["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "tamedit.__version__"}
    assert changes.split("\n## ")[1].startswith(tamedit.__version__)


def test_the_citation_names_the_paper_of_the_method() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors", "license"} <= set(citation)
    title = citation["references"][0]["title"]
    assert title in (ROOT / "README.md").read_text(encoding="utf-8").replace("*", "")
