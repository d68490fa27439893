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
            help="With --homes: the network draws every day anew (default: only where the simulator cannot make such rows).",
        ),
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
    from tamedit.tasks.evolved_fleet import evolved_table, is_evolved
    from tamedit.tasks.model import Model

    if is_evolved(run):
        if homes is None or any(one is not None for one in (level, redraw, begin)):
            raise UserError(
                f"{run} was made by private evolution and generates whole homes; give --homes, --start and --days alone."
            )
        table = evolved_table(run, homes, start, days, seed)
        write_table(table, out)
        options.wrote([out], as_json, rows=len(table))
        return
    model = Model.load(run, device)
    if begin is not None:
        given: dict[str, Any] = {
            "count": count,
            "homes": homes,
            "start": start,
            "level": _range(level),
            "redraw": redraw,
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
        if redraw is not None:
            raise UserError("--redraw belongs to --homes; give the number of homes, or leave it out.")
        with RunProgress(quiet=as_json, counted="window") as bar:
            table = model.generate(
                count, homes=homes, start=start, days=days, level=_range(level), seed=seed, progress=bar
            )
        write_table(table, out)
        options.wrote([out], as_json, rows=len(table))
        return
    rows = _write_homes(model, homes, start, days, _range(level), redraw, seed, out, as_json)
    options.wrote([out], as_json, rows=rows)


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
    seed: int,
    out: Path,
    as_json: bool,
) -> int:
    from tamedit.tasks.fleet_table import asked, write_homes

    fleet, population = asked(model.spec, homes, start, days, level, redraw, seed)
    try:
        with RunProgress(quiet=as_json, counted="home") as bar:
            write_homes(
                fleet,
                model.spec.targets,
                lambda skip: model.homes(fleet, population, skip=skip),
                out,
                f"{model.spec.weights_sha256} {population.model_dump_json()}",
                bar,
            )
    except KeyboardInterrupt:
        raise options.Stopped("stopped; the same command continues.") from None
    return fleet.homes * fleet.rows
