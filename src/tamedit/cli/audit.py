"""`tamedit audit`: plants canaries, trains as always, attacks, and prints lower bounds beside the stated ε."""

import json
from typing import Annotated, Any

import typer

from tamedit.cli import options
from tamedit.cli.request_options import CHOICES, asks_for
from tamedit.errors import UserError
from tamedit.formatting import counted, print_table
from tamedit.runs.request import TrainRequest


@options.reads_a_table
@asks_for(*(name for name in CHOICES if name not in ("resume", "layout")), out=..., epsilon=8.0)
def audit(
    *,
    source: options.Sources,
    chosen: dict[str, Any],
    homes: Annotated[
        int, typer.Option("--homes", help="Made-up homes to plant; each of their blocks is one canary.", min=1)
    ] = 30,
    canaries: Annotated[
        int, typer.Option("--canaries", help="Gradient-space canaries of the white-box attack.", min=2)
    ] = 1000,
    confidence: Annotated[float, typer.Option("--confidence", help="Of all bounds of one attack together.")] = 0.95,
    as_json: options.AsJson = False,
) -> None:
    """Attack a private run on this data: lower bounds on ε, from the finished model and from every step.

    Takes the options of `tamedit train`. The audited model contains made-up homes: it is deleted, and must never be released.
    """
    request = TrainRequest.flat(**chosen)
    if not 0.5 <= confidence < 1.0:
        raise UserError(f"--confidence {confidence:g} is not possible: give a number from 0.5 up to, but below, 1.")

    from tamedit.cli.progress import RunProgress
    from tamedit.privacy.audit.finding import LOW, READING
    from tamedit.training.planted import RESULT, RUN_FOLDER, audit_request

    try:
        with RunProgress(quiet=as_json) as progress:
            findings = audit_request(
                options.one_source(source, private=True),
                request,
                homes=homes,
                canaries=canaries,
                confidence=confidence,
                progress=progress,
                say=None if as_json else options.say,
            )
    except KeyboardInterrupt as stop:
        raise options.Stopped(str(stop) or "stopped.") from None
    broken = any(one.broken for one in findings)
    if as_json:
        typer.echo(
            json.dumps(
                {"broken": broken, "reading": READING, "findings": [one.to_dict() for one in findings]},
                indent=2,
                ensure_ascii=False,
            )
        )
    else:
        for one in findings:
            print_table(
                f"{one.attack.capitalize()}, {counted(one.canaries, 'canary').replace('canarys', 'canaries')}: "
                f"stated ε = {one.stated:.3g} at δ = {one.delta:g}",
                ("bound", f"ε is at least ({confidence:.0%} confidence)"),
                [*one.bounds.items()],
            )
            typer.echo(f"AUROC {one.auroc:.3f}; hits {one.true_positive_rate:.1%} at {LOW:.0%} false alarms")
            if one.noise is not None:
                typer.echo(f"noise: {one.noise[0]:.3f} to {one.noise[1]:.3f} times what the plan says")
        verdict = "BROKEN: the mechanism does not keep its promise." if broken else "No attack refuted the stated ε."
        typer.echo(f"{verdict} {READING}")
        place = request.out
        typer.echo(f"The audited model was deleted; its settings and its ledger are in {place}/{RUN_FOLDER}.")
        typer.echo(f"Never release an audited run. wrote {place}/{RESULT}")
    if broken:
        raise typer.Exit(1)
