"""`tamedit evaluate`: a run's model on its test split, next to training-free baselines."""

import json
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from tamedit.cli import options
from tamedit.errors import UserError
from tamedit.evaluation.labels import LABELS
from tamedit.formatting import best, print_table, score

GUESSES = {
    "linear_interpolation": "line",
    "seasonal_naive": "naive",
    "seasonal_mean": "mean",
    "free_fill": "fill",
    "seasonal_draws": "hour",
    "free_distribution": "free",
}
BAR = "free_distribution"
PERCENT = {"point_MAPE", "MAPE_left_out", "WAPE", "coverage50", "coverage90"}


def show(evaluation: Any) -> None:
    """Print a short table: z-units, best of each column in bold."""
    heads = ("method", "RMSE", "MAE", "CRPS", "in 50 %", "in 90 %")
    for task in ("imputation", "forecast"):
        rows = [row for row in evaluation.rows if row.task == task]
        scores = {name: [getattr(row.z, name) for row in rows] for name in ("rmse", "mae", "crps")}
        least = {name: min((one for one in column if one is not None), default=None) for name, column in scores.items()}
        cells = []
        for row in rows:
            numbers = [_cell(getattr(row.z, name), least[name]) for name in least]
            bands = [None if band is None else f"{band:.0%}" for band in (row.z.coverage50, row.z.coverage90)]
            cells.append([LABELS[row.method], *numbers, *bands])
        print_table(f"{_what(evaluation, task)}, {evaluation.windows} test windows, z-units", heads, cells)
        typer.echo(_ahead(evaluation, task))


def _ahead(evaluation: Any, task: str) -> str:
    """The gain over the bar, the free distribution, and over a free guess that is harder to beat, in words."""
    said = []
    for name, short in (("point_RMSE", "RMSE"), ("CRPS", "CRPS")):
        bar, hardest = evaluation.gain_over_bar(task, name), evaluation.smallest_gain(task, name)
        if bar is not None:
            said.append(f"{short} {bar}")
        if hardest is not None and hardest[0] != BAR:
            said.append(f"{short} {hardest[1]} over {LABELS[hardest[0]]}")
    drawn = "meters" if evaluation.by_meter else "windows: for these meters, not for others"
    return f"gain over the {LABELS[BAR]} (95 % bootstrap of the {drawn}, paired): {'; '.join(said)}"


def show_all(evaluation: Any) -> None:
    """Every metric, one line each: the model's with its interval, the free distribution's, the best free guess's."""
    from tamedit.evaluation.metrics import METRICS

    heads = ("metric", "model", "95 % interval", "free dis-\ntribution", "best free\nguess")
    for task in ("imputation", "forecast"):
        rows = {row.method: row for row in evaluation.rows if row.task == task}
        for unit, name in (("z", "z-units"), ("original", "the data's units")):
            scores = {method: getattr(row, unit) for method, row in rows.items()}
            cells = []
            for metric in METRICS.values():
                shown = partial(score, as_percent=metric.name in PERCENT)
                own, ends = scores["model"][metric.name], scores["model"].intervals[metric.name]
                free = {method: one[metric.name] for method, one in scores.items() if method in GUESSES}
                known = {method: value for method, value in free.items() if value is not None}
                chosen = None
                if known and metric.best != "neither":
                    chosen = (min if metric.best == "least" else max)(known, key=lambda method: known[method])
                interval = None if ends is None else " … ".join(shown(end) for end in ends)
                guess = None if chosen is None else f"{shown(known[chosen])} {GUESSES[chosen]}"
                bar = scores[BAR][metric.name]
                if own is not None or bar is not None or known:
                    cells.append([metric.name, shown(own), interval, shown(bar), guess])
            print_table(f"{_what(evaluation, task)}, {evaluation.windows} test windows, {name}", heads, cells)


def _what(evaluation: Any, task: str) -> str:
    hidden = "random 10–50 % hidden" if task == "imputation" else f"last {evaluation.horizon} steps hidden"
    return f"{task}: {hidden}"


def _cell(value: float | None, least: float | None) -> Any:
    return best(score(value)) if value is not None and value == least else score(value)


def evaluate(
    runs: Annotated[
        list[Path],
        typer.Argument(help="Folder made by `tamedit train`. Several runs that differ only in the seed are combined."),
    ],
    data: options.MovedData = None,
    samples: Annotated[int, typer.Option("--samples", help="Samples per window.", min=4)] = 20,
    horizon: Annotated[
        int | None, typer.Option("--horizon", help="Steps to forecast (one season if not given).", min=1)
    ] = None,
    windows: Annotated[int, typer.Option("--windows", help="Test windows at most.", min=1)] = 128,
    everything: Annotated[bool, typer.Option("--all", help="Show every metric, in both units.")] = False,
    protocol: Annotated[str | None, typer.Option("--protocol", hidden=True)] = None,
    resamples: Annotated[int, typer.Option("--resamples", help="Bootstrap resamples of the windows.", min=0)] = 1000,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    as_json: options.AsJson = False,
) -> None:
    """Score a model on its test split: RMSE, MAE, CRPS and the coverage of its intervals, next to training-free baselines."""
    from tamedit.evaluation.seeds import over_runs, seeds_of

    if protocol is not None:
        raise UserError(f"--protocol is now a separate command: tamedit peers {runs[0]} {protocol}.")
    shared: dict[str, Any] = {
        "samples": samples,
        "horizon": horizon,
        "windows": windows,
        "seed": seed,
        "resamples": resamples,
    }
    if len(runs) == 1:
        result = score_run(runs[0], data, device, shared)
        if as_json:
            typer.echo(json.dumps({"run": str(runs[0]), **result.to_dict()}, allow_nan=False))
            return
        (show_all if everything else show)(result)
    else:
        from tamedit.cli.seeds_table import show_seeds

        seeds = seeds_of(runs)
        if not as_json:
            shared["resamples"] = 0  # the table's intervals are those of the seeds
        combined = over_runs({str(run): score_run(run, data, device, shared).to_dict() for run in runs}, seeds)
        if as_json:
            typer.echo(json.dumps(combined, allow_nan=False))
            return
        show_seeds(combined, everything)
    from tamedit.evaluation.evaluate import NOTE

    typer.echo(NOTE)


def score_run(run: Path, data: str | None, device: str, shared: dict[str, Any]) -> Any:
    """The scores of one run's model on its test split, or on that of other data."""
    from tamedit.data.loading import load_split
    from tamedit.evaluation.evaluate import evaluate as score_all
    from tamedit.runs.folder import load_run
    from tamedit.tasks.model import Model

    model = Model.load(run, device)
    config, facts = load_run(run)
    _, split = load_split(data or config.source, study=facts.study_for(data), **facts.reading)
    return score_all(model, split, **shared)
