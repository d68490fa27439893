"""`tamedit reproduce`: the paper's tables and figures and the ε curve, run by run; it can be stopped and continued."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from tamedit.choices import Scale
from tamedit.cli import options
from tamedit.errors import UserError


def reproduce(
    what: Annotated[
        str,
        typer.Argument(
            help="all (of the paper), one table or figure (tab:main-results-extended), one cell (household/vanilla/sigma=0.1), "
            "reference (which magnitudes the bounds scale) or regime (where they help); "
            "or, beyond the paper: curve (our own form on real homes, utility against ε), synthetic (generated homes)."
        ),
    ],
    scale: Annotated[
        Scale, typer.Option("--scale", help="Size of the runs: smoke takes seconds each, laptop minutes.")
    ] = "laptop",
    seeds: Annotated[int, typer.Option("--seeds", help="Seeds 0, 1, … of every run.", min=1)] = 3,
    seed: Annotated[int | None, typer.Option("--seed", help="Only this seed.", min=0)] = None,
    workers: Annotated[int, typer.Option("--workers", help="Processes, one thread each.", min=1)] = 2,
    source: Annotated[
        Literal["household", "simulated"],
        typer.Option("--source", help="Data in place of PrivatePower: household (UCI, real) or simulated."),
    ] = "household",
    results: Annotated[Path, typer.Option("--results", help="Folder of results; each scale is a subfolder.")] = Path(
        "paper/results"
    ),
    work: Annotated[Path, typer.Option("--work", help="Folder of unfinished runs.")] = Path("runs/reproduce"),
    out: Annotated[Path, typer.Option("--out", help="Folder of the tables, figures and verdicts.")] = Path(
        "runs/reproduction"
    ),
    print_commands: Annotated[
        bool,
        typer.Option("--print-commands", help="Print one command per missing run, for any scheduler, and run nothing."),
    ] = False,
    tables_only: Annotated[
        bool, typer.Option("--tables", help="Write tables and figures from the results that exist.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Reproduce the paper: make the runs that are missing, then write tables, figures and verdicts from the results.

    With curve: the runs and the page of what privacy costs at an ε that protects someone.
    """
    from tamedit_paper.grid.cells import Cell
    from tamedit_paper.grid.results import Job

    if what == "synthetic":
        _synthetic(range(seeds) if seed is None else [seed], results / scale, work, out, tables_only, as_json)
        return
    cells = _cells(what, source)
    chosen = [seed] if seed is not None else list(range(seeds))
    pairs = ((cell, one) for one in chosen for cell in cells if one == chosen[0] or not Cell.parse(cell).is_seedless)
    jobs = [Job(cell=cell, scale=scale, seed=one) for cell, one in pairs]
    place = results / scale
    if print_commands:
        from tamedit_paper.grid.work import is_done

        extra = "" if results == Path("paper/results") else f" --results {results}"
        for job in jobs:
            if not is_done(job, place):
                typer.echo(f"{job.command}{extra} --workers 1")
        return
    outcome = None if tables_only else _run(jobs, place, work / scale, workers, as_json)
    written = _write(what, place, scale, out, source)
    facts: dict[str, Any] = {}
    if outcome is not None:
        facts = {"made": outcome.made, "skipped": outcome.skipped, "failed": outcome.failed}
        for command, reason in outcome.failed.items():
            typer.echo(f"failed: {command} ({reason})", err=True)
    options.wrote([*([place] if outcome else []), *written], as_json, **facts)
    if outcome is not None and outcome.failed:
        raise UserError(
            f"{len(outcome.failed)} of {len(jobs)} runs failed for the reasons above; run the same command to try again."
        )


def _synthetic(seeds: Iterable[int], results: Path, work: Path, out: Path, tables_only: bool, as_json: bool) -> None:
    """The fidelity of generated homes: what is missing one after the other, then the page."""
    from tamedit_paper.synthetic.cells import cells
    from tamedit_paper.synthetic.measured import measure
    from tamedit_paper.synthetic.page import draw, write_synthetic

    jobs = [] if tables_only else [(cell, one) for one in seeds for cell in cells()]
    for number, (cell, one) in enumerate(jobs):
        if not as_json:
            print(f"runs {number}/{len(jobs)}: {cell.name}, seed {one}", file=sys.stderr, flush=True)
        measure(cell, one, results, work / "synthetic")
    made = [results, *draw(out, work / "synthetic")] if jobs else []
    options.wrote([*made, *write_synthetic(results, out)], as_json)


def _cells(what: str, source: str) -> list[str]:
    """One cell, those of the ε curve, or those of the paper."""
    from tamedit_paper.curve.cells import CURVE, curve_cells
    from tamedit_paper.grid.cells import Cell
    from tamedit_paper.tables.labels import cells_of
    from tamedit_paper.tables.sweeps import SWEEPS, sweep_cells

    if "/" in what:
        return [Cell.parse(what).name]
    if what in SWEEPS:
        return sweep_cells(what)
    return curve_cells() if what == CURVE else cells_of(what, source=source)


def _write(what: str, results: Path, scale: Any, out: Path, source: str) -> list[Path]:
    """The page that shows these runs: that of the ε curve, or that of the paper; one cell alone has none."""
    from tamedit_paper.claims.page import write_document
    from tamedit_paper.curve.cells import CURVE
    from tamedit_paper.curve.page import write_utility
    from tamedit_paper.tables.sweeps import SWEEPS

    if "/" in what or what in SWEEPS:
        return []
    return write_utility(results, scale, out) if what == CURVE else write_document(results, scale, out, source)


def _run(jobs: list[Any], results: Path, work: Path, workers: int, quiet: bool) -> Any:
    """Run the grid and show its progress; Ctrl-C stops it with a sentence on how to continue."""
    from tamedit_paper.grid.workers import Outcome, run_grid

    def report(outcome: Outcome, jobs: int, seconds: float) -> None:
        if quiet:
            return
        done = outcome.made + outcome.skipped + len(outcome.failed)
        tried = outcome.made + len(outcome.failed)
        left = f", {_clock(seconds / tried * (jobs - done))} left" if tried and done < jobs else ""
        kept = f" ({outcome.skipped} were there)" if outcome.skipped else ""
        print(f"runs {done}/{jobs}{kept}{left}", file=sys.stderr, flush=True)

    outcome = run_grid(jobs, results, work, workers, report)
    if outcome.stopped:
        raise options.Stopped(
            f"stopped after {outcome.made} of {len(jobs) - outcome.skipped} runs; run the same command to continue."
        )
    return outcome


def _clock(seconds: float) -> str:
    minutes = int(seconds // 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min {int(seconds % 60):02d} s"
