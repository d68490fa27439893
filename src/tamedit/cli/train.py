"""`tamedit train`: a source in, a run folder out."""

from pathlib import Path
from typing import Annotated

import typer

from tamedit.cli import options
from tamedit.errors import UserError


def train(
    source: Annotated[
        str, typer.Argument(help="A named data set (etth1, ettm1, household, ideal), or a CSV or Parquet file.")
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder of the run.")],
    scale: Annotated[str, typer.Option("--scale", help="smoke (seconds), laptop (minutes) or paper.")] = "laptop",
    steps: Annotated[int | None, typer.Option("--steps", help="Training steps, instead of the scale's.", min=1)] = None,
    seed: options.Seed = 0,
    anchor: Annotated[
        str, typer.Option("--anchor", help="seasonal (default) or none (the paper's form).")
    ] = "seasonal",
    bounds: Annotated[str, typer.Option("--bounds", help="loose, medium, tight, too_tight or off.")] = "medium",
    operator: Annotated[
        str, typer.Option("--operator", help="tanh, hard_clamp, soft_clamp_band, clamp_ste or none.")
    ] = "tanh",
    size: Annotated[str | None, typer.Option("--size", help="tiny, small, base or paper.")] = None,
    window: Annotated[int | None, typer.Option("--window", help="Steps in a window.", min=8)] = None,
    period: Annotated[
        int | None, typer.Option("--period", help="Steps in a season (24 for hourly data).", min=1)
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in --out.")] = False,
    time: options.Time = None,
    identifier: options.Identifier = None,
    targets: options.Targets = None,
    covariates: options.Covariates = None,
    frequency: options.Frequency = None,
    timezone: options.Timezone = None,
    device: options.Device = "auto",
    threads: Annotated[int, typer.Option("--threads", help="CPU threads (0: torch's choice).", min=0)] = 0,
    as_json: options.AsJson = False,
) -> None:
    """Train a model that fills gaps, forecasts and generates."""
    choices = {
        "scale": (scale, ("smoke", "laptop", "paper")),
        "anchor": (anchor, ("seasonal", "none")),
        "operator": (operator, ("tanh", "hard_clamp", "soft_clamp_band", "clamp_ste", "none")),
    }
    for name, (value, allowed) in choices.items():
        if value not in allowed:
            raise UserError(f"--{name} {value} is unknown; choose {', '.join(allowed)}.")

    from tamedit.cli.progress import RunProgress
    from tamedit.tasks.fit import load_split
    from tamedit.training.config import Speed
    from tamedit.training.fit import save_reading
    from tamedit.training.fit import train as run
    from tamedit.training.recipe import make_config

    read_with = options.reading(time, identifier, targets, covariates, frequency, timezone)
    series, split = load_split(source, **read_with)
    config = make_config(
        series,
        source,
        scale=scale,  # type: ignore[arg-type]
        anchor=anchor,  # type: ignore[arg-type]
        bounds=bounds,  # type: ignore[arg-type]
        operator=operator,  # type: ignore[arg-type]
        steps=steps,
        seed=seed,
        window=window,
        size=size,
        period=period,
    )
    if not as_json:
        for note in series.notes:
            typer.echo(f"note: {note}")
    with RunProgress(quiet=as_json) as progress:
        outcome = run(split, config, out, speed=Speed(device=device, threads=threads), resume=resume, progress=progress)
    save_reading(out, read_with)
    if not outcome.finished:
        typer.echo(
            f"stopped at step {outcome.step} of {config.training.steps}; continue with the same command and --resume",
            err=True,
        )
        raise typer.Exit(130)
    from tamedit.training.artifact import SPECIFICATION, WEIGHTS

    options.wrote([out / WEIGHTS, out / SPECIFICATION], as_json, steps=outcome.step, seconds=round(outcome.seconds, 1))
