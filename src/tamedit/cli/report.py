"""`tamedit report`: everything about a run on one page that needs no network."""

from pathlib import Path
from typing import Annotated, Any

import typer

from tamedit.cli import options
from tamedit.cli.progress import RunProgress
from tamedit.errors import UserError


def report(
    run: Annotated[Path, typer.Argument(help="Folder made by `tamedit train`.")],
    out: Annotated[Path | None, typer.Option("--out", help="HTML file to write (RUN/not-private/report.html).")] = None,
    data: options.MovedData = None,
    samples: Annotated[int, typer.Option("--samples", help="Samples per window.", min=4)] = 20,
    windows: Annotated[int, typer.Option("--windows", help="Test windows at most.", min=1)] = 64,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    as_json: options.AsJson = False,
) -> None:
    """Write one HTML page: data, privacy, training, gradients, pictures, scores, calibration. The page is not private."""
    from tamedit.evaluation.task_table import TASKS
    from tamedit.report.findings import find
    from tamedit.report.write import FILE, write_report
    from tamedit.runs.folder import load_run, not_private

    load_run(run)  # reject a folder that is not a run before choosing a place in it
    place = not_private(run) / FILE if out is None else out
    check_place(place)
    if not as_json:
        typer.echo(f"Drawing {samples} samples for up to {windows} test windows, at each of up to {len(TASKS)} tasks …")
    shared: dict[str, Any] = {"samples": samples, "windows": windows, "seed": seed, "device": device}
    with RunProgress(quiet=as_json, counted="window") as bar:
        found = find(run, source=data, **shared, progress=bar)
    write_report(found, place)
    facts = {
        "run": str(run),
        **found.evaluation.to_dict(),
        "reliability": {
            task: {method: curve.to_dict() for (own, method), curve in found.curves.items() if own == task}
            for task in found.evaluation.tasks
        },
        "privacy": found.privacy,
    }
    if not as_json:
        typer.echo(
            "The page shows test data and measurements without noise. It is not private: do not share it with the model."
        )
    options.wrote([place], as_json, **(facts if as_json else {}))


def check_place(out: Path) -> None:
    """Refuse a place where no page can be, before the long work."""
    parent = next(one for one in out.absolute().parents if one.exists())
    if out.is_dir():
        raise UserError(f"--out {out} is a folder; name a file, such as {out / 'report.html'}.")
    if out.suffix.lower() not in (".html", ".htm"):
        raise UserError(f"--out {out} must end in .html or .htm, since the report is a web page.")
    if not parent.is_dir():
        raise UserError(f"--out {out}: {parent} is a file and no folder; choose another place.")
