"""`tamedit calibrate`: the noise for a target ε, or the trade-off between ε, σ and the number of steps."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from tamedit.cli.account import check_numbers
from tamedit.errors import UserError
from tamedit.formatting import epsilon as shown
from tamedit.formatting import print_table
from tamedit.privacy.units import Neighbour

NOISE = (0.5, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0, 5.0)
SHARES = (0.25, 0.5, 1.0, 2.0)


def calibrate(
    sampling_rate: Annotated[float, typer.Option(help="q, the probability that an example is in a batch.")],
    steps: Annotated[int, typer.Option(help="Number of training steps.")],
    epsilon: Annotated[float | None, typer.Option(help="Target ε; leave it out for the table of trade-offs.")] = None,
    delta: Annotated[float, typer.Option(help="δ of the guarantee.")] = 1e-5,
    contributions: Annotated[int, typer.Option(help="k, examples that one unit touches.")] = 1,
    neighbour: Annotated[str, typer.Option(help="removal or replacement of those examples.")] = "removal",
    plot: Annotated[Path | None, typer.Option(help="Draw the trade-off into this file (.png, .pdf, .svg).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Find the noise multiplier for a target ε, or show ε for several noise multipliers and numbers of steps."""
    kind = check_numbers(sampling_rate, steps, contributions, neighbour)
    if plot is not None and plot.suffix.lower() not in {".png", ".pdf", ".svg"}:
        raise UserError(f"--plot {plot} is not a picture: its name must end in .png, .pdf or .svg.")
    setting: dict[str, Any] = {
        "sampling_rate": sampling_rate,
        "steps": steps,
        "delta": delta,
        "contributions": contributions,
        "neighbour": kind,
    }
    result: dict[str, Any] = dict(setting)
    if epsilon is not None:
        result |= _target(epsilon, **setting)
    if epsilon is None or plot is not None:
        result["trade_off"] = trade_off(**setting)
    if plot is not None:
        from tamedit.figures.trade_off import draw

        result["plot"] = str(draw(plot, result["trade_off"], sampling_rate, delta))
    if as_json:
        typer.echo(json.dumps(result, indent=2, ensure_ascii=False))
    else:
        _print(result)


def _target(
    target: float, *, sampling_rate: float, steps: int, delta: float, contributions: int, neighbour: Neighbour
) -> dict[str, Any]:
    from tamedit.cli.account import of_plan
    from tamedit.privacy.plan import calibrate as calibrated

    sigma = calibrated(target, sampling_rate, steps, delta, contributions, neighbour)
    spent = of_plan(sampling_rate, sigma, steps, delta, contributions, neighbour)
    return {"target": target, "noise_multiplier": sigma, "epsilon": spent["epsilon"], "accountant": spent["accountant"]}


def trade_off(
    *, sampling_rate: float, steps: int, delta: float, contributions: int, neighbour: Neighbour
) -> list[dict[str, Any]]:
    """ε for each noise multiplier and for a quarter, half, all and twice the steps."""
    from tamedit.privacy.accountant import Mechanism, epsilon
    from tamedit.privacy.statement import finite

    counts = sorted({max(1, round(share * steps)) for share in SHARES})
    rows = []
    for sigma in NOISE:
        values = []
        for count in counts:
            work = [Mechanism(sampling_rate, sigma, count)]
            spent = epsilon(work, delta, contributions, neighbour, with_rdp=False, rough=True)
            values.append({"steps": count, "epsilon": finite(spent.value)})
        rows.append({"noise_multiplier": sigma, "values": values})
    return rows


def _print(result: dict[str, Any]) -> None:
    if "noise_multiplier" in result:
        typer.echo(
            f"σ = {result['noise_multiplier']:.4f} gives ε = {shown(result['epsilon']['headline'])} at δ = {result['delta']:g} "
            f"by {result['accountant']} after {result['steps']:,} steps"
        )
    else:
        title = f"ε at δ = {result['delta']:g}, sampling rate {result['sampling_rate']:g}"
        heads = ["σ", *(f"{value['steps']:,} steps" for value in result["trade_off"][0]["values"])]
        rows = [
            [f"{row['noise_multiplier']:g}", *(shown(value["epsilon"]) for value in row["values"])]
            for row in result["trade_off"]
        ]
        print_table(title, heads, rows, words=())
    if "plot" in result:
        typer.echo(f"Wrote {result['plot']}")
