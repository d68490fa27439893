"""`tamedit theory RUN`: an upper bound on the gradients of this run's network, and how loose it is."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tamedit.cli import options
from tamedit.formatting import print_table

if TYPE_CHECKING:
    from tamedit_paper.theory.of_run import RunTheory

FILE = "theory.json"
PARTS = {
    "residual": "residual",
    "epsilon": "ε",
    "values": "observed values",
    "anchor": "anchor",
    "covariates": "covariates",
}


def theory(
    run: Annotated[Path, typer.Argument(help="Folder made by `tamedit train`.")],
    input_bound: Annotated[
        float | None,
        typer.Option(
            "--input-bound",
            help="Upper limit of an example's entries, in model units, where the form of the model sets none (5).",
        ),
    ] = None,
    reference: Annotated[
        Path | None, typer.Option("--reference", help="bounds.json to compare the bounds with (built-in magnitudes).")
    ] = None,
    search_steps: Annotated[
        int | None,
        typer.Option(
            "--search",
            help="Also search for the worst example: STEPS of ascent from each of four starts.",
            metavar="STEPS",
            min=0,
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Bound the gradients of one run's network (S_aware, Proposition 1); recorded gradients stay in its not-private folder."""
    from tamedit.files import write_text
    from tamedit.runs.folder import NOT_PRIVATE
    from tamedit_paper.theory.of_run import ASSUMED, analyse_run, largest_recorded

    assumed = ASSUMED if input_bound is None else input_bound
    found = analyse_run(run, assumed=assumed, reference=reference, search_steps=search_steps)
    recorded = largest_recorded(run, found.theory.sensitivity)
    paths, plain = [run / FILE], found.to_dict()
    write_text(paths[0], json.dumps(plain, indent=2, allow_nan=False) + "\n")
    if recorded is not None:
        paths.append(run / NOT_PRIVATE / FILE)
        write_text(paths[1], json.dumps({"recorded": recorded}, indent=2, allow_nan=False) + "\n")
    if not as_json:
        show(found, recorded)
    options.wrote(paths, as_json, **({"run": str(run), **plain, "recorded": recorded} if as_json else {}))


def show(found: "RunTheory", recorded: dict[str, Any] | None) -> None:
    """Print tables, or one sentence where there is no finite bound."""
    theory = found.theory
    if found.sentence:
        typer.echo(found.sentence)
    else:
        rows = [[PARTS[name], entry.limit, entry.why] for name, entry in found.entries.items()]
        print_table("entries of an example, model units", ["part", "at most", "because"], rows, words=None)
        whole = [["S_aware", theory.sensitivity], ["layers in quadrature", theory.quadrature], ["C", theory.clip]]
        print_table(
            "the longest gradient", ["", "at most"], [*whole, ["ρ ≤ S_aware / C", theory.rho_bound]], words=None
        )
        shares = [[name, value, value / theory.sensitivity] for name, value in theory.groups.items()]
        print_table("groups: they add up to S_aware", ["group", "at most", "share"], shares, words=None)
        print_table("S_aware = A₀ + Σ a M, and S_aware / S_ref = λ₀ + Σ λ r", *_constants(found), words=None)
    if all(value < float("inf") for value in theory.block_jacobians):
        blocks = [[f"block {number}", value] for number, value in enumerate(theory.block_jacobians, 1)]
        print_table("growth through a block", ["", "C_block"], blocks, words=None)
    if found.search is not None or recorded is not None:
        print_table(
            "for comparison", ["largest gradient", "norm", "share of S_aware"], _beside(found, recorded), words=None
        )
    if recorded is not None:
        lost = f" {recorded['not_finite']} gradients were not finite." if recorded["not_finite"] else ""
        typer.echo(f"The recorded gradient: {recorded['statement']}{lost}")
    for note in found.notes:
        typer.echo(f"note: {note}.")


def _constants(found: "RunTheory") -> tuple[list[str], list[list[Any]]]:
    """One line per maximum: the constants at the bounds, and the convex combination against the reference."""
    linear, convex = found.theory.linear, found.theory.convex
    assert linear is not None
    assert convex is not None
    heads = ["", "constant a", "bound M", "reference", "λ", "r"]
    rows: list[list[Any]] = [["A₀", linear.constant, None, None, convex.weights[0], None]]
    largest = [max(getattr(one, name) for one in found.bounds) for name, _ in found.reference]
    for place, (symbol, (_, base)) in enumerate(zip(("c", "γ", "β", "α"), found.reference, strict=True)):
        slope, weight, ratio = linear.slopes[place], convex.weights[place + 1], convex.ratios[place]
        rows.append([f"a_{symbol}", slope, largest[place], base, weight, ratio])
    rows.append(["S_aware / S_ref", None, None, None, None, convex.ratio])
    rows.append(["at most max(1, r)", None, None, None, None, convex.ceiling])
    return heads, rows


def _beside(found: "RunTheory", recorded: dict[str, Any] | None) -> list[list[Any]]:
    """How loose the bound is: the largest gradient that the search found, and the largest that training recorded."""
    rows: list[list[Any]] = []
    if found.search is not None:
        search = found.to_dict()["search"]
        rows.append(["found by the search", search["largest"], search["share_of_S_aware"]])
    if recorded is not None:
        rows.append(["recorded in training: NOT PRIVATE", recorded["largest"], recorded["share_of_S_aware"]])
    return rows
