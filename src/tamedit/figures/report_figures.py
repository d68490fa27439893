"""The report's own pictures, and how any picture becomes part of a page: SVG as a data URI."""

import base64
import re
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tamedit.data.series import Series
from tamedit.evaluation.baselines import BAR
from tamedit.evaluation.cell_statistics import POINTS, central, in_order
from tamedit.evaluation.labels import LABELS
from tamedit.evaluation.reliability import Curve
from tamedit.figures.plots import BLUE, GREY, INK, Band, date_axis, joined, plain, styled

PANELS = 4  # channels or meters in a picture
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MOST_ROWS = 3000  # of a stretch
_NEEDLESS = re.compile(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<metadata>.*?</metadata>", re.DOTALL)


def embedded(draw: Callable[[Path], Any]) -> str:
    """The data URI of the SVG that `draw` writes to a place that ends in .svg."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # the browser has a font for it
        path = Path(folder) / "figure.svg"
        draw(path)
        text = _NEEDLESS.sub("", path.read_text(encoding="utf-8")).strip()
    return "data:image/svg+xml;base64," + base64.b64encode(text.encode()).decode()


def spread(count: int, most: int) -> list[int]:
    """At most `most` of `count` things, evenly over them."""
    return np.unique(np.linspace(0, count - 1, min(most, count)).round().astype(int)).tolist()


def shown_lines(series: Series) -> list[tuple[int, int]]:
    """(meter, channel) of a picture's panels: channels of the first meter, or meters of a single channel."""
    if len(series.targets) > 1:
        return [(0, channel) for channel in spread(len(series.targets), PANELS)]
    return [(meter, 0) for meter in spread(len(series.meters), PANELS - 1)]


def line_name(series: Series, meter: int, channel: int) -> str:
    name = series.meters[meter]
    return f"{name}: {series.targets[channel]}" if name else series.targets[channel]


def clock(series: Series) -> pd.DatetimeIndex:
    """The stamps as the clock on the wall showed them."""
    return series.times.tz_localize(None) if series.times.tz is not None else series.times


def stretch_rows(series: Series) -> int:
    """Rows of a stretch, at most: 14 seasons, within reason."""
    return int(np.clip(14 * series.period, 200, MOST_ROWS))


def stretch(series: Series, path: Path) -> None:
    """Two weeks (14 seasons, or what there is) from the beginning of some meters or channels."""
    lines, times, rows = shown_lines(series), clock(series), stretch_rows(series)
    with styled(1.25 * len(lines) + 0.4, path) as made:
        axes = np.atleast_1d(made.subplots(len(lines), 1))
        for axis, (meter, channel) in zip(axes, lines, strict=True):
            first, last = series.offsets[meter : meter + 2]
            part = slice(first, min(first + rows, last))
            axis.plot(times[part], series.values[part, channel], color=BLUE, lw=0.9)
            axis.set_title(plain(line_name(series, meter, channel)))
            axis.margins(x=0.01)
            date_axis(axis)


def season(series: Series) -> tuple[np.ndarray, str, tuple[str, ...]] | None:
    """(where in its season every row lies, what the season's axis is called, names of the places); None without a season."""
    times, seconds = clock(series), series.frequency.total_seconds()
    if seconds < 86_400:
        steps = np.floor((times.hour * 3600 + times.minute * 60 + times.second) / seconds)
        return np.asarray(steps * seconds / 3600), "hour of the day", ()
    if series.period == 7:
        return np.asarray(times.dayofweek, dtype=float), "day of the week", WEEKDAYS
    if series.period > 1:
        return np.asarray(times.month, dtype=float), "month of the year", ()
    return None


def profile(series: Series, path: Path) -> None:
    """Median and spread at every place of the season, over all meters; one panel per channel."""
    found = season(series)
    assert found is not None  # asked before
    place, label, names = found
    channels = spread(len(series.targets), PANELS)
    columns = min(len(channels), 2)
    rows = -(-len(channels) // columns)
    with styled(1.7 * rows + 0.5 if columns > 1 else 2.6, path) as made:
        axes = list(made.subplots(rows, columns, sharex=True, squeeze=False).flat)
        for axis, channel in zip(axes, channels, strict=False):
            groups = pd.Series(series.values[:, channel].astype(np.float64)).groupby(place)
            table = groups.quantile([0.1, 0.25, 0.5, 0.75, 0.9]).unstack()
            at = table.index.to_numpy()
            axis.fill_between(at, table[0.1], table[0.9], color=BLUE, alpha=0.18, lw=0, label="middle 80 %")
            axis.fill_between(at, table[0.25], table[0.75], color=BLUE, alpha=0.35, lw=0, label="middle 50 %")
            axis.plot(at, table[0.5], color=BLUE, lw=1.6, label="median")
            axis.set_title(plain(series.targets[channel], 40))
            axis.margins(x=0.01)
            if names:
                axis.set_xticks(range(len(names)), names)
            elif label == "hour of the day":
                axis.set_xticks(range(0, 25, 6))
        for axis in axes[len(channels) :]:
            axis.set_axis_off()
        made.supxlabel(label, fontsize=9)
        handles, labels = made.axes[0].get_legend_handles_labels()
        made.legend(handles, labels, loc="outside upper right", ncols=3, fontsize=8)


def window_band(
    title: str,
    times: pd.DatetimeIndex,
    truth: np.ndarray,  # (L,)
    observed: np.ndarray,  # (L,)
    scored: np.ndarray,  # (L,) what is neither is not shown
    samples: np.ndarray,  # (S, L)
    fill: np.ndarray,  # (L,)
    unit: str,
) -> Band:
    """One test window: what was seen, what was hidden, and what was drawn there."""
    wide = joined(scored)
    points = central(in_order(samples.T.astype(np.float64)))
    return Band(
        title=plain(title, 90),
        times=times,
        observed=np.where(observed, truth, np.nan),
        truth=np.where(scored, truth, np.nan),
        quantiles={
            round(100 * point): np.where(wide, values, np.nan) for point, values in zip(POINTS, points, strict=True)
        },
        baseline=np.where(wide, fill, np.nan),
        unit=plain(unit, 20),
    )


def reliability_figure(curves: Sequence[tuple[str, Curve, Curve]], path: Path) -> None:
    """Nominal level against observed share, one panel per task: (name, the model's curve, the free guess's)."""
    columns = min(len(curves), 3)
    rows = -(-len(curves) // columns)
    with styled((3.6 if columns < 3 else 2.9) * rows, path) as made:
        axes = list(made.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat)
        for axis, (name, model, free) in zip(axes, curves, strict=False):
            axis.plot([0, 100], [0, 100], color=INK, lw=0.8, ls=":", label="ideal")
            _curve(axis, free, color=GREY, ls="--", marker="s", label=LABELS[BAR])
            _curve(axis, model, color=BLUE, ls="-", marker="o", label=LABELS["model"])
            axis.set_title(name)
            axis.set(xlim=(0, 100), ylim=(0, 100), aspect="equal")
        for axis in axes[len(curves) :]:
            axis.set_axis_off()
        made.supxlabel("nominal level of the interval (%)", fontsize=9)
        made.supylabel("hidden cells inside (%)", fontsize=9)
        handles, labels = axes[0].get_legend_handles_labels()
        made.legend(handles, labels, loc="outside upper left", ncols=3, fontsize=8)


def _curve(axis: Any, curve: Curve, *, color: str, ls: str, marker: str, label: str) -> None:
    known = [at for at, share in enumerate(curve.coverage) if share is not None]
    levels = np.array([100 * curve.levels[at] for at in known])
    shares = np.array([100 * (curve.coverage[at] or 0.0) for at in known])
    ends = [curve.intervals[at] for at in known]
    if known and all(one is not None for one in ends):
        low, high = 100 * np.array(ends, dtype=float).T
        axis.fill_between(levels, low, high, color=color, alpha=0.15, lw=0)
    axis.plot(levels, shares, color=color, ls=ls, marker=marker, ms=4, lw=1.4, label=label)
