"""Options that several commands share, and how a command ends."""

import inspect
import json
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from tamedit.cli.flags import flag, in_flags


class Stopped(Exception):
    """The user asked a command to stop, and it stopped cleanly; the message says how to continue."""


Time = Annotated[str | None, typer.Option("--time", help="Column of time stamps (found if not given).")]
Identifier = Annotated[str | None, typer.Option("--id", help="Column of meter names: the long layout.")]
Targets = Annotated[str | None, typer.Option("--targets", help="Columns to fill and forecast, comma separated.")]
Covariates = Annotated[str | None, typer.Option("--covariates", help="Columns known at every step, comma separated.")]
Frequency = Annotated[str | None, typer.Option("--frequency", help="Step between rows, such as 1h or 15min.")]
Timezone = Annotated[str | None, typer.Option("--timezone", help="Time zone of local stamps, such as Europe/London.")]
MissingCovariates = Annotated[
    Literal["refuse", "hold", "zero"] | None,
    typer.Option(
        "--missing-covariates",
        help="A covariate with gaps: refuse it, hold its last known value, or take zero (private runs do).",
    ),
]
Columns = Annotated[
    Literal["meters", "channels"] | None,
    typer.Option("--columns", help="Many columns with like names: each a meter, or channels of one meter."),
]
FilesAre = Annotated[
    Literal["meters", "parts"] | None,
    typer.Option("--files", help="Several files: each a meter, or parts of one table (found if not given)."),
]
Missing = Annotated[
    str | None,
    typer.Option("--missing", help="Numbers and words that stand for a missing reading, comma separated: -999,error."),
]
Round = Annotated[str | None, typer.Option("--round", help="Stamps with jitter: round them to this, such as 1min.")]
Resample = Annotated[str | None, typer.Option("--resample", help="Another step between rows, such as 1h.")]
Aggregate = Annotated[
    Literal["sum", "mean"] | None,
    typer.Option("--aggregate", help="With --resample: sum (energy) or mean (power) of the readings of a step."),
]
Sources = Annotated[
    list[str],
    typer.Argument(
        help="A named data set (etth1, ettm1, household, ideal), a CSV, Parquet or Excel file, several of them, or a folder."
    ),
]
NonNegative = Annotated[
    bool, typer.Option("--non-negative", help="State the public fact that readings cannot be negative.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one machine-readable object.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of every random stream.", min=0)]
MovedData = Annotated[
    str | None,
    typer.Option(
        "--data",
        help="Where the data is now, if it has moved; or other data with the same columns, split in the same way.",
    ),
]
Threads = Annotated[int, typer.Option("--threads", help="CPU threads (0: torch's choice).", min=0, max=1024)]
Device = Annotated[Literal["auto", "cpu", "cuda", "mps"], typer.Option("--device", help="Where to compute.")]


Static = Annotated[
    str | None,
    typer.Option(
        "--static",
        help="Attributes of a meter as a whole, with their categories: 'tariff=flat|night,heating=gas|none'.",
    ),
]


# How to read a table: an argument of `tamedit.read`, the option of its name.
READING: dict[str, Any] = {
    "time": Time,
    "id": Identifier,
    "targets": Targets,
    "covariates": Covariates,
    "frequency": Frequency,
    "timezone": Timezone,
    "missing_covariates": MissingCovariates,
    "columns": Columns,
    "files": FilesAre,
    "missing": Missing,
    "round": Round,
    "resample": Resample,
    "aggregate": Aggregate,
    "static": Static,
}
LISTS = ("targets", "covariates", "missing")


def as_options(reading: dict[str, Any]) -> dict[str, str]:
    """How a table is read, as it would be written on the command line."""
    texts = {name: ",".join(map(_short, value)) if name in LISTS else str(value) for name, value in reading.items()}
    if "static" in reading:
        from tamedit.statics import in_text

        texts["static"] = in_text(reading["static"])
    return {flag(name): text for name, text in texts.items()}


def _short(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def one_source(sources: list[str], private: bool) -> str:
    """The data of a command as one text: several files as their pattern."""
    if len(sources) == 1 and "://" not in sources[0]:
        return sources[0]
    from tamedit.data.reading.several import one_text

    return one_text(sources, private)


def reads_a_table(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the options of READING; what was given of them reaches it as one dict, its argument `reading`.

    An option that the command has itself stays the command's.
    """
    table = {name: one for name, one in READING.items() if name not in inspect.signature(command).parameters}

    @wraps(command)
    def reader(**arguments: Any) -> None:
        given = {name: arguments.pop(name) for name in table}
        listed: dict[str, Any] = {name: _listed(value) if name in LISTS else value for name, value in given.items()}
        if listed["missing"] is not None:
            listed["missing"] = _codes(listed["missing"])
        command(reading={name: value for name, value in listed.items() if value is not None}, **arguments)

    parameters: list[inspect.Parameter] = []
    for name, own in inspect.signature(command).parameters.items():
        kind = inspect.Parameter.KEYWORD_ONLY
        several = [inspect.Parameter(one, kind, default=None, annotation=option) for one, option in table.items()]
        parameters += several if name == "reading" else [own.replace(kind=kind)]
    reader.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return reader


def takes_threads(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command that computes for long the option --threads."""

    @wraps(command)
    def limited(*, threads: int, **arguments: Any) -> None:
        if threads:
            import torch

            torch.set_num_threads(threads)
        command(**arguments)

    kind = inspect.Parameter.KEYWORD_ONLY
    own = [one.replace(kind=kind) for one in inspect.signature(command).parameters.values()]
    last = inspect.Parameter("threads", kind, default=0, annotation=Threads)
    limited.__signature__ = inspect.Signature([*own, last])  # type: ignore[attr-defined]
    return limited


def _listed(names: str | None) -> list[str] | None:
    return [name.strip() for name in names.split(",") if name.strip()] if names else None


def _codes(texts: list[str]) -> list[float | str]:
    """Numbers and words."""
    return [_number(text) for text in texts]


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def say(sentence: str) -> None:
    """What the core has to say, in the words of the command line."""
    typer.echo(in_flags(sentence))


def say_notes(notes: tuple[str, ...], as_json: bool) -> None:
    """What was assumed in reading the data, unless the output is JSON."""
    for note in () if as_json else notes:
        say(f"note: {note}")


def wrote(paths: list[Path], as_json: bool = False, **facts: Any) -> None:
    """The last words of a command: which files it wrote."""
    if as_json:
        typer.echo(json.dumps({"files": [str(path) for path in paths], **facts}))
        return
    for path in paths:
        typer.echo(f"wrote {path}")
