"""The steps of the demo; imported only when it runs.

A small fleet of simulated homes takes the role of private data. They are homes of another region than those of the shipped
model: more of them heat with electricity, people rise later, appliances are others. The shipped model is tuned on
them with a guarantee for every home's week.
"""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import typer

from tamedit.cli.demo_table import gains_table
from tamedit.cli.options import Stopped
from tamedit.cli.progress import RunProgress
from tamedit.data.series import Series
from tamedit.data.simulate import Region, simulate
from tamedit.errors import UserError
from tamedit.evaluation.baselines import BASELINES
from tamedit.evaluation.evaluate import evaluate
from tamedit.figures.plots import Band, bands, joined
from tamedit.files import write_text, write_with
from tamedit.privacy.entries import FILE_NAME as LEDGER
from tamedit.privacy.ledger import OF_DATA
from tamedit.runs.artifact import SPECIFICATION, WEIGHTS
from tamedit.runs.folder import CHECKPOINT, NOT_PRIVATE, READING, RUN
from tamedit.runs.privacy_page import PRIVACY
from tamedit.runs.request import HOMES as SHIPPED
from tamedit.runs.request import TrainRequest
from tamedit.tasks.model import Model
from tamedit.training.requested import prepare

HOMES, WINDOWS = {"smoke": 12, "laptop": 60}, {"smoke": 24, "laptop": 64}
LENGTH: dict[str, dict[str, Any]] = {"smoke": {"steps": 60}, "laptop": {"minutes": 1.5}}  # of training
START, WEEKS = "2023-01-01", 26
REGION = Region(standby=1.5, habits=2.0, appliances=0.6, heated=0.4, warmer=-3, later=1.0)
EPSILON, DELTA, UNIT = 8.0, 1e-5, "week"
AVERAGE_HOME = 0.7  # kWh per hour, level and spread: what is publicly known of such a region
SYNTHETIC = 20  # weeks
DAY, WEEK = 24, 168
RESULTS = (
    "gap_fills.png",
    "forecasts.png",
    "homes.csv",
    "filled.csv",
    "forecast.csv",
    "synthetic.csv",
    "evaluation.json",
)
FILES = {*RESULTS, RUN, READING, CHECKPOINT, WEIGHTS, SPECIFICATION, LEDGER, f"homes{OF_DATA}", PRIVACY, NOT_PRIVATE}


def _clear(out: Path) -> None:
    """Remove the files of an earlier demo; nothing else is touched."""
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file; name a folder with --out.")
    found = {path.name for path in out.iterdir()} if out.exists() else set()
    if found and ("homes.csv" not in found or not found <= FILES):
        raise UserError(f"{out} contains other files; name another folder with --out.")
    shutil.rmtree(out / NOT_PRIVATE, ignore_errors=True)
    for name in found - {NOT_PRIVATE}:
        (out / name).unlink()


def run_demo(out: Path, scale: str, seed: int, non_negative: bool = True) -> list[Path]:
    """Run the demo; returns the files it wrote."""
    _clear(out)

    homes = HOMES[scale]
    typer.echo(
        f"1/5  Simulating {homes} homes of a cold region, {WEEKS} weeks of hourly readings each, with spikes and outages."
    )
    table = out / "homes.csv"
    write_with(
        table,
        lambda path: (
            simulate(meters=homes, hours=WEEKS * WEEK, start=START, seed=seed, region=REGION)
            .frame()
            .to_csv(path, index=False)
        ),
    )
    request = TrainRequest.flat(
        study=(START, str(pd.Timestamp(START) + pd.Timedelta(weeks=WEEKS))[:10]),
        out=out,
        scale=scale,
        seed=seed,
        epsilon=EPSILON,
        delta=DELTA,
        unit=UNIT,
        non_negative=non_negative,
        typical_level=AVERAGE_HOME,
        typical_scale=AVERAGE_HOME,
        init=SHIPPED,
        **LENGTH[scale],
    )
    prepared = prepare(str(table), request)
    steps, split = prepared.config.training.steps, prepared.split
    typer.echo(
        f"2/5  Tuning the shipped model privately on the first 70 %: {steps} steps, ε = {EPSILON:g} for each week of a home."
    )
    with RunProgress() as progress:
        outcome = prepared.train(progress=progress)
    if not outcome.finished:
        raise Stopped(f"stopped at step {outcome.step} of {steps}; the demo starts from the beginning next time.")
    model = Model.load(out)

    typer.echo(
        "3/5  Filling gaps and forecasting in the last 15 %, which the model has never seen; generating synthetic weeks."
    )
    shown = split.test.select(range(3))
    gaps, gap_truth = with_gaps(shown)
    filled = model.impute(gaps.frame(), samples=50, seed=seed)
    write_with(out / "filled.csv", lambda path: filled.to_csv(path, index=False))
    ahead, fans = forecasts(model, shown, seed)
    write_with(out / "forecast.csv", lambda path: ahead.to_csv(path, index=False))

    synthetic = model.generate(SYNTHETIC, seed=seed)
    write_with(out / "synthetic.csv", lambda path: synthetic.to_csv(path, index=False))

    typer.echo("4/5  Drawing.")
    bands([gap_panel(gaps, gap_truth, filled, home) for home in range(3)], out / "gap_fills.png")
    bands(fans, out / "forecasts.png")
    typer.echo("5/5  Scoring on the test weeks, next to training-free baselines.")
    scores = evaluate(model, split, windows=WINDOWS[scale], seed=seed)
    write_text(out / "evaluation.json", json.dumps(scores.to_dict(), indent=2, allow_nan=False) + "\n")
    typer.echo(model.privacy)
    gains_table(scores, f"ε = {EPSILON:g} per home-week")
    return [out / name for name in (*RESULTS, WEIGHTS, SPECIFICATION, LEDGER, PRIVACY)]


