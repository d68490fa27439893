"""Commands of other packages: the entry points of the group `tamedit.commands`.

An entry point has the name of a command and leads to a function that typer understands.
"""

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer

from tamedit.errors import UserError

GROUP = "tamedit.commands"
PAPER = ("reproduce", "theory", "peers")  # what `tamedit_paper` adds


def add_to(app: typer.Typer) -> None:
    """Give the command line what is installed; a command of the paper that is not installed says how to get it."""
    found = {point.name: point for point in entry_points(group=GROUP)}
    for name in sorted(found):
        try:
            app.command(name)(found[name].load())
        except (ImportError, AttributeError) as error:  # no reason for the other commands to fail
            _answer(app, name, _broken(found[name], error))
    for name in PAPER:
        if name not in found:
            _answer(
                app,
                name,
                f"`tamedit {name}` belongs to the package tamedit_paper, which is not installed; install it with "
                "`pip install ./paper` in a clone of the project.",
            )


def _broken(point: EntryPoint, error: Exception) -> str:
    package = point.value.partition(":")[0].partition(".")[0]
    return f"`tamedit {point.name}` cannot be loaded ({error}); install its package, {package}, again."


def _answer(app: typer.Typer, name: str, sentence: str) -> None:
    """A command that is not shown, takes any arguments and says one sentence."""

    def say(context: typer.Context) -> None:
        raise UserError(sentence)

    anything: dict[str, Any] = {"ignore_unknown_options": True, "allow_extra_args": True}
    register: Callable[..., Any] = app.command(name, hidden=True, add_help_option=False, context_settings=anything)
    register(say)
