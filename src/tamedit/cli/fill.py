"""`tamedit impute`, `tamedit forecast`, `tamedit generate`: a model and a table in, a table out."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from tamedit.cli import options
from tamedit.cli.progress import RunProgress
from tamedit.errors import UserError

Run = Annotated[
    Path,
    typer.Argument(help="Folder made by `tamedit train`, or `homes`: the model of loads that ships with the package."),
]
Files = Annotated[
    list[str],
    typer.Argument(
        help="CSV, Parquet or Excel file with the model's columns, several, or a folder; NaN or empty = missing."
    ),
]
Out = Annotated[Path, typer.Option("--out", help="Where to write: .csv or .parquet.")]
Samples = Annotated[
    int | None,
    typer.Option(
        "--samples",
        help="Samples per cell (40, more for quantiles far out; 100 with --all-samples).",
        min=1,
        max=100_000,
    ),
]
Quantiles = Annotated[str, typer.Option("--quantiles", help="Quantiles beside the median, comma separated.")]
QUANTILES = "0.05,0.25,0.75,0.95"
AllSamples = Annotated[bool, typer.Option("--all-samples", help="Write every sample instead of median and quantiles.")]


def write_table(table: Any, out: Path) -> None:
    """As CSV, numbers are the shortest texts that read back as the same float32: observed cells stay, to single precision."""
    from tamedit.files import write_with

    keep_index = table.index.name is not None
    if out.suffix.lower() == ".parquet":
        write_with(out, lambda path: table.reset_index().to_parquet(path) if keep_index else table.to_parquet(path))
    else:
        write_with(out, lambda path: table.to_csv(path, index=keep_index))


def check_out(out: Path, inputs: Sequence[str] = (), also: Path | None = None) -> None:
    """Check before the long work that a table can be written there without loss."""
    from tamedit.data.reading.several import files_of

    read = [path for one in inputs for path in files_of(one) or [Path(one)]] + ([] if also is None else [also])
    if out.suffix.lower() not in (".csv", ".parquet"):
        raise UserError(f"--out {out} must end in .csv or .parquet.")
    if out.is_dir():
        raise UserError(f"--out {out} is a folder; name a file in it.")
    above = next(folder for folder in out.absolute().parents if folder.exists())
    if not above.is_dir():
        raise UserError(f"--out {out} lies below the file {above}; choose another place.")
    if not os.access(above, os.W_OK | os.X_OK):
        raise UserError(f"--out {out}: the folder {above} cannot be written to; choose another place.")
    if len(inputs) == 1 and Path(inputs[0]).is_dir() and out.parent.resolve() == Path(inputs[0]).resolve():
        raise UserError(
            f"--out {out} lies in the folder that is read, and would be read the next time; name another place."
        )
    if out.resolve() in [path.resolve() for path in read]:
        raise UserError(f"--out {out} is the table to be read, which would be lost; name another file.")


@options.reads_a_table
def impute(
    *,
    run: Run,
    file: Files,
    out: Out,
    samples: Samples = None,
    quantiles: Quantiles = QUANTILES,
    all_samples: AllSamples = False,
    only_filled: Annotated[
        bool, typer.Option("--only-filled", help="Write the rows alone that have a filled cell.")
    ] = False,
    seed: options.Seed = 0,
    reading: dict[str, Any],
    device: options.Device = "auto",
    as_json: options.AsJson = False,
) -> None:
    """Fill every gap of a table: the median, with quantiles next to it, and a column that says which cells were filled.

    Observed cells are kept, to single precision.
    """
    check_out(out, file)
    from tamedit.tasks.model import Model

    model = Model.load(run, device)
    series = model.read(options.one_source(file, private=False), **reading)
    options.say_notes((*series.notes, *series.findings), as_json)
    drawing: dict[str, Any] = {"samples": samples, "quantiles": quantiles, "all_samples": all_samples, "seed": seed}
    with RunProgress(quiet=as_json, counted="window") as progress:
        table = model.impute(series, only_filled=only_filled, progress=progress, **drawing)
    write_table(table, out)
    options.wrote([out], as_json, rows=len(table))


@options.reads_a_table
def forecast(
    *,
    run: Run,
    file: Files,
    horizon: Annotated[str, typer.Option("--horizon", help="How far to forecast: steps (24) or a duration (24h, 2D).")],
    out: Out,
    samples: Samples = None,
    quantiles: Quantiles = QUANTILES,
    all_samples: AllSamples = False,
    since: Annotated[
        str | None,
        typer.Option(
            "--from",
            "--since",
            help="First stamp of the forecast, for all meters; by default after each one's last row.",
        ),
    ] = None,
    future: Annotated[
        Path | None, typer.Option("--future", help="CSV or Parquet file with the known covariates of the steps ahead.")
    ] = None,
    seed: options.Seed = 0,
    reading: dict[str, Any],
    device: options.Device = "auto",
    as_json: options.AsJson = False,
) -> None:
    """Forecast the steps after a table's last row."""
    check_out(out, file, also=future)
    from tamedit.tasks.common_start import different_ends
    from tamedit.tasks.model import Model

    model = Model.load(run, device)
    series = model.read(options.one_source(file, private=False), **reading)
    ends = () if since else different_ends(series)
    options.say_notes((*series.notes, *series.findings, *ends), as_json)
    drawing: dict[str, Any] = {"samples": samples, "quantiles": quantiles, "all_samples": all_samples, "seed": seed}
    with RunProgress(quiet=as_json, counted="window") as progress:
        table = model.forecast(series, horizon, since=since, future=future, progress=progress, **drawing)
    write_table(table, out)
    options.wrote([out], as_json, rows=len(table))
