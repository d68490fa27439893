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
def picture(path: Path, rows: int, height: float = 1.9) -> Iterator[Any]:
    """Axes of a figure with `rows` panels in our style; at the end it is written as PNG or SVG, by the path's ending.

    Nothing of pyplot's global state is touched.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.0, height * rows + 0.5), layout="constrained")
        yield np.atleast_1d(figure.subplots(rows, 1))
        with replacing(path) as temporary:
            figure.savefig(temporary, format=path.suffix.lstrip("."), dpi=150)


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
            _date_axis(axis)
        axes[0].legend(
            ncols=6, loc="lower left", bbox_to_anchor=(-0.02, 1.14), fontsize=7.5, handlelength=1.4, columnspacing=1.0
        )
    return path


def _date_axis(axis: Any) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(minticks=4, maxticks=8)
    axis.xaxis.set_major_locator(locator)
    axis.xaxis.set_major_formatter(ConciseDateFormatter(locator))
