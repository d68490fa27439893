"""`tamedit release`: the folder that may leave; and `tamedit verify`, which checks such a folder."""

import json
from pathlib import Path
from typing import Annotated

import typer

from tamedit.cli import options
from tamedit.errors import UserError

CARD = "For the privacy card"


def release(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    out: Annotated[Path, typer.Argument(help="Folder of the release; it must not exist, or be empty.")],
    acknowledge: Annotated[
        str, typer.Option("--acknowledge", help="Short names of what is not covered and accepted, comma separated.")
    ] = "",
    key: Annotated[
        Path | None, typer.Option("--key", help="PEM file of a private Ed25519 key, to sign the release with.")
    ] = None,
    curator: Annotated[
        str | None, typer.Option("--curator", help="Who holds the readings and releases.", rich_help_panel=CARD)
    ] = None,
    purpose: Annotated[
        str | None, typer.Option("--purpose", help="What the model is meant for.", rich_help_panel=CARD)
    ] = None,
    region: Annotated[
        str | None, typer.Option("--region", help="Where the readings come from.", rich_help_panel=CARD)
    ] = None,
    sector: Annotated[str | None, typer.Option("--sector", help="Such as energy.", rich_help_panel=CARD)] = None,
    reasons: Annotated[
        str | None, typer.Option("--reasons", help="Why this unit, this ε and this δ.", rich_help_panel=CARD)
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Write what may leave, and nothing else: the model, its cards, its ledger and digests."""
    from tamedit.runs.release import release as write

    stated = {"curator": curator, "purpose": purpose, "region": region, "sector": sector, "reasons": reasons}
    paths = write(run, out, acknowledge=acknowledge, key=key, **stated)
    if not as_json:
        typer.echo("Everything in this folder may leave; read privacy-card.html before it does.")
    options.wrote(paths, as_json)


def verify(
    release: Annotated[Path, typer.Argument(help="Folder made by `tamedit release`.")],
    public_key: Annotated[
        Path | None, typer.Option("--public-key", help="PEM file of the public key that must have signed it.")
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(
            "--ledger",
            help="Ledger of the data set, which the curator keeps: also check what all runs on the data spent together.",
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Check a release: no byte was changed, and ε, derived again from the ledger, is what the cards say."""
    from tamedit.runs.verification import verify as check

    found = check(release, public_key, ledger)
    if as_json:
        said = {"verified": not found.problems, "problems": found.problems, "notes": found.notes}
        typer.echo(json.dumps({**said, "privacy": found.privacy}, indent=2, ensure_ascii=False))
    if found.problems:
        raise UserError(f"{release} is not as it was released: {'; '.join(found.problems)}.")
    if not as_json:
        assert found.privacy is not None
        typer.echo(f"{release} is as it was released.")
        typer.echo(found.privacy["statement"])
        options.say_notes(found.notes, as_json)
