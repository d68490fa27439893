"""`tamedit data`: list, fetch, simulate, describe and convert data sets."""

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tamedit.cli import options
from tamedit.formatting import print_table, significant

if TYPE_CHECKING:
    from tamedit.data.series import Series

app = typer.Typer(help="Named data sets, the simulator, and a description of a file.", no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="Print one machine-readable object.")]


@app.command("list")
def list_sources(as_json: Json = False) -> None:
    """List the named data sets, and which of them are on this machine."""
    from tamedit.data.sources import SOURCES, place

    rows = [
        {
            "name": source.name,
            "present": place(source.name).is_file(),
            "file": str(place(source.name)),
            "licence": source.licence,
            "description": source.description,
            "origin": source.origin,
        }
        for source in SOURCES.values()
    ]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    columns = ("name", "here", "what", "licence", "where from")
    cells = [
        (str(row["name"]), "yes" if row["present"] else "no", row["description"], row["licence"], row["origin"])
        for row in rows
    ]
    print_table("Named data sets", columns, cells, words=range(len(columns)))


@app.command()
def fetch(name: Annotated[str, typer.Argument(help="etth1, ettm1, household or ideal")], as_json: Json = False) -> None:
    """Download a named data set (ETT), or say how to get it."""
    from tamedit.data.sources import fetch as fetch_source

    path = fetch_source(name)
    typer.echo(json.dumps({"name": name, "file": str(path)}) if as_json else f"{name} is at {path}")


@app.command()
def simulate(
    *,
    out: Annotated[Path, typer.Option(help="CSV or Parquet file to write")],
    meters: Annotated[int, typer.Option(help="households", max=1_000_000)] = 1,
    hours: Annotated[int, typer.Option(help="hours of each", max=1_000_000)] = 23_136,
    seed: Annotated[int, typer.Option(help="the same seed gives the same file", min=0)] = 0,
    start: Annotated[str, typer.Option(help="first day")] = "2023-01-01",
    variety: Annotated[float, typer.Option(help="how far homes differ beyond the usual (0.6: a lot)")] = 0.0,
    as_json: Json = False,
) -> None:
    """Simulate the load of households: realistic, but nobody's data."""
    from tamedit.cli.progress import RunProgress
    from tamedit.data.simulate import simulate as simulate_series

    _check_ending(out)
    with RunProgress(quiet=as_json, counted="meter") as bar:
        series = simulate_series(meters=meters, hours=hours, start=start, seed=seed, variety=variety, progress=bar)
    _write(series, out)
    if as_json:
        typer.echo(json.dumps({"file": str(out), "meters": meters, "rows": len(series), "seed": seed}))
    else:
        typer.echo(f"Wrote {out}: {meters:,} meter{'s' * (meters != 1)} of {hours:,} hours (seed {seed}).")


@app.command()
def convert(
    name: Annotated[str, typer.Argument(help="household, ideal, london, fluvius, goiener, heapo, sgsc or ausgrid")],
    raw: Annotated[Path, typer.Argument(help="what the publisher provides: a file, zip or folder")],
    out: Annotated[
        Path | None,
        typer.Option(help="file to write; by default where TameDiT looks for the data set, or NAME.parquet"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Convert a publisher's files to the format that TameDiT reads."""
    from tamedit.cli.progress import RunProgress
    from tamedit.data.panels import PANELS
    from tamedit.data.sources import convert as convert_source
    from tamedit.data.sources import place

    default = Path(f"{name}.parquet") if name in PANELS else None
    target = out or default or place(name)
    with RunProgress(quiet=as_json, counted="megabyte") as bar:
        convert_source(name, raw, target, bar)
    typer.echo(json.dumps({"name": name, "file": str(target)}) if as_json else f"Wrote {target}.")


@app.command()
@options.reads_a_table
def describe(
    *,
    source: options.Sources,
    reading: dict[str, Any],
    as_json: Json = False,
) -> None:
    """Show what a series contains: range, step, gaps, channels, and a small plot."""
    from tamedit.data.describe import describe as describe_series
    from tamedit.data.sources import load_any

    named = options.one_source(source, private=False)
    series = load_any(named, **reading)
    facts = describe_series(series)
    if as_json:
        typer.echo(json.dumps(facts, indent=2, allow_nan=False))
    else:
        _print_description(named, facts)
        told = "".join(f" {name} {shlex.quote(value)}" for name, value in options.as_options(reading).items())
        typer.echo(f"next: tamedit train {shlex.quote(named)}{told} --out runs/first")


def _print_description(source: str, facts: dict[str, Any]) -> None:
    """Print the facts as tables."""
    overview = [
        ("rows", f"{facts['rows']:,}"),
        ("meters", f"{facts['meters']:,}"),
        ("range", f"{facts['start']} … {facts['end']}"),
        ("step", f"{facts['step']} (season: {facts['period']} steps)"),
        ("missing", f"{facts['missing_share']:.2%} of the readings"),
        ("gaps", _spoken_gaps(facts["gaps"])),
    ]
    if facts["covariates"]:
        overview.append(("covariates", ", ".join(facts["covariates"])))
    print_table(source, ("", ""), overview, words=(0, 1))
    cells = [
        (
            channel["name"],
            *(significant(channel[key], 4) for key in ("minimum", "median", "maximum")),
            f"{channel['missing_share']:.1%}",
            channel["plot"],
        )
        for channel in facts["channels"]
    ]
    heads = ("name", "minimum", "median", "maximum", "missing", "first meter" if facts["panel"] else "over time")
    print_table("Channels", heads, cells, words=(0, 5))
    if facts["panel"] is not None:
        rows = [
            (name, *(significant(numbers[key], 4) for key in ("minimum", "median", "maximum")))
            for name, numbers in facts["panel"].items()
        ]
        print_table("Over the meters", ("of a meter", "minimum", "median", "maximum"), rows)
    for title, said in (("Understood:", facts["inferred"]), ("Found in the rows:", facts["findings"])):
        for line in [title, *(f"· {note}" for note in said)] if said else ():
            options.say(line)
    typer.echo(
        f"A run would learn from {facts['meters']:,} meter{'s' * (facts['meters'] != 1)} with the target"
        f"{'s' * (len(facts['channels']) != 1)} {', '.join(one['name'] for one in facts['channels'][:8])}, in windows of some "
        "days, and keep the last 15 % of every meter for test."
    )


def _spoken_gaps(gaps: dict[str, Any]) -> str:
    if not gaps["count"]:
        return "none"
    meter = f" (meter {gaps['longest_meter']})" if gaps["longest_meter"] else ""
    return f"{gaps['count']:,}, the longest of {gaps['longest']:,} steps from {gaps['longest_from']}{meter}"


def _check_ending(out: Path) -> None:
    from tamedit.errors import UserError

    if out.suffix.lower() not in (".csv", ".parquet"):
        raise UserError(f"{out} must end in .csv or .parquet, so that its format is clear.")


def _write(series: "Series", out: Path) -> None:
    """A series as the user would write it: CSV or Parquet by the ending of the file."""
    from tamedit.files import write_with

    frame = series.frame()
    frame = frame.reset_index() if series.layout == "wide" else frame
    if out.suffix.lower() == ".csv":
        write_with(out, lambda path: frame.to_csv(path, index=False, float_format="%.6g"))
    else:
        write_with(out, lambda path: frame.to_parquet(path, index=False))
