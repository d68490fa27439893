"""The trade-off between ε, the noise and the number of steps."""

from pathlib import Path
from typing import Any

from tamedit.figures.plots import GREY, run_style, styled

USUAL = 8.0  # the ε that a dashed line marks


def draw(path: Path, rows: list[dict[str, Any]], sampling_rate: float, delta: float) -> Path:
    """ε against σ, one line for each number of steps; the rows are those of `tamedit calibrate`."""
    with styled(4.0, path) as figure:
        axes = figure.subplots()
        noise = [row["noise_multiplier"] for row in rows]
        for at, value in enumerate(rows[0]["values"]):
            spent = [row["values"][at]["epsilon"] for row in rows]
            axes.plot(noise, spent, marker="o", ms=4, label=f"{value['steps']:,} steps", **run_style(at))
        axes.set(xlabel="noise multiplier σ", ylabel="ε", xscale="log", yscale="log")
        axes.set_title(f"sampling rate {sampling_rate:g}, δ = {delta:g}")
        axes.axhline(USUAL, color=GREY, lw=0.8, ls="--")
        axes.legend()
    return path
