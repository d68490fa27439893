"""Commands of other packages: the entry points of the group `tamedit.commands`.

An entry point has the name of a command and leads to a function that typer understands.
"""

from importlib.metadata import entry_points

import typer

from tamedit.errors import UserError

GROUP = "tamedit.commands"
PAPER = ("reproduce", "theory")  # what `tamedit_paper` adds


def add_to(app: typer.Typer) -> None:
    """Give the command line what is installed; a command of the paper that is not installed says how to get it."""
    found = {point.name: point for point in entry_points(group=GROUP)}
    for name in sorted(found):
        app.command(name)(found[name].load())
    for name in PAPER:
        if name not in found:
            app.command(
                name,
                hidden=True,
                add_help_option=False,
                context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
            )(_missing)


def _missing(context: typer.Context) -> None:
    raise UserError(
        f"`tamedit {context.info_name}` belongs to the package tamedit_paper, which is not installed; install it with "
        "`pip install ./paper` in a clone of the project."
    )
