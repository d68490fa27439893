"""The figures of `tamedit diagnose`, each as PNG and SVG. They show training data without noise: not private."""

import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tamedit.diagnostics.compare import Comparison
from tamedit.diagnostics.gradient_record import NORMS, Record
from tamedit.figures.plots import GREY, INK, log_axis, run_style, styled
from tamedit.files import write_text
from tamedit.training.recorder import STATEMENT

PANELS = 4  # heat maps side by side
POINTS = 400  # of a curve: a million norms are drawn by their quantiles
MARK = "NOT-PRIVATE.txt"
TITLES = {"total": "‖g‖, all parameters", "cond": "conditioning path (cond)", "other": "the rest (other)"}


def draw_all(comparison: Comparison, folder: Path) -> list[Path]:
    """Every figure that the records can fill, in a folder that says what it is."""
    drawers: dict[str, tuple[Callable[[Comparison, Path], list[Path]], Callable[[Record], bool]]] = {
        "gradient-norms": (gradient_norms, lambda record: len(record.rows) > 0),
        "clipping-factors": (clipping_factors, lambda record: len(record.rows) > 0 and record.clip is not None),
        "loss-curves": (loss_curves, lambda record: bool(record.metrics)),
        "part-tails": (part_tails, lambda record: len(record.rows) > 0),
        "step-times": (step_times, lambda record: len(record.times) > 0),
    }
    write_text(folder / MARK, STATEMENT + "\n")
    paths = [folder / MARK]
    for name, (draw, has) in drawers.items():
        if any(has(record) for record in comparison.records):
            paths += draw(comparison, folder / name)
    return paths


