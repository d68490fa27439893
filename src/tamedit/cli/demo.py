"""`tamedit demo`: the main job from start to end on simulated readings, no download."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from tamedit.cli import options


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder to write.")] = Path("runs/demo"),
    scale: Annotated[
        Literal["laptop", "smoke"], typer.Option("--scale", help="Size of the run: smoke for a quick look.")
    ] = "laptop",
    seed: options.Seed = 0,
    non_negative: Annotated[
        bool, typer.Option("--non-negative/--any-sign", help="State the public fact that readings cannot be negative.")
    ] = True,
) -> None:
    """Simulate homes, tune the shipped model on them privately, fill gaps, forecast, generate, score, draw."""
    from tamedit.cli.demo_steps import run_demo

    for path in run_demo(out, scale, seed, non_negative):
        typer.echo(f"wrote {path}")
    typer.echo("Your own meters: tamedit train FILE --out RUN --epsilon 8 --unit week --init homes")
