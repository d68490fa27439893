"""`tamedit plan`: how to spend a privacy budget, from public facts alone."""

import shlex
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tamedit.cli import options
from tamedit.cli.flags import flag
from tamedit.cli.request_options import asks_for
from tamedit.errors import UserError
from tamedit.formatting import counted, print_table
from tamedit.runs.request import HOMES, MINUTES, SIMULATED, TrainRequest

GENERATORS = {
    "population": "add --population with --lower and --upper",
    "evolution": "train with --engine evolution",
    "simulator": "`tamedit data simulate` costs nothing",
}
DATES = ("study", "train_until", "validate_until")

if TYPE_CHECKING:
    from tamedit.runs.proposal import Proposal


@options.reads_a_table
@asks_for("epsilon", "delta", "unit", "window", "init", "minutes", *DATES, epsilon=8.0)
def plan(
    *,
    source: Annotated[
        list[str] | None,
        typer.Argument(help="A named data set, files or a folder, whose units are counted; or give --units."),
    ] = None,
    chosen: dict[str, Any],
    units: Annotated[
        int | None,
        typer.Option("--units", help="Training examples: one per block (home-weeks) or one per meter (series)."),
    ] = None,
    cores: Annotated[int, typer.Option("--cores", help="Cores to train on.", min=1)] = 2,
    as_json: options.AsJson = False,
) -> None:
    """Propose model, batch, steps and noise for a private run, and say why.

    It looks at no reading: how many examples the extent of the study and the number of meters allow.
    """
    if (source is None) == (units is None):
        raise UserError("Give either a data source or --units N, the number of training examples.")
    request = TrainRequest.flat(**chosen)
    if units is not None and request.reading:
        raise UserError(
            f"{', '.join(options.as_options(request.reading))} say how to read a file, but --units reads none; leave them out."
        )
    from tamedit.runs.artifact import WEIGHTS
    from tamedit.runs.proposal import CORES, propose
    from tamedit.training.requested import plan_request

    init, privacy = request.init, request.privacy
    assert privacy is not None
    assert privacy.epsilon is not None
    if init not in (None, HOMES, SIMULATED) and not (Path(init) / WEIGHTS).is_file():
        raise UserError(
            f"--init {init} contains no trained model; name a folder made by `tamedit train`, `homes` or `simulated`."
        )
    data = None if source is None else options.one_source(source, private=True)
    out = _free("runs/private")
    if data is not None:
        found = plan_request(data, request.model_copy(update={"out": Path(out)}), cores=cores)
    else:
        assert units is not None
        found = propose(
            units,
            privacy.epsilon,
            privacy.delta,
            unit=privacy.unit,
            length=request.window or 168,
            minutes=request.minutes,
            cores=cores,
            begins=bool(init),
        )
    if as_json:
        typer.echo(found.model_dump_json())
        return
    time = request.minutes * cores / CORES
    asked: dict[str, Any] = {"epsilon": f"{found.epsilon:g}", "delta": f"{privacy.delta:g}", "unit": privacy.unit}
    asked |= {"init": init, "window": request.window, "minutes": None if time == MINUTES else f"{time:g}"}
    asked |= {name: getattr(request, name) for name in DATES}
    flags = {flag(name): str(value) for name, value in asked.items() if value} | options.as_options(request.reading)
    flags |= {} if found.bounds is None else {"--bounds": found.bounds}
    flags["--out"] = out
    command = " ".join(f"{name} {shlex.quote(value)}" for name, value in flags.items())
    if data is None:  # without data there is nothing to train on: simulated homes show how it goes
        show(
            found,
            privacy.unit,
            f"tamedit data simulate --meters 50 --out homes.csv && tamedit train homes.csv {command}",
        )
        typer.echo("Give your own file in place of homes.csv.")
        return
    words = [str(init), data, *(word for pair in options.as_options(request.reading).items() for word in pair)]
    untuned = f"tamedit impute {shlex.join([*words, '--out', 'filled.csv'])}"
    instead = untuned if init not in (None, SIMULATED) else None
    show(found, privacy.unit, f"tamedit train {shlex.quote(data)} {command}", instead, asked=privacy.epsilon)


def _free(folder: str) -> str:
    """The folder, or the first of its name that is not there yet."""
    names = (folder if number == 1 else f"{folder}-{number}" for number in count(1))
    return next(name for name in names if not Path(name).exists())


def _time(minutes: float) -> str:
    if minutes < 1:
        return "less than a minute"
    return f"about {counted(round(minutes), 'minute')}"


def show(found: "Proposal", unit: str, command: str, instead: str | None = None, asked: float | None = None) -> None:
    """The proposal with its reasons, and the command that follows it; `instead`, how to use the initial model untuned."""
    labels = {
        "size": "model size",
        "batch_size": "batch B",
        "steps": "steps T",
        "draws": "draws per unit G",
        "clip": "clipping C",
        "learning_rate": "learning rate",
        "noise_multiplier": "noise σ",
        "signal_to_noise": "√T B / σ",
        "noise_over_signal": "σ √P / B",
        "walk": "walk",
        "shares": "warm-up, averaging",
        "bounds": "bounds",
    }
    numbers = found.model_dump() | {"bounds": found.bounds or "the initial model's", "shares": found.shares}
    reasons = found.reasons | {"shares": "of the steps; how often gradients are clipped is known only after training"}
    rows = [(label, numbers[name], reasons[name]) for name, label in labels.items()]
    title = f"(ε = {found.epsilon:g}, δ = {found.delta:g}) per {unit}, at most {found.examples:,} examples"
    print_table(title, ("what", "proposal", "why"), rows, words=(0, 2))
    if found.budget is not None:
        typer.echo(f"{'note' if found.epsilon == asked else 'warning'}: {found.budget}")
    if "unit" in found.reasons:
        typer.echo(f"warning: {found.reasons['unit']}; day, week or series protect more.")
    if found.warning is not None:
        typer.echo(f"warning: {found.warning}")
    typer.echo(f"to generate homes: {GENERATORS[found.generator]}; {found.generating}.")
    typer.echo(f"{_time(found.minutes)}; every number may be overridden.")
    typer.echo("A plan from a file counts its meters exactly: it is for you, and not covered by any guarantee.")
    if found.needless and instead is not None:
        typer.echo(f"The initial model as it is will do as well and costs no privacy: {instead}")
    typer.echo(f"next: {command}")
