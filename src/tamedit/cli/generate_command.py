"""`tamedit generate`: synthetic homes, or single windows."""

from pathlib import Path
from typing import Annotated, Any

import typer

from tamedit.cli import options
from tamedit.cli.fill import Out, Run, check_out, write_table
from tamedit.cli.progress import RunProgress
from tamedit.errors import UserError


@options.reads_a_table
def generate(
    *,
    run: Run,
    out: Out,
    homes: Annotated[int | None, typer.Option("--homes", help="Homes to generate.", max=1_000_000)] = None,
    days: Annotated[
        int | None, typer.Option("--days", help="With --homes: days of each home (365 if not given).")
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", help="Single windows to generate instead.", min=1, max=1_000_000)
    ] = None,
    start: Annotated[
        str | None,
        typer.Option("--start", help="First day of every home (2024-01-01 if not given), or stamp of every window."),
    ] = None,
    level: Annotated[
        str | None, typer.Option("--level", help="With --homes: least and largest yearly total, such as 3000,4000.")
    ] = None,
    begin: Annotated[
        Path | None, typer.Option("--begin", help="Table of homes that go on from their last reading, for --days.")
    ] = None,
    redraw: Annotated[
        bool | None,
        typer.Option(
            "--redraw/--no-redraw",
            help="With --homes or --begin: the network draws every day anew (default: only what the simulator cannot make).",
        ),
    ] = None,
    static: Annotated[
        str | None,
        typer.Option("--static", help="With --homes: attributes that all of them are to have, such as tariff=night."),
    ] = None,
    seed: options.Seed = 0,
    reading: dict[str, Any],
    device: options.Device = "auto",
    as_json: options.AsJson = False,
) -> None:
    """Generate synthetic homes, or single windows, or what comes after the readings of given homes.

    Homes are written group by group. If you stop the command, the same command continues it.
    """
    check_out(out, also=begin)
    if reading and begin is None:
        raise UserError(
            f"`{min(reading)}` says how to read the table of `begin`; give it, or leave `{min(reading)}` out."
        )
    from tamedit.tasks.evolved_fleet import is_evolved
    from tamedit.tasks.model import Model

    if is_evolved(run):
        if homes is None or any(one is not None for one in (count, level, redraw, begin, static)):
            raise UserError(
                f"{run} was made by private evolution and generates whole homes; give --homes, --start and --days alone."
            )
        _write_evolved(run, homes, start, days, seed, out, as_json)
        return
    model = Model.load(run, device)
    if begin is not None:
        given: dict[str, Any] = {
            "count": count,
            "homes": homes,
            "start": start,
            "level": _range(level),
            "redraw": redraw,
            "static": static,
            "seed": seed,
        }
        series = model.read(begin, **reading)
        options.say_notes((*series.notes, *series.findings), as_json)
        with RunProgress(quiet=as_json, counted="home") as bar:
            table = model.generate(**given, begin=series, days=days, progress=bar)
        write_table(table, out)
        options.wrote([out], as_json, rows=len(table))
        return
    if homes is None or count is not None:
        if static is not None:
            raise UserError("--static belongs to --homes; give the number of homes, or leave it out.")
        if redraw is not None:
            raise UserError("--redraw belongs to --homes and --begin; give one of them, or leave it out.")
        with RunProgress(quiet=as_json, counted="window") as bar:
            table = model.generate(
                count, homes=homes, start=start, days=days, level=_range(level), seed=seed, progress=bar
            )
        write_table(table, out)
        options.wrote([out], as_json, rows=len(table))
        return
    _write_homes(model, homes, start, days, _range(level), redraw, static, seed, out, as_json)


def _range(level: str | None) -> tuple[float, float] | None:
    if level is None:
        return None
    try:
        low, high = map(float, level.split(","))
    except ValueError:
        raise UserError(f"--level {level} is not a range; write two numbers, such as 3000,4000.") from None
    return low, high


def _write_homes(
    model: Any,
    homes: int,
    start: str | None,
    days: int | None,
    level: tuple[float, float] | None,
    redraw: bool | None,
    static: str | None,
    seed: int,
    out: Path,
    as_json: bool,
) -> None:
    from tamedit.tasks.fleet_table import asked

    fleet, population = asked(model.spec, homes, start, days, level, redraw, seed, static)
    name = f"{model.spec.weights_sha256} {population.model_dump_json()}"
    _write(
        fleet,
        model.spec.targets,
        lambda skip: model.homes(fleet, population, skip=skip),
        name,
        out,
        as_json,
        population,
    )


def _write_evolved(
    run: Path, homes: int, start: str | None, days: int | None, seed: int, out: Path, as_json: bool
) -> None:
    from tamedit.tasks.evolved_fleet import asked_of_evolution, evolved_fleet

    fleet, population = asked_of_evolution(run, homes, start, days, seed)
    _write(
        fleet, (population.target,), lambda skip: evolved_fleet(fleet, population, skip), repr(population), out, as_json
    )


def _write(
    fleet: Any, targets: tuple[str, ...], make: Any, name: str, out: Path, as_json: bool, population: Any = None
) -> None:
    """Write the fleet group by group; `name` says who makes it, so that nobody else continues it."""
    from tamedit.tasks.fleet_table import write_homes

    try:
        with RunProgress(quiet=as_json, counted="home") as bar:
            write_homes(fleet, targets, make, out, name, bar, population)
    except KeyboardInterrupt:
        raise options.Stopped("stopped; the same command continues.") from None
    options.wrote([out], as_json, rows=fleet.homes * fleet.rows)
