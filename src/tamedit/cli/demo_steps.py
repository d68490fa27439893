"""What the demo does, step by step; imported only when it runs."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import typer

from tamedit.cli.evaluate import show
from tamedit.cli.options import Stopped
from tamedit.cli.progress import RunProgress
from tamedit.data.series import Series, read
from tamedit.data.simulate import simulate
from tamedit.data.split import split_by_time
from tamedit.diagnostics.plots import Band, bands
from tamedit.errors import UserError
from tamedit.evaluation.baselines import BASELINES
from tamedit.evaluation.evaluate import evaluate
from tamedit.files import write_text, write_with
from tamedit.tasks.model import Model
from tamedit.training.artifact import SPECIFICATION, WEIGHTS
from tamedit.training.fit import READING, RUN, DataFacts, train
from tamedit.training.loop import CHECKPOINT
from tamedit.training.recipe import make_config

STEPS = {"smoke": 60, "laptop": 1200}
DAY, WEEK = 24, 168
RESULTS = ("gap_fills.png", "forecasts.png", "meter.csv", "filled.csv", "forecast.csv", "evaluation.json")
FILES = {*RESULTS, RUN, READING, CHECKPOINT, WEIGHTS, SPECIFICATION, "metrics.jsonl"}


def _clear(out: Path) -> None:
    """An earlier demo makes room; nothing else is touched."""
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file; name a folder with --out.")
    found = {path.name for path in out.iterdir()} if out.exists() else set()
    if found and ("meter.csv" not in found or not found <= FILES):
        raise UserError(f"{out} holds other files; name another folder with --out.")
    for name in found:
        (out / name).unlink()


def run_demo(out: Path, scale: str, seed: int, non_negative: bool = True) -> list[Path]:
    """Everything the demo promises; returns the files it wrote."""
    if scale not in STEPS:
        raise UserError(f"--scale {scale} is not for the demo; choose laptop or smoke.")
    _clear(out)

    typer.echo(
        "1/5  Simulating one household meter: 23,136 hours from 2023 to 2025, with spikes, glitches and outages."
    )
    meter = out / "meter.csv"
    write_with(meter, lambda path: simulate(seed=seed).frame().to_csv(path))
    series = read(meter)
    split = split_by_time(series)

    config = make_config(series, str(meter), scale=scale, steps=STEPS[scale], seed=seed)  # type: ignore[arg-type]
    typer.echo(f"2/5  Training a diffusion transformer on the first 70 %: {config.training.steps} steps.")
    with RunProgress() as progress:
        outcome = train(split, config, out, facts=DataFacts(non_negative=non_negative), progress=progress)
    if not outcome.finished:
        raise Stopped(f"stopped at step {outcome.step} of {config.training.steps}; the demo begins anew next time.")
    model = Model.load(out)

    typer.echo("3/5  Filling gaps and forecasting weeks of the last 15 %, which it has never seen.")
    gaps, gap_truth = with_gaps(split.test)
    filled = model.impute(gaps.frame(), samples=50, seed=seed)
    write_with(out / "filled.csv", lambda path: filled.to_csv(path))
    fans, ahead = forecasts(model, split.test, seed)
    write_with(out / "forecast.csv", lambda path: ahead.to_csv(path))

    typer.echo("4/5  Drawing.")
    bands([gap_panel(gaps, gap_truth, filled, start) for start in panel_starts(gaps)], out / "gap_fills.png")
    bands(fans, out / "forecasts.png")
    typer.echo("5/5  Scoring on the test weeks, beside guesses that cost nothing.")
    scores = evaluate(model, split, windows=64, seed=seed)
    write_text(out / "evaluation.json", json.dumps(scores.to_dict(), indent=2, allow_nan=False) + "\n")
    show(scores)
    typer.echo(model.privacy)
    return [out / name for name in (*RESULTS, WEIGHTS, SPECIFICATION)]


def with_gaps(series: Series) -> tuple[Series, np.ndarray]:
    """The test weeks with a two-day outage, a six-hour outage and scattered losses in every fortnight; and what they hid."""
    from dataclasses import replace

    hours = np.arange(len(series)) % (2 * WEEK)
    lost = (hours >= 60) & (hours < 108) | (hours >= 200) & (hours < 206) | (hours >= 240) & (hours % 5 == 0)
    values = series.values.copy()
    values[lost] = np.nan
    return replace(series, values=values), np.where(lost[:, None], series.values, np.nan)


def panel_starts(series: Series) -> list[int]:
    """Three fortnights, spread over the test weeks."""
    last = len(series) // (2 * WEEK) - 1
    return [2 * WEEK * number for number in sorted({0, last // 2, last})]


def gap_panel(gaps: Series, truth: np.ndarray, filled: pd.DataFrame, start: int) -> Band:
    """One fortnight of gaps and how they were filled."""
    import torch

    rows, name = slice(start, start + 2 * WEEK), gaps.targets[0]
    window = torch.from_numpy(gaps.values[rows])[None]
    baseline = BASELINES["free_fill"](torch.nan_to_num(window), torch.isfinite(window), DAY)[0, :, 0].numpy()
    drawn = np.isnan(gaps.values[rows, 0])
    # One observed step on each side, so that the lines join.
    wide = drawn | np.append(False, drawn[:-1]) | np.append(drawn[1:], False)
    quantiles = {level: filled[f"{name}_q{level:02d}"].to_numpy()[rows] for level in (5, 25, 75, 95)}
    quantiles[50] = filled[name].to_numpy()[rows]
    return Band(
        title=f"gaps of two days, six hours and every fifth hour, from {gaps.times[start]:%d %B %Y}",
        times=gaps.times[rows],
        observed=gaps.values[rows, 0],
        truth=truth[rows, 0],
        quantiles={level: np.where(wide, values, np.nan) for level, values in quantiles.items()},
        baseline=np.where(wide, baseline, np.nan),
        unit="kWh",
    )


def forecasts(model: Model, series: Series, seed: int) -> tuple[list[Band], pd.DataFrame]:
    """Three forecasts of a day, each from the week before; the last one is also returned as a table."""
    import torch

    name, panels, ahead = series.targets[0], [], pd.DataFrame()
    for end in np.linspace(2 * WEEK, len(series) - DAY, 3).astype(int):
        ahead = model.forecast(series.rows(0, int(end)).frame(), DAY, samples=100, seed=seed)
        shown = slice(int(end) - 3 * DAY, int(end) + DAY)
        past = torch.from_numpy(series.values[end - WEEK + DAY : end + DAY])[None]
        seen = torch.isfinite(past)
        seen[:, -DAY:] = False
        baseline = BASELINES["free_fill"](torch.nan_to_num(past), seen, DAY)[0, -DAY:, 0].numpy()
        levels = {5: f"{name}_q05", 25: f"{name}_q25", 50: name, 75: f"{name}_q75", 95: f"{name}_q95"}
        empty = np.full(3 * DAY, np.nan)
        observed, truth = series.values[shown, 0].copy(), series.values[shown, 0].copy()
        observed[-DAY:], truth[:-DAY] = np.nan, np.nan
        panels.append(
            Band(
                title=f"24 hours ahead, from {series.times[end]:%A, %d %B %Y %H:%M}",
                times=series.times[shown],
                observed=observed,
                truth=truth,
                quantiles={level: np.append(empty, ahead[column].to_numpy()) for level, column in levels.items()},
                baseline=np.append(empty, baseline),
                unit="kWh",
            )
        )
    return panels, ahead