def with_gaps(series: Series) -> tuple[Series, np.ndarray]:
    """A two-day outage, a six-hour outage and scattered losses in every fortnight of every home; and what they hid."""
    hours = np.concatenate([np.arange(length) for length in series.lengths]) % (2 * WEEK)
    lost = (hours >= 60) & (hours < 108) | (hours >= 200) & (hours < 206) | (hours >= 240) & (hours % 5 == 0)
    values = series.values.copy()
    values[lost] = np.nan
    return replace(series, values=values), np.where(lost[:, None], series.values, np.nan)


def free_guess(values: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """The free fill of one home's stretch, (T, 1)."""
    tensors = torch.from_numpy(np.nan_to_num(values))[None], torch.from_numpy(observed)[None]
    return BASELINES["free_fill"](*tensors, DAY)[0, :, 0].numpy()


def columns(name: str) -> dict[int, str]:
    """Where a table keeps each quantile."""
    return {5: f"{name}_q05", 25: f"{name}_q25", 50: name, 75: f"{name}_q75", 95: f"{name}_q95"}


def gap_panel(gaps: Series, truth: np.ndarray, filled: pd.DataFrame, home: int) -> Band:
    """One fortnight of a home's gaps and how they were filled."""
    start = int(gaps.offsets[home])
    rows = slice(start, start + 2 * WEEK)
    drawn = np.isnan(gaps.values[rows, 0])
    wide = joined(drawn)
    quantiles = {level: filled[name].to_numpy()[rows] for level, name in columns(gaps.targets[0]).items()}
    return Band(
        title=f"home {home + 1}: gaps of two days, six hours and every fifth hour, from {gaps.times[start]:%d %B %Y}",
        times=gaps.times[rows],
        observed=gaps.values[rows, 0],
        truth=truth[rows, 0],
        quantiles={level: np.where(wide, values, np.nan) for level, values in quantiles.items()},
        baseline=np.where(wide, free_guess(gaps.values[rows], ~np.isnan(gaps.values[rows])), np.nan),
        unit="kWh",
    )


def forecasts(model: Model, series: Series, seed: int) -> tuple[pd.DataFrame, list[Band]]:
    """The last day of every home, forecast from what came before: a table, and a picture each."""
    past = series.between(np.zeros(len(series.meters)), series.lengths - DAY)
    ahead = model.forecast(past.frame(), DAY, samples=100, seed=seed)
    panels = []
    for home in range(len(series.meters)):
        last = int(series.offsets[home + 1])
        shown, week = slice(last - 4 * DAY, last), slice(last - WEEK, last)
        seen = np.isfinite(series.values[week])
        seen[-DAY:] = False
        before = np.full(3 * DAY, np.nan)
        observed, truth = series.values[shown, 0].copy(), series.values[shown, 0].copy()
        observed[-DAY:], truth[:-DAY] = np.nan, np.nan
        mine = ahead.iloc[home * DAY : (home + 1) * DAY]
        panels.append(
            Band(
                title=f"home {home + 1}: 24 hours ahead, from {series.times[last - DAY]:%A, %d %B %Y %H:%M}",
                times=series.times[shown],
                observed=observed,
                truth=truth,
                quantiles={
                    level: np.append(before, mine[name].to_numpy())
                    for level, name in columns(series.targets[0]).items()
                },
                baseline=np.append(before, free_guess(series.values[week], seen)[-DAY:]),
                unit="kWh",
            )
        )
    return ahead, panels
