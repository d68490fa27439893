"""`tamedit diagnose`: the gradients that runs recorded, as tables and figures; and the reference magnitudes of bounds."""

import json
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from tamedit.cli import options
from tamedit.errors import UserError
from tamedit.formatting import deep, print_table

PUBLIC = "With --bounds"


class Diagnose(TyperCommand):
    """A command that answers one of its earlier options with the command that took its place."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if "--theory" in args:
            others = shlex.join(one for one in args if one != "--theory")
            raise UserError(f"--theory is now a separate command; run tamedit theory {others}.")
        return super().parse_args(ctx, args)


def diagnose(
    runs: Annotated[list[Path], typer.Argument(help="Folders made by `tamedit train`.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of the figures (not-private/diagnostics of the first run).")
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option("--baseline", help="The run that ρ compares with (the first private one without bounds)."),
    ] = None,
    bounds: Annotated[
        bool, typer.Option("--bounds", help="Measure an unbounded run's magnitudes instead, for `train --reference`.")
    ] = False,
    public: Annotated[
        bool, typer.Option("--public", help="State that the run's data is public or simulated.", rich_help_panel=PUBLIC)
    ] = False,
    under_noise: Annotated[
        bool,
        typer.Option(
            "--under-noise",
            help="Train the run again with several shares of its magnitudes as bounds, and keep the best share.",
            rich_help_panel=PUBLIC,
        ),
    ] = False,
    anyway: Annotated[
        bool,
        typer.Option(
            "--not-public-anyway",
            help="Measure private data without noise, without any guarantee.",
            rich_help_panel=PUBLIC,
        ),
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Show gradient tails, clipping, losses and step times of runs side by side. None of it is private."""
    if (public or anyway or under_noise) and not bounds:
        raise UserError(
            "--public, --under-noise and --not-public-anyway need --bounds; add --bounds, or leave them out."
        )
    if under_noise and anyway:
        raise UserError("--under-noise needs public or simulated data; leave out --not-public-anyway.")
    if bounds:
        if len(runs) > 1:
            raise UserError(f"--bounds measures one run, but {len(runs)} were named; name one.")
        if out is not None or baseline is not None:
            raise UserError("--out and --baseline are for comparing runs; leave them out with --bounds.")
        measure(runs[0], public, anyway, under_noise, as_json)
        return
    from tamedit.diagnostics.compare import compare
    from tamedit.diagnostics.gradient_record import read_records
    from tamedit.figures.gradient_figures import draw_all
    from tamedit.files import write_text
    from tamedit.runs.folder import not_private

    if baseline is not None and baseline.resolve() not in [run.resolve() for run in runs]:
        runs = [baseline, *runs]
    comparison = compare(read_records(runs), baseline)
    folder = out if out is not None else not_private(runs[0]) / "diagnostics"
    paths, found = draw_all(comparison, folder), comparison.to_dict()
    write_text(folder / "diagnostics.json", json.dumps(found, indent=2, allow_nan=False) + "\n")
    paths.append(folder / "diagnostics.json")
    if not as_json:
        show(found)
    options.wrote(paths, as_json, **(found if as_json else {}))


def measure(run: Path, public: bool, anyway: bool, under_noise: bool, as_json: bool) -> None:
    """`--bounds`: the reference magnitudes of a run, in a file that `train --reference` reads."""
    from tamedit.cli.progress import RunProgress
    from tamedit.diagnostics.magnitudes import measure_run
    from tamedit.diagnostics.under_noise import measure_under_noise
    from tamedit.files import write_text
    from tamedit.runs.folder import not_private

    if under_noise:
        with RunProgress(quiet=as_json) as progress:
            reference = measure_under_noise(run, public, progress=progress)
    else:
        reference = measure_run(run, public=public, anyway=anyway)
    place = (not_private(run) if reference.origin == "not public" else run) / "bounds.json"
    found = reference.model_dump(mode="json")
    write_text(place, json.dumps(found, indent=2) + "\n")
    if not as_json:
        columns = list(next(iter(reference.quantiles.values())))
        symbols = {"condition": "‖c‖", "scale": "|γ|", "shift": "|β|", "gate": "|α|"}
        rows = [[symbols[name], *own.values()] for name, own in reference.quantiles.items()]
        title = f"magnitudes without bounds; p{100 * reference.quantile:.0f} is the reference"
        print_table(title, ["", *("max" if one == "p100" else one for one in columns)], rows)
        _show_scores(reference.scores, reference.share)
    options.wrote([place], as_json, **(found if as_json else {}))


def _show_scores(scores: dict[str, float], best: float | None) -> None:
    """What bounds of several shares of the p99 do to the error under noise."""
    if best is not None:
        rows = [["none" if share == "0" else share, score] for share, score in scores.items()]
        print_table("bounds as a share of the p99, and RMSE of both tasks under noise", ["share", "RMSE"], rows)
        typer.echo(f"best share: {best:g}; the preset medium of --reference is that share.")


def show(found: dict[str, Any]) -> None:
    """Three tables: tails, clipping, step times."""
    runs = found["runs"]
    names = [[run["label"], run["arm"]] for run in runs]
    for share in ("p95", "p99"):
        tails = [
            [*name, *(deep(run, "norms", which, share) for which in ("other", "cond", "total"))]
            + [deep(run, "rho", which, share) for which in ("emp", "cond")]
            for name, run in zip(names, runs, strict=True)
        ]
        heads = ["run", "arm", "S_other", "S_cond", "S_total", "ρ_emp", "ρ_cond"]
        print_table(f"gradient norms, {share}", heads, tails, words=(0, 1))
    counts = [
        [*name, run["steps"], run["examples"], run["not_finite"]]
        + [deep(run, "norms", which, "hill") for which in ("other", "cond", "total")]
        for name, run in zip(names, runs, strict=True)
    ]
    heads = ["run", "arm", "steps", "examples", "not finite", "other", "cond", "total"]
    print_table("recorded, and Hill's tail index of the norms (small: heavy)", heads, counts, words=(0, 1))
    statistics = ("p_clip", "mean", "p10", "p50", "p90", "p99")
    clips = [
        [*name, *(deep(run, "clipping", one) for one in statistics)] for name, run in zip(names, runs, strict=True)
    ]
    heads = ["run", "arm", "p_clip", "η mean", "η p10", "η p50", "η p90", "η p99"]
    print_table("clipping", heads, clips, words=(0, 1))
    times = [
        [
            *name,
            *(deep(run, "time", one) for one in ("mean", "p50", "p90")),
            *(deep(run, "time_ratio", one) for one in ("mean", "p50")),
        ]
        for name, run in zip(names, runs, strict=True)
    ]
    heads = ["run", "arm", "mean", "p50", "p90", "mean / Non-DP", "p50 / Non-DP"]
    print_table("seconds per step", heads, times, words=(0, 1))
    options.say_notes(found["notes"], as_json=False)
    typer.echo(found["statement"])
