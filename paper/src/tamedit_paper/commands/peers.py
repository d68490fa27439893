"""`tamedit peers RUN PROTOCOL`: a model measured as other papers measure theirs, next to their published numbers."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from tamedit.cli import options
from tamedit.evaluation.labels import LABELS
from tamedit.formatting import print_table, score


def peers(
    run: Annotated[Path, typer.Argument(help="Folder made by `tamedit train`.")],
    protocol: Annotated[Literal["tslib", "csdi"], typer.Argument(help="MSE and MAE (tslib), or quantile CRPS (csdi).")],
    data: options.MovedData = None,
    samples: Annotated[int, typer.Option("--samples", help="Samples per window.", min=4)] = 20,
    horizon: Annotated[
        int | None, typer.Option("--horizon", help="Steps to forecast (one season if not given).", min=1)
    ] = None,
    windows: Annotated[int, typer.Option("--windows", help="Test windows at most.", min=1)] = 128,
    resamples: Annotated[int, typer.Option("--resamples", help="Bootstrap resamples of the windows.", min=0)] = 1000,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    as_json: options.AsJson = False,
) -> None:
    """Measure a model as other papers do, and show their published numbers next to it."""
    from tamedit.data.loading import load_split
    from tamedit.evaluation.evaluate import NOTE
    from tamedit.runs.folder import load_run
    from tamedit.tasks.model import Model
    from tamedit_paper.peers.protocols import evaluate_protocol

    model = Model.load(run, device)
    config, facts = load_run(run)
    source = data or config.source
    _, split = load_split(source, study=facts.study_for(data), **facts.reading)
    result = evaluate_protocol(
        model,
        split,
        protocol,
        source=source,
        samples=samples,
        horizon=horizon,
        windows=windows,
        seed=seed,
        resamples=resamples,
    )
    if as_json:
        typer.echo(json.dumps({"run": str(run), **result.to_dict()}, allow_nan=False))
        return
    show(result)
    typer.echo(NOTE)


def show(result: Any) -> None:
    """Our numbers next to published ones for the same data and task."""
    from tamedit_paper.peers.published import published

    sources: list[str] = []
    for task in dict.fromkeys(row.task for row in result.rows):
        rows = [row for row in result.rows if row.task == task]
        cells = [
            [LABELS[row.method], *(_spread(value, row.intervals[name]) for name, value in row.values.items())]
            for row in rows
        ]
        for one in published(result.source or "", result.protocol):
            if one.task == task:
                sources += [] if one.source in sources else [one.source]
                numbers = [score(one.metrics.get(name)) for name in rows[0].values]
                cells.append([f"{one.method} [{sources.index(one.source) + 1}]", *numbers])
        title = f"protocol {result.protocol}, {task}, {result.windows} test windows"
        print_table(title, ["method", *rows[0].values], cells)
    for number, source in enumerate(sources, 1):
        typer.echo(f"[{number}] published: {source}")


def _spread(value: float | None, ends: tuple[float, float] | None) -> str:
    """A number and half its interval."""
    return score(value, None if ends is None else (ends[1] - ends[0]) / 2)
