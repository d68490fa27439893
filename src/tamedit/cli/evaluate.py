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
        for column in ("method", "RMSE", "MAE", "CRPS", "in 50 % band", "in 90 % band"):
            table.add_column(column, justify="left" if column == "method" else "right")
        rows = [row for row in evaluation.rows if row.task == task]
        best = {name: min(getattr(row.z, name) for row in rows) for name in ("rmse", "mae", "crps")}
        for row in rows:
            numbers = [
                f"[bold]{getattr(row.z, name):.4f}[/bold]"
                if getattr(row.z, name) == best[name]
                else f"{getattr(row.z, name):.4f}"
                for name in best
            ]
            bands = ["–" if band is None else f"{band:.0%}" for band in (row.z.coverage50, row.z.coverage90)]
            table.add_row(LABELS[row.method], *numbers, *bands)
        Console().print(table)


def evaluate(
    run: Annotated[Path, typer.Argument(help="Folder made by `tamedit train`.")],
    samples: Annotated[int, typer.Option("--samples", help="Samples a window.", min=2)] = 20,
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
    from tamedit.training.fit import load_run

    model = Model.load(run, device)
    config, reading = load_run(run)
    _, split = load_split(config.source, **reading)
    result = score(model, split, samples=samples, horizon=horizon, windows=windows, seed=seed)
    if as_json:
        typer.echo(json.dumps({"run": str(run), **result.to_dict()}))
    else:
        show(result)
        typer.echo("Computed from the test data without noise: not private.")
