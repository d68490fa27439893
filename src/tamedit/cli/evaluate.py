"""`tamedit evaluate`: a run's model on its test split, beside the free baselines."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from tamedit.cli import options

LABELS = {
    "model": "this model",
    "free_probabilistic": "free fill + Gaussian",
    "linear_interpolation": "linear interpolation",
    "seasonal_naive": "seasonal naive",
    "seasonal_mean": "seasonal mean",
    "free_fill": "free fill",
}


def show(evaluation: Any) -> None:
    """A table a person can read: z-units, best of each column in bold."""
    from rich.console import Console
    from rich.table import Table

    for task in ("imputation", "forecast"):
        what = "random 10–50 % hidden" if task == "imputation" else f"last {evaluation.horizon} steps hidden"
        table = Table(title=f"{task}: {what}, {evaluation.windows} test windows, z-units")
        for column in ("method", "RMSE", "MAE", "CRPS", "in 50 %", "in 90 %"):
            table.add_column(column, justify="left" if column == "method" else "right", no_wrap=True)
        rows = [row for row in evaluation.rows if row.task == task]
        scores = {name: [getattr(row.z, name) for row in rows] for name in ("rmse", "mae", "crps")}
        best = {name: min((one for one in column if one is not None), default=None) for name, column in scores.items()}
        for row in rows:
            numbers = [_cell(getattr(row.z, name), best[name]) for name in best]
            bands = ["–" if band is None else f"{band:.0%}" for band in (row.z.coverage50, row.z.coverage90)]
            table.add_row(LABELS[row.method], *numbers, *bands)
        Console().print(table)


def _cell(score: float | None, best: float | None) -> str:
    if score is None:
        return "–"
    return f"[bold]{score:.4f}[/bold]" if score == best else f"{score:.4f}"


def evaluate(
    run: Annotated[Path, typer.Argument(help="Folder made by `tamedit train`.")],
    samples: Annotated[int, typer.Option("--samples", help="Samples a window.", min=4)] = 20,
    horizon: Annotated[
        int | None, typer.Option("--horizon", help="Steps to forecast (a season if not given).", min=1)
    ] = None,
    windows: Annotated[int, typer.Option("--windows", help="Test windows at most.", min=1)] = 128,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    as_json: options.AsJson = False,
) -> None:
    """Score a model on its test split: RMSE, MAE, CRPS and the honesty of its intervals, beside the free baselines."""
    from tamedit.evaluation.evaluate import evaluate as score
    from tamedit.tasks.fit import load_split
    from tamedit.tasks.model import Model
    from tamedit.training.folder import load_run

    model = Model.load(run, device)
    config, facts = load_run(run)
    _, split = load_split(config.source, **facts.reading)
    result = score(model, split, samples=samples, horizon=horizon, windows=windows, seed=seed)
    if as_json:
        typer.echo(json.dumps({"run": str(run), **result.to_dict()}, allow_nan=False))
    else:
        show(result)
        typer.echo("Computed from the test data without noise: not private.")
