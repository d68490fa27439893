"""`tamedit report`: findings become one HTML file, through the templates beside this module.

Templates escape whatever they are given, so no name in the data can become markup. The page fetches nothing and runs nothing:
styles are inline, figures are data URIs, and a content security policy forbids everything else.
"""

from pathlib import Path
from typing import Any

import tamedit
from tamedit import formatting
from tamedit.evaluation.intervals import FEWEST
from tamedit.evaluation.task_table import TASKS
from tamedit.figures.report_figures import season, shown_lines, stretch_rows
from tamedit.files import write_text
from tamedit.model.bounds import Bounds
from tamedit.privacy.plain_words import in_words
from tamedit.privacy.statement import UNIT_WORDS
from tamedit.report.findings import Findings
from tamedit.report.performance import levels, tasks
from tamedit.report.pictures import draw
from tamedit.runs.folder import NOT_PRIVATE
from tamedit.runs.regime import regime_of_run
from tamedit.training.recorder import STATEMENT

FILE = "report.html"
FILTERS = {
    "counted": formatting.counted,
    "epsilon": formatting.epsilon,
    "percent": formatting.percent,
    "whole_percent": formatting.whole_percent,
    "significant": formatting.significant,
    "thousands": "{:,}".format,  # 1,234
    "short": "{:g}".format,  # 1e-05
}
CONSTANTS = {
    "version": tamedit.__version__,
    "not_private": NOT_PRIVATE,
    "unit_words": UNIT_WORDS,
    "measured_without_noise": STATEMENT,
    "labels": {name: task.label for name, task in TASKS.items()},
    "fewest": FEWEST,
}


def write_report(found: Findings, out: Path) -> Path:
    """Write the page, all of it or nothing."""
    write_text(out, html(found))
    return out


def html(found: Findings) -> str:
    """The whole page; bytes of a path that are not UTF-8 become question marks."""
    environment = formatting.templates()
    environment.filters.update(FILTERS)
    text = environment.get_template("page.html.j2").render(**CONSTANTS, **shown(found), pictures=draw(found))
    return text.encode("utf-8", "replace").decode("utf-8") + "\n"


def shown(found: Findings) -> dict[str, Any]:
    """What the templates show besides pictures: plain data."""
    test, lines, seasonal, asked = found.test, shown_lines(found.test), season(found.test), tasks(found)
    nominal, coverage = levels(asked)
    return {
        "found": found,
        "config": found.config,
        "evaluation": found.evaluation,
        "facts": found.facts,
        "privacy": found.privacy,
        "in_words": in_words(found.privacy),
        "record": found.comparison and found.comparison.records[0],
        "summary": found.comparison and found.comparison.summaries[0],
        "tasks": asked,
        "levels": nominal,
        "coverage": coverage,
        "drawn_channels": list(dict.fromkeys(test.targets[channel] for _, channel in lines)),
        "stretch_panels": len(lines),
        "stretch_lines": len(test.targets) if len(test.targets) > 1 else len(test.meters),
        "stretch_rows": stretch_rows(test),
        "season": seasonal and seasonal[1],
        "parameters": sum(one.numel() for one in found.model.network.parameters()),
        "bounds": "; ".join(_bounds(one) for one in dict.fromkeys(found.config.network.bounds)),
        "regime": regime_of_run(found.run, found.config),
    }


def _bounds(bounds: Bounds) -> str:
    if bounds == Bounds():
        return "none"
    return ", ".join("free" if limit is None else f"{limit:.3g}" for _, limit in bounds)
