"""`tamedit account`: the ε of a plan, of a run for every unit side by side, or of all runs on a data set."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from tamedit.cli.flags import in_flags
from tamedit.errors import UserError
from tamedit.formatting import epsilon as shown
from tamedit.formatting import print_table
from tamedit.privacy.units import Neighbour

LEDGER = (
    "ledger.jsonl"  # of a run; the name is repeated here because privacy.entries is imported only when it is needed
)


def account(
    run: Annotated[
        Path | None,
        typer.Argument(
            help="Folder of a private run, whose files are compared; or the ledger of a data set, which lists its runs."
        ),
    ] = None,
    sampling_rate: Annotated[
        float | None, typer.Option(help="q, the probability that an example is in a batch.")
    ] = None,
    noise_multiplier: Annotated[float | None, typer.Option(help="σ, noise in units of the clipping norm.")] = None,
    steps: Annotated[int | None, typer.Option(help="Number of training steps.")] = None,
    delta: Annotated[float | None, typer.Option(help="δ; by default that of the run, or 1e-5.")] = None,
    contributions: Annotated[int | None, typer.Option(help="k, examples that one unit touches; 1 by default.")] = None,
    neighbour: Annotated[
        str | None, typer.Option(help="removal (the default) or replacement of those examples.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show what was spent: ε by privacy loss distributions (PLD), and by RDP.

    Give a run's folder, a ledger, or --sampling-rate, --noise-multiplier and --steps.
    """
    given = (sampling_rate, noise_multiplier, steps, contributions, neighbour)
    if run is not None:
        if any(value is not None for value in given):
            raise UserError(
                "Give either a run's folder or the numbers of a plan: the ledger contains a run's own numbers."
            )
        shared = run.is_file() and run.name != LEDGER
        result = of_data_set(run, delta) if shared else of_run(run.parent if run.is_file() else run, delta)
    else:
        if sampling_rate is None or noise_multiplier is None or steps is None:
            raise UserError("Give a run's folder, or all of --sampling-rate, --noise-multiplier and --steps.")
        result = of_plan(
            sampling_rate,
            noise_multiplier,
            steps,
            1e-5 if delta is None else delta,
            1 if contributions is None else contributions,
            neighbour or "removal",
        )
    if as_json:
        typer.echo(json.dumps(result, indent=2, ensure_ascii=False))
    elif run is not None:
        if "runs" in result:
            _print_runs(run, result)
        else:
            typer.echo(in_flags(result["statement"]))
        _print_units(run, result)
    else:
        _print_plan(result)


def of_plan(
    sampling_rate: float, noise_multiplier: float, steps: int, delta: float, contributions: int, neighbour: str
) -> dict[str, Any]:
    """ε of `steps` steps for a unit of k examples."""
    kind = check_numbers(sampling_rate, steps, contributions, neighbour)
    if not noise_multiplier > 0.0:
        raise UserError(f"--noise-multiplier {noise_multiplier:g} gives no privacy: give a positive number.")
    from tamedit.privacy.accountant import Mechanism, epsilon
    from tamedit.privacy.statement import epsilon_dict

    spent = epsilon([Mechanism(sampling_rate, noise_multiplier, steps)], delta, contributions, kind)
    return {
        **epsilon_dict(spent),
        "sampling_rate": sampling_rate,
        "noise_multiplier": noise_multiplier,
        "steps": steps,
        "contributions": contributions,
        "neighbour": neighbour,
    }


def of_run(run: Path, delta: float | None) -> dict[str, Any]:
    """The statement of a run's ledger, and under "units" the same training for every unit; or what in the folder disagrees."""
    from tamedit.privacy.statement import side_by_side
    from tamedit.runs.agreement import after_the_ledger, check_agreement

    record, everything = check_agreement(run)
    units = side_by_side(record, delta, everything, after_the_ledger(run))
    own = units[record.segments[-1].plan.unit]
    return {**own, "units": units}


def of_data_set(ledger: Path, delta: float | None) -> dict[str, Any]:
    """Every run in the ledger of a data set with what it spent, and under "units" what all of them spent together."""
    from tamedit.privacy.entries import read
    from tamedit.privacy.statement import Statement, side_by_side

    if ledger.suffix != ".jsonl" and (ledger.parent / LEDGER).is_file():
        raise UserError(f"{ledger} is no ledger but a file of the run beside it; name its folder, {ledger.parent}.")
    record = read(ledger)
    units = side_by_side(record, delta, record)
    runs = []
    for number, one in record.runs.items():
        last, said = one.segments[-1], Statement.of(one, delta=delta).to_dict()
        kept = {
            key: said[key] for key in ("unit", "epsilon", "delta", "protection", "steps", "contributions", "neighbour")
        }
        runs.append({"run": number, "folder": last.folder, "data": last.data, **kept})
    return {"ledger": str(ledger), "runs": runs, "units": units}


def check_numbers(sampling_rate: float, steps: int, contributions: int, neighbour: str) -> Neighbour:
    """Check the numbers that `account` and `calibrate` share."""
    from tamedit.privacy.accountant import MOST_STEPS

    if not 0.0 < sampling_rate <= 1.0:
        raise UserError(f"--sampling-rate {sampling_rate:g} is not possible: give a number above 0 and at most 1.")
    if not 1 <= steps <= MOST_STEPS:
        raise UserError(f"--steps {steps} is not possible: give a number from 1 to {MOST_STEPS}.")
    if contributions < 1:
        raise UserError(f"--contributions {contributions} is not possible: a unit touches at least one example.")
    if neighbour == "removal":
        return "removal"
    if neighbour == "replacement":
        return "replacement"
    raise UserError(f"--neighbour {neighbour!r} is unknown: choose removal or replacement.")


def _print_plan(result: dict[str, Any]) -> None:
    from tamedit.privacy.grades import grade

    headline = result["epsilon"]["headline"]
    typer.echo(
        f"ε = {shown(headline)} at δ = {result['delta']:g} by {result['accountant']}, for {result['contributions']} "
        f"example(s) per unit by {result['neighbour']}, after {result['steps']:,} steps"
    )
    if result["epsilon"]["rdp"] is not None:
        typer.echo(f"ε = {shown(result['epsilon']['rdp'])} by RDP")
    for name, note in result["notes"].items():
        typer.echo(f"no {name.upper()}: {note}")
    typer.echo(f"protection: {grade(headline)}")


def _print_runs(ledger: Path, result: dict[str, Any]) -> None:
    rows = [
        (
            one["folder"],
            one["unit"],
            one["steps"],
            shown(one["epsilon"]["headline"]),
            f"{one['delta']:g}",
            one["protection"],
        )
        for one in result["runs"]
    ]
    heads = ("run", "unit", "steps", "ε alone", "δ", "protection")
    print_table(f"Private runs in {ledger}", heads, rows, words=(0, 1, 5))


def _print_units(run: Path, result: dict[str, Any]) -> None:
    rows: list[list[Any]] = []
    for unit, row in result["units"].items():
        if row["epsilon"] is None:
            rows.append([unit, None, None, None, None, row["reason"]])
        else:
            spent = shown(row["epsilon"]["headline"])
            rows.append([unit, row["contributions"], row["neighbour"], spent, row["protection"], row["reason"]])
    heads = ("unit", "examples", "neighbour", "ε (PLD)", "protection", "why")
    title = f"What {run} spent{' together' * ('runs' in result)}, for every privacy unit"
    print_table(title, heads, rows, words=(0, 2, 4, 5))