@contextmanager
def figure(stem: Path, height: float, names: dict[int, str] | None = None) -> Iterator[tuple[Any, list[Path]]]:
    """A figure and its two files; with names of runs (by their numbers), a legend of them above everything."""
    from matplotlib.lines import Line2D

    paths = [stem.with_name(stem.name + ending) for ending in (".png", ".svg")]
    with styled(height, *paths) as made:
        yield made, paths
        if names:
            handles = [Line2D([], [], **run_style(number)) for number in names]
            columns = max(1, min(len(names), 110 // (max(len(name) for name in names.values()) + 8)))
            made.legend(handles, names.values(), loc="outside upper left", ncols=columns, fontsize=8, handlelength=2.4)


def names_of(records: dict[int, Record]) -> dict[int, str]:
    """What a legend calls the runs of a figure."""
    return {number: name_of(record) for number, record in records.items()}


def name_of(record: Record) -> str:
    return record.arm if record.arm == record.label else f"{record.label} ({record.arm})"


def quantile_curve(values: np.ndarray, tail: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """(x, P(X ≤ x)), or with `tail` (x, P(X > x)) on points that are dense where the tail is."""
    if tail:
        beyond = np.geomspace(1.0, max(1.0 / len(values), 1e-9), POINTS)
        return np.quantile(values, 1 - beyond), beyond
    below = np.linspace(0, 1, POINTS)
    return np.quantile(values, below), below


def gradient_norms(comparison: Comparison, stem: Path) -> list[Path]:
    """ECDF above, CCDF below, of the three norms; the dotted line is C."""
    chosen = {at: record for at, record in enumerate(comparison.records) if len(record.rows)}
    with figure(stem, 4.6, names_of(chosen)) as (made, paths):
        axes = made.subplots(2, 3, sharex="col")
        for column, which in enumerate(NORMS):
            below, beyond = axes[0, column], axes[1, column]
            least = np.inf
            for number, record in chosen.items():
                norms = record.norms(which)
                norms = norms[norms > 0]
                if len(norms):
                    least = min(least, float(np.quantile(norms, 0.02)))
                    below.plot(*quantile_curve(norms), **run_style(number))
                    beyond.plot(*quantile_curve(norms, tail=True), **run_style(number))
            clips = {record.clip for record in comparison.records if record.clip} if which == "total" else set()
            finish_norms(below, beyond, least, clips)
            below.set_title(TITLES[which])
            beyond.set_xlabel("norm of an example's gradient" if column == 1 else "")
        axes[0, 0].set_ylabel("share below (ECDF)")
        axes[1, 0].set_ylabel("share above (CCDF)")
    return paths


def finish_norms(below: Any, beyond: Any, least: float, clips: set[float]) -> None:
    """Logarithmic axes from the `least` norm on for an ECDF and the CCDF under it, and a dotted line at every C."""
    for clip in clips:
        for axis in (below, beyond):
            axis.axvline(clip, color=INK, lw=0.8, ls=":")
        below.annotate(
            "C", (clip, 1), xytext=(3, -2), textcoords="offset points", va="top", fontsize=8, annotation_clip=False
        )
    beyond.set(xscale="log", yscale="log")
    if np.isfinite(least):
        beyond.set_xlim(left=least)
    log_axis(beyond.xaxis)
    log_axis(beyond.yaxis)


def clipping_factors(comparison: Comparison, stem: Path) -> list[Path]:
    """How far gradients are shortened, and how often."""
    pairs = enumerate(zip(comparison.records, comparison.summaries, strict=True))
    chosen = {at: record for at, (record, summary) in pairs if summary.clipping is not None}
    with figure(stem, 2.7 + 0.12 * len(chosen), names_of(chosen)) as (made, paths):
        left, right = made.subplots(1, 2, width_ratios=(1.6, 1))
        for place, (number, record) in enumerate(chosen.items()):
            own = comparison.summaries[number].clipping
            assert own is not None
            left.plot(*quantile_curve(record.factors()), **run_style(number))
            right.barh(place, own.p_clip, color=run_style(number)["color"], height=0.6)
            inside = own.p_clip > 0.75
            right.text(
                own.p_clip + (-0.03 if inside else 0.03),
                place,
                f"{own.p_clip:.3f}",
                va="center",
                ha="right" if inside else "left",
                fontsize=8,
                color="white" if inside else INK,
            )
        left.set(xlabel="clipping factor η", ylabel="share below (ECDF)", xlim=(0, 1.02), ylim=(0, 1.02))
        left.set_title("how much gradients are shortened")
        right.set_title("how often: p_clip = P(‖g‖ > C)")
        right.set(xlim=(0, 1), xlabel="share of examples", ylim=(len(chosen) - 0.4, -0.6))
        right.set_yticks([])
    return paths


def loss_curves(comparison: Comparison, stem: Path) -> list[Path]:
    """Training loss as logged, its running median, and the validation loss where it was measured."""
    chosen = {at: record for at, record in enumerate(comparison.records) if record.metrics}
    with figure(stem, 2.9, names_of(chosen)) as (made, paths):
        axis, label = made.subplots(), ""
        for number, record in chosen.items():
            rows = [(row["step"], row["loss"]) for row in record.metrics if np.isfinite(row.get("loss", np.nan))]
            if not rows:
                continue
            steps, losses = np.array(rows).T
            style = run_style(number)
            axis.plot(steps, losses, color=style["color"], lw=0.6, alpha=0.3)
            axis.plot(steps, running_median(losses, len(losses) // 20), marker="." if len(steps) < 4 else "", **style)
            seen = [(row["step"], row["validation_loss"]) for row in record.metrics if "validation_loss" in row]
            if seen:
                label = "circles: validation"
                axis.plot(*np.array(seen).T, ls="", marker="o", ms=4.5, mfc="white", color=style["color"])
        axis.set(xlabel="step", ylabel=f"training loss\n({label})" if label else "training loss", yscale="log")
        axis.margins(x=0.01)
        log_axis(axis.yaxis)
    return paths


def running_median(values: np.ndarray, reach: int) -> np.ndarray:
    """The median of each value and `reach` neighbours on either side, fewer at the ends."""
    return np.array([np.median(values[max(0, at - reach) : at + reach + 1]) for at in range(len(values))])


def part_tails(comparison: Comparison, stem: Path) -> list[Path]:
    """p99 of the norm in every part of the network, the conditioning path and the rest apart; one panel per run."""
    from matplotlib.colors import LogNorm

    chosen = [at for at, summary in enumerate(comparison.summaries) if summary.parts]
    tables = [
        np.array([[row["cond"], row["other"]] for row in comparison.summaries[at].parts.values()]) for at in chosen
    ]
    positive = np.concatenate([table[table > 0] for table in tables] or [np.ones(1)])
    low, high = float(positive.min(initial=np.inf)), float(positive.max(initial=0))
    if not low < high:
        low, high = 0.5, 2.0
    scale, cut = LogNorm(low, high), np.sqrt(low * high)
    rows = -(-len(chosen) // PANELS)
    with figure(stem, rows * (0.9 + 0.28 * max(len(table) for table in tables))) as (made, paths):
        axes = made.subplots(rows, min(PANELS, len(chosen)), squeeze=False)
        for place, (axis, at, table) in enumerate(zip(axes.flat, chosen, tables, strict=False)):
            image = axis.imshow(np.maximum(table, low), norm=scale, cmap="cividis", aspect="auto")
            for row, column in np.ndindex(*table.shape):
                value = table[row, column]
                ink = "white" if value < cut else "black"
                axis.text(column, row, f"{value:.2g}", ha="center", va="center", color=ink, fontsize=7.5)
            axis.set_title("\n".join(textwrap.wrap(name_of(comparison.records[at]), 22)), fontsize=8)
            axis.set_xticks([0, 1], ["cond", "other"])
            labels = list(comparison.summaries[at].parts)
            axis.set_yticks(range(len(labels)), labels if place % PANELS == 0 else [""] * len(labels))
            axis.tick_params(length=0)
            axis.spines[:].set_visible(False)
        for axis in axes.flat[len(chosen) :]:
            axis.set_axis_off()
        made.colorbar(image, ax=axes, label="p99 of the norm", pad=0.02)
    return paths


def step_times(comparison: Comparison, stem: Path) -> list[Path]:
    """Median milliseconds of a step with the range from p10 to p90, and the ratio of medians to the Non-DP run."""
    chosen = [at for at, summary in enumerate(comparison.summaries) if summary.time is not None]
    with figure(stem, 0.9 + 0.34 * len(chosen)) as (made, paths):
        axis = made.subplots()
        for place, at in enumerate(chosen):
            record, ratio = comparison.records[at], comparison.time_ratio(at)
            low, middle, high = np.quantile(record.times["seconds"], (0.1, 0.5, 0.9)) * 1000
            colour = run_style(at)["color"]
            axis.plot([low, high], [place, place], color=colour, lw=4, alpha=0.35, solid_capstyle="butt")
            axis.plot(middle, place, "o", color=colour, ms=6)
            said = f"{middle:.3g} ms" + ("" if ratio is None else f", {ratio['p50']:.2f}× Non-DP")
            axis.annotate(said, (high, place), xytext=(6, 0), textcoords="offset points", va="center", fontsize=8)
        axis.set_yticks(range(len(chosen)), [name_of(comparison.records[at]) for at in chosen])
        axis.set(xlabel="milliseconds per step (dot: median, bar: p10 to p90)", ylim=(len(chosen) - 0.5, -0.5))
        axis.set_xlim(0, axis.get_xlim()[1] * 1.5)
        axis.grid(axis="x", color=GREY, lw=0.4, alpha=0.4)
    return paths
