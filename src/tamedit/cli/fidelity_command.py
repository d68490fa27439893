"""`tamedit fidelity`: synthetic homes beside held-out real ones, and alarms for leaks."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from tamedit.cli import options
from tamedit.cli.progress import RunProgress
from tamedit.errors import UserError
from tamedit.formatting import NOTHING, print_table, significant

OTHERS, SAME = "training homes", "the same homes, other dates"
SHORT = {OTHERS: "train", SAME: "dates", "simulator": "simul.", "independent hours": "hours", "synthetic": "synth."}
SAME_HOMES = (
    "The homes that are compared here were also trained on, at other dates (column `dates`). So nothing here is a ceiling, and "
    "there are no leak alarms. For both, keep whole homes out of training, generate homes over their dates, and run: "
    "tamedit fidelity SYNTHETIC KEPT_OUT --training TRAINED_ON."
)
NOTE = "The numbers and pictures come from real homes without noise. They are not private: do not share them with a release."


def fidelity(
    synthetic: Annotated[str, typer.Argument(help="CSV or Parquet file of synthetic homes, long: home, time, value.")],
    real: Annotated[str, typer.Argument(help="File (or named data set) of held-out real homes over the same dates.")],
    training: Annotated[
        str | None,
        typer.Option("--training", help="File of the homes that were trained on: the ceiling, and leak alarms."),
    ] = None,
    target: Annotated[str | None, typer.Option("--target", help="Column to compare, if there are several.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="HTML page to write, with pictures of real homes.")] = None,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
) -> None:
    """Measure how much synthetic homes resemble held-out real homes, beside what costs nothing. Needs no model."""
    from tamedit.cli.report import check_place
    from tamedit.data.sources import load_any

    if out is not None:
        check_place(out)
    made, held = load_any(synthetic), load_any(real)
    trained = None if training is None else load_any(training)
    _measure(made, held, trained, trained, target=target, out=out, seed=seed, as_json=as_json)


def measure_generation(
    run: Path, data: str | None, device: str, *, homes: int, days: int, redraw: bool | None, seed: int, as_json: bool
) -> None:
    """Generate homes over the dates of a run's test homes, and measure them."""
    import pandas as pd

    from tamedit.data.loading import load_split
    from tamedit.data.reader import read
    from tamedit.evaluation.fidelity.homes_grid import within
    from tamedit.runs.folder import load_run, not_private
    from tamedit.tasks.evolved_fleet import evolved_table, is_evolved
    from tamedit.tasks.model import Model

    config, facts = load_run(run)
    _, split = load_split(data or config.source, study=facts.study_for(data), **facts.reading)
    clock = split.test.times.tz_localize(None) if split.test.times.tz is not None else split.test.times
    start = clock.min().normalize()
    days = min(days, int((clock.max() - start) / pd.Timedelta(days=1)) + 1)
    first = f"{start:%Y-%m-%d}"
    if is_evolved(run):
        frame = evolved_table(run, homes, first, days, seed)
    else:
        with RunProgress(quiet=as_json, counted="home") as bar:
            model = Model.load(run, device)
            frame = model.generate(homes=homes, start=first, days=days, redraw=redraw, seed=seed, progress=bar)
            frame = frame.drop(columns=[name for name, _ in model.spec.static])
    made = read(frame, time="time", id="home", targets=[*frame.columns[2:]])
    held = within(split.test, start, days)
    try:
        beside = within(split.train, start, days)  # the same dates, if other homes were trained on
    except UserError:
        beside = split.train
    place = not_private(run) / "fidelity.html"
    _measure(made, held, split.train, beside, target=None, out=place, seed=seed, as_json=as_json)


def _measure(
    made: Any, held: Any, trained: Any, beside: Any, *, target: str | None, out: Path | None, seed: int, as_json: bool
) -> None:
    from tamedit.evaluation.fidelity import fidelity_table, independent_hours, leak_alarms, simulated_homes

    homes = len(held.meters)
    same = trained is not None and bool(set(trained.meters) & set(held.meters))  # a split by time
    candidates = {"synthetic": made, SAME if same else OTHERS: beside, "simulator": simulated_homes(held, homes, seed)}
    candidates["independent hours"] = independent_hours(held if trained is None else trained, max(homes, 2), seed)
    present = {name: series for name, series in candidates.items() if series is not None}
    with RunProgress(quiet=as_json, counted="fleet") as bar:
        table, alarms = fidelity_table(held, present, target=target, seed=seed, progress=bar), None
    if trained is not None and not same:
        alarms = leak_alarms(made, trained, held, target=target, seed=seed)
    files = []
    if out is not None:
        from tamedit.report.fidelity_page import write_page

        files.append(write_page(table, alarms, held, made, target, out, SAME_HOMES if same else None))
    if as_json:
        found = None if alarms is None else alarms.to_dict()
        note = f"{SAME_HOMES} {NOTE}" if same else NOTE
        typer.echo(json.dumps({**table.to_dict(), "leaks": found, "note": note, "files": [str(one) for one in files]}))
        return
    show(table)
    if alarms is not None:
        for sentence in alarms.sentences():
            typer.echo(sentence)
    elif same:
        typer.echo(SAME_HOMES)
    typer.echo(NOTE)
    options.wrote(files)


def show(table: Any) -> None:
    """Two tables, one line per measure: what shall be as of real homes, and what shall be small."""
    from tamedit.evaluation.fidelity.measures import MEASURES

    heads = [SHORT.get(name, name) for name in table.columns]
    title = f"{table.homes['synthetic']} synthetic homes beside {table.homes['real']} real ones"
    for statistic, aim in ((True, "best: the real homes' number"), (False, "best: 0; discriminative: 0.5")):
        rows = []
        for one in MEASURES:
            if (one.best == "real") == statistic:
                real, own, *others = (column[one.name] for column in table.columns.values())
                ends = NOTHING if own.low is None else f"{significant(own.low, 2)}…{significant(own.high, 2)}"
                rows.append(
                    [one.label, *([real.value] * statistic), own.value, ends, *(_short(cell.value) for cell in others)]
                )
        print_table(f"{title}, {aim}", ("measure", *heads[: 1 * statistic], heads[1], "95 %", *heads[2:]), rows)
    typer.echo("95 %: interval over homes. docs/fidelity.md says what each measure means.")


def _short(value: float | None) -> str:
    """Two digits, or three decimals of what is small."""
    return f"{value:.3f}" if value is not None and 0 < abs(value) < 0.1 else significant(value, 2)
