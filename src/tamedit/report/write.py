"""`tamedit report`: findings become one HTML file."""

from pathlib import Path

import tamedit
from tamedit.files import write_text
from tamedit.report import performance, training
from tamedit.report.findings import Findings
from tamedit.report.opening import data_section, privacy_section, top
from tamedit.report.page import join, page

FILE = "report.html"


def html(found: Findings) -> str:
    """The whole page."""
    sections = [
        ("data", "What the data looks like", data_section(found)),
        ("privacy", "The privacy statement", privacy_section(found)),
        ("training", "Training", training.training_section(found)),
        ("gradients", "Gradient tails and clipping", training.gradient_section(found)),
        ("pictures", "Gap fills and forecasts", performance.pictures_section(found)),
        ("scores", "Scores beside free guesses", performance.scores_section(found)),
        ("calibration", "Are the intervals honest?", performance.calibration_section(found)),
    ]
    scored = found.evaluation
    footer = join(
        [
            f"Made by tamedit {tamedit.__version__} from {scored.windows} test windows with {scored.samples} samples each, ",
            f"seed {found.seed}. This file is whole: it needs no network and runs no script.",
        ]
    )
    return page(f"Report of {found.name}", top(found), sections, footer)


def write_report(found: Findings, out: Path) -> Path:
    """Write the page, all of it or nothing."""
    write_text(out, html(found))
    return out
