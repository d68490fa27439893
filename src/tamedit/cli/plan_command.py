"""`tamedit plan`: how to spend a privacy budget, from public facts alone."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tamedit.cli import options
from tamedit.errors import UserError
from tamedit.formatting import print_table

if TYPE_CHECKING:
    from tamedit.runs.proposal import Proposal


@options.reads_a_table
def plan(
    *,
    source: Annotated[
        str | None, typer.Argument(help="A named data set or a file, whose units are counted; or give --units.")
    ] = None,
    epsilon: Annotated[float, typer.Option("--epsilon", help="The privacy budget.")] = 8.0,
    delta: Annotated[float, typer.Option("--delta", help="δ of the guarantee.")] = 1e-5,
    unit: Annotated[
        str, typer.Option("--unit", help="Privacy unit, what one guarantee covers: record, day, week or series.")
    ] = "week",
    units: Annotated[
        int | None,
        typer.Option("--units", help="Training examples: one per block (home-weeks) or one per meter (series)."),
    ] = None,
    window: Annotated[int | None, typer.Option("--window", help="Steps in a window.", min=8)] = None,
    init: Annotated[
        str | None, typer.Option("--init", help="Public model to start from: a run, or `simulated`.")
    ] = None,
    minutes: Annotated[float, typer.Option("--minutes", help="Approximate training time in minutes.", min=0.1)] = 10.0,
    cores: Annotated[int, typer.Option("--cores", help="Cores to train on.", min=1)] = 2,
    reading: dict[str, Any],
    as_json: options.AsJson = False,
) -> None:
    """Propose model, batch, steps and noise for a private run, and say why.

    It reads only sizes, stamps and which readings are missing.
    """
    if (source is None) == (units is None):
        raise UserError("Give either a data source or --units N, the number of training examples.")
    if units is not None and reading:
        raise UserError(
            f"{', '.join(options.as_options(reading))} say how to read a file, but --units reads none; leave them out."
        )
    if not epsilon > 0 or not 0 < delta < 1:
        raise UserError(f"--epsilon {epsilon:g} must be positive and --delta {delta:g} between 0 and 1.")
    if init is not None:
        _check_init(init)
    from tamedit.privacy.settings import Privacy
    from tamedit.runs.proposal import CORES, MINUTES, propose, propose_for

    privacy = Privacy(epsilon=epsilon, delta=delta, unit=unit)
    if units is not None:
        found = propose(
            units, epsilon, delta, unit=unit, length=window or 168, minutes=minutes, cores=cores, begins=bool(init)
        )
    else:
        from tamedit.data.loading import load_split
        from tamedit.runs.layout import private_layout
        from tamedit.runs.recipe import make_config

        assert source is not None
        series, split = load_split(source, private=True, **reading)
        config = make_config(series, source, window=window, privacy=privacy)
        layout = private_layout(split.train, config.window, config.stride, privacy)
        found = propose_for(layout, privacy, minutes=minutes, cores=cores, begins=bool(init))
    if as_json:
        typer.echo(found.model_dump_json())
        return
    asked = {"--epsilon": f"{epsilon:g}", "--delta": f"{delta:g}", "--unit": unit}
    asked |= {"--init": init} if init else {}
    asked |= {"--window": str(window)} if window else {}
    asked |= options.as_options(reading)
    asked |= {"--minutes": f"{minutes * cores / CORES:g}"} if minutes * cores != MINUTES * CORES else {}
    command = " ".join(
        [shlex.quote(source or "SOURCE"), *(f"{name} {shlex.quote(value)}" for name, value in asked.items())]
    )
    show(found, unit, f"tamedit train {command} --bounds {found.bounds} --out runs/private")


def _check_init(init: str) -> None:
    """A proposal for an initial model that does not exist would be wrong."""
    from tamedit.runs.artifact import WEIGHTS
    from tamedit.training.public import SIMULATED

    if init != SIMULATED and not (Path(init) / WEIGHTS).is_file():
        raise UserError(
            f"--init {init} contains no trained model; name a folder made by `tamedit train`, or `simulated`."
        )


def show(found: "Proposal", unit: str, command: str) -> None:
    """The proposal with its reasons, and the command that follows it."""
    labels = {
        "size": "model size",
        "batch_size": "batch B",
        "steps": "steps T",
        "draws": "draws per unit G",
        "clip": "clipping C",
        "noise_multiplier": "noise σ",
        "signal_to_noise": "√T B / σ",
        "noise_over_signal": "σ √P / B",
        "walk": "walk",
        "bounds": "bounds",
    }
    rows = [(label, getattr(found, name), found.reasons[name]) for name, label in labels.items()]
    title = f"(ε = {found.epsilon:g}, δ = {found.delta:g}) per {unit}, {found.examples:,} examples"
    print_table(title, ("what", "proposal", "why"), rows, words=(0, 2))
    typer.echo(f"about {found.minutes:.0f} minutes; every number may be overridden.")
    typer.echo(f"next: {command}")
