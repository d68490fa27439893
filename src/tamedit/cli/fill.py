"""`tamedit impute`, `tamedit forecast`, `tamedit generate`: a model and a table in, a table out."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from tamedit.cli import options
from tamedit.errors import UserError

Run = Annotated[Path, typer.Argument(help="Folder made by `tamedit train`.")]
File = Annotated[Path, typer.Argument(help="CSV or Parquet file with the model's columns; NaN or empty = missing.")]
Out = Annotated[Path, typer.Option("--out", help="Where to write: .csv or .parquet.")]
Samples = Annotated[int, typer.Option("--samples", help="Samples per cell.", min=1, max=100_000)]
Quantiles = Annotated[str, typer.Option("--quantiles", help="Quantiles beside the median, comma separated.")]
QUANTILES = "0.05,0.25,0.75,0.95"
AllSamples = Annotated[bool, typer.Option("--all-samples", help="Write every sample instead of median and quantiles.")]


def _write(table: Any, out: Path) -> None:
    """As CSV, numbers are the shortest texts that read back as the same float32: observed cells stay, to single precision."""
    from tamedit.files import write_with

    keep_index = table.index.name is not None
    if out.suffix.lower() == ".parquet":
        write_with(out, lambda path: table.reset_index().to_parquet(path) if keep_index else table.to_parquet(path))
    else:
        write_with(out, lambda path: table.to_csv(path, index=keep_index))


def _check_out(out: Path, *inputs: Path | None) -> None:
    """Check before the long work that a table can be written there without loss."""
    if out.suffix.lower() not in (".csv", ".parquet"):
        raise UserError(f"--out {out} must end in .csv or .parquet.")
    if out.is_dir():
        raise UserError(f"--out {out} is a folder; name a file in it.")
    above = next(folder for folder in out.absolute().parents if folder.exists())
    if not above.is_dir():
        raise UserError(f"--out {out} lies below the file {above}; choose another place.")
    if not os.access(above, os.W_OK | os.X_OK):
        raise UserError(f"--out {out}: the folder {above} cannot be written to; choose another place.")
    if out.resolve() in [path.resolve() for path in inputs if path is not None]:
        raise UserError(f"--out {out} is the table to be read, which would be lost; name another file.")


@options.reads_a_table
def impute(
    *,
    run: Run,
    file: File,
    out: Out,
    samples: Samples = 100,
    quantiles: Quantiles = QUANTILES,
    all_samples: AllSamples = False,
    seed: options.Seed = 0,
    reading: dict[str, Any],
    device: options.Device = "auto",
    as_json: options.AsJson = False,
) -> None:
    """Fill every gap of a table: the median, with quantiles next to it.

    Observed cells are kept, to single precision.
    """
    _check_out(out, file)
    from tamedit.tasks.model import Model

    model = Model.load(run, device)
    series = model.read(file, **reading)
    options.say_notes((*series.notes, *series.findings), as_json)
    table = model.impute(series, samples=samples, quantiles=quantiles, all_samples=all_samples, seed=seed)
    _write(table, out)
    options.wrote([out], as_json, rows=len(table))


@options.reads_a_table
def forecast(
    *,
    run: Run,
    file: File,
    horizon: Annotated[str, typer.Option("--horizon", help="How far to forecast: steps (24) or a duration (24h, 2D).")],
    out: Out,
    samples: Samples = 100,
    quantiles: Quantiles = QUANTILES,
    all_samples: AllSamples = False,
    future: Annotated[
        Path | None, typer.Option("--future", help="CSV or Parquet file with the known covariates of the steps ahead.")
    ] = None,
    seed: options.Seed = 0,
    reading: dict[str, Any],
    device: options.Device = "auto",
    as_json: options.AsJson = False,
) -> None:
    """Forecast the steps after a table's last row."""
    _check_out(out, file, future)
    from tamedit.tasks.model import Model

    model = Model.load(run, device)
    series = model.read(file, **reading)
    options.say_notes((*series.notes, *series.findings), as_json)
    table = model.forecast(
        series, horizon, samples=samples, quantiles=quantiles, all_samples=all_samples, seed=seed, future=future
    )
    _write(table, out)
    options.wrote([out], as_json, rows=len(table))


def generate(
    run: Run,
    count: Annotated[int, typer.Option("--count", help="Windows to generate.", min=1, max=1_000_000)],
    out: Out,
    start: Annotated[
        str | None, typer.Option("--start", help="First stamp of every window (random days if not given).")
    ] = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    as_json: options.AsJson = False,
) -> None:
    """Generate synthetic windows."""
    _check_out(out)
    from tamedit.tasks.model import Model

    table = Model.load(run, device).generate(count, start=start, seed=seed)
    _write(table, out)
    options.wrote([out], as_json, rows=len(table))
