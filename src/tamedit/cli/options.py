"""Options that several commands share, and how a command ends."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from tamedit.errors import UserError


class Stopped(Exception):
    """Someone asked a command to stop, and it did so in good order; the message says how to go on."""


Time = Annotated[str | None, typer.Option("--time", help="Column of time stamps (found if not given).")]
Identifier = Annotated[str | None, typer.Option("--id", help="Column of meter names: the long layout.")]
Targets = Annotated[str | None, typer.Option("--targets", help="Columns to fill and forecast, comma separated.")]
Covariates = Annotated[str | None, typer.Option("--covariates", help="Columns known at every step, comma separated.")]
Frequency = Annotated[str | None, typer.Option("--frequency", help="Step between rows, such as 1h or 15min.")]
Timezone = Annotated[str | None, typer.Option("--timezone", help="Where the stamps are local, such as Europe/London.")]
NonNegative = Annotated[bool, typer.Option("--non-negative", help="A public fact: readings cannot be negative.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one machine-readable object.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of every random stream.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or mps.")]


def reading(
    time: str | None,
    identifier: str | None,
    targets: str | None,
    covariates: str | None,
    frequency: str | None,
    timezone: str | None,
) -> dict[str, Any]:
    """The arguments of `tamedit.read` that were given."""
    given: dict[str, Any] = {
        "time": time,
        "id": identifier,
        "targets": _listed(targets),
        "covariates": _listed(covariates),
        "frequency": frequency,
        "timezone": timezone,
    }
    return {name: value for name, value in given.items() if value is not None}


def _listed(names: str | None) -> list[str] | None:
    return [name.strip() for name in names.split(",") if name.strip()] if names else None


def say_notes(notes: tuple[str, ...], as_json: bool) -> None:
    """What was assumed in reading the data, unless a machine listens."""
    if not as_json:
        for note in notes:
            typer.echo(f"note: {note}")


def numbers(option: str, text: str | None) -> tuple[float, ...] | None:
    """Comma separated numbers."""
    if text is None:
        return None
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise UserError(
            f"{option} {text} is not a list of numbers; write one number a target, such as 0.35 or 1.5,20."
        ) from None


def wrote(paths: list[Path], as_json: bool = False, **facts: Any) -> None:
    """The last words of a command: which files it wrote."""
    if as_json:
        typer.echo(json.dumps({"files": [str(path) for path in paths], **facts}))
        return
    for path in paths:
        typer.echo(f"wrote {path}")
