"""Pictures, in one style: colour-blind safe (Okabe and Ito's palette), readable at column width, PNG and SVG."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tamedit.files import replacing

INK, BLUE, ORANGE, GREY = "#222222", "#0072B2", "#D55E00", "#999999"
RUNS = (GREY, BLUE, ORANGE, "#009E73", "#CC79A7", "#56B4E9", "#E69F00", INK)  # one colour and one dash pattern per run
DASHES: tuple[Any, ...] = ("-", "-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)), "-", (0, (5, 1.5)), (0, (1, 1)))
WIDTH = 7.0  # inches: the width of a text column
STYLE: Any = {
    "figure.dpi": 150,
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#666666",
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "tamedit",  # the same figure, the same file
}


@dataclass(frozen=True)
class Band:
    """One series with a stretch that was drawn: everything (T,), NaN where there is nothing to show."""

    title: str
    times: pd.DatetimeIndex
    observed: np.ndarray
    truth: np.ndarray  # of the hidden cells
    quantiles: dict[int, np.ndarray]  # 5, 25, 50, 75, 95
    baseline: np.ndarray  # the free fill
    unit: str = ""


@contextmanager
def styled(height: float, *paths: Path) -> Iterator[Any]:
    """A figure in our style, `height` inches high; at the end it is written to every path, PNG or SVG by the ending.

    Nothing of pyplot's global state is touched.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        yield figure
        for path in paths:
            with replacing(path) as temporary:
                kind = path.suffix.lstrip(".")
                figure.savefig(temporary, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)


@contextmanager
def picture(path: Path, rows: int, height: float = 1.9) -> Iterator[Any]:
    """Axes of a figure with `rows` panels, one below the other."""
    with styled(height * rows + 0.5, path) as figure:
        yield np.atleast_1d(figure.subplots(rows, 1))


def run_style(number: int) -> dict[str, Any]:
    """Colour and dash of the n-th run of a figure."""
    return {"color": RUNS[number % len(RUNS)], "ls": DASHES[number % len(DASHES)], "lw": 1.4}


def log_axis(axis: Any) -> None:
    """A logarithmic x or y axis with plain numbers that do not run into each other; call it when the limits stand."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    low, high = sorted(axis.get_view_interval())
    decades = np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    width = np.log10(high / low)
    several = (1, 1.5, 2, 3, 4, 6, 8) if width < 0.8 else (1, 2, 5)
    steps = several if width < 1.3 else (1, 3) if width < 2.6 else (1,)
    every = max(1, int(np.ceil(width / 5)))
    ticks = [step * 10.0**decade for decade in decades[decades % every == 0] for step in steps]
    axis.set_major_locator(FixedLocator([tick for tick in ticks if low <= tick <= high]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def bands(panels: Sequence[Band], path: Path) -> Path:
    """Gap fills or forecast fans with the truth and the free fill, one panel each."""
    with picture(path, len(panels)) as axes:
        for axis, panel in zip(axes, panels, strict=True):
            times = panel.times
            axis.fill_between(
                times,
                panel.quantiles[5],
                panel.quantiles[95],
                color=BLUE,
                alpha=0.18,
                lw=0,
                label="90 % of the samples",
            )
            axis.fill_between(
                times,
                panel.quantiles[25],
                panel.quantiles[75],
                color=BLUE,
                alpha=0.35,
                lw=0,
                label="50 % of the samples",
            )
            axis.plot(times, panel.quantiles[50], color=BLUE, lw=1.4, label="median")
            axis.plot(times, panel.baseline, color=GREY, lw=1.0, ls="--", label="free fill")
            axis.plot(times, panel.observed, color=INK, lw=1.0, label="observed")
            axis.plot(times, panel.truth, color=ORANGE, lw=0, marker=".", ms=3.5, label="hidden truth")
            axis.set_title(panel.title)
            axis.set_ylabel(panel.unit)
            axis.margins(x=0.01)
            date_axis(axis)
        axes[0].legend(
            ncols=6, loc="lower left", bbox_to_anchor=(-0.02, 1.14), fontsize=7.5, handlelength=1.4, columnspacing=1.0
        )
    return path


def joined(drawn: np.ndarray) -> np.ndarray:
    """(T,) the drawn steps and one on each side of every run of them, so that lines meet what was observed."""
    return drawn | np.append(False, drawn[:-1]) | np.append(drawn[1:], False)


def plain(text: str, most: int = 60) -> str:
    """A name as a figure may show it: one line, not too long, no formulas, nothing that SVG forbids."""
    printable = "".join(letter if letter.isprintable() else " " for letter in text)
    short = printable if len(printable) <= most else printable[: most - 1] + "…"
    return short.replace("$", r"\$")


def date_axis(axis: Any) -> None:
    """Dates that do not run into each other."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    # With fewer ticks it finds no step for spans just below 4 minutes, hours, days or years, and warns.
    locator = AutoDateLocator(minticks=4, maxticks=9)
    axis.xaxis.set_major_locator(locator)
    axis.xaxis.set_major_formatter(ConciseDateFormatter(locator))
