"""Commands of other packages: those that are installed are there, those of the paper that are not say how to get them."""

from collections.abc import Callable
from importlib.metadata import EntryPoint

import pytest
import typer
from typer.testing import CliRunner

from support import Run
from tamedit.cli import extensions
from tamedit.errors import UserError


def greet(name: str) -> None:
    """Say hello."""
    typer.echo(f"hello {name}")


def app_with(monkeypatch: pytest.MonkeyPatch, *points: EntryPoint) -> typer.Typer:
    """A command line in an environment that has just these entry points."""
    monkeypatch.setattr(extensions, "entry_points", lambda group: [one for one in points if one.group == group])
    app = typer.Typer(add_completion=False)
    app.command()(greet)
    extensions.add_to(app)
    return app


def test_an_installed_command_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("welcome", "test_extensions:greet", extensions.GROUP)
    elsewhere = EntryPoint("other", "nowhere:nothing", "another.group")
    answer = CliRunner().invoke(app_with(monkeypatch, point, elsewhere), ["welcome", "you"])
    assert answer.output == "hello you\n"


@pytest.mark.parametrize("arguments", [[], ["all", "--scale", "laptop"], ["--help"]])
@pytest.mark.parametrize("name", extensions.PAPER)
def test_a_command_of_the_paper_says_how_to_get_it(
    name: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = CliRunner().invoke(app_with(monkeypatch), [name, *arguments])
    assert isinstance(answer.exception, UserError)
    assert f"`tamedit {name}`" in str(answer.exception)
    assert "pip install ./paper" in str(answer.exception)


def test_a_command_that_cannot_be_loaded_leaves_the_others_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    app = app_with(monkeypatch, EntryPoint("broken", "no_such_package.commands:nothing", extensions.GROUP))
    assert CliRunner().invoke(app, ["greet", "you"]).output == "hello you\n"
    answer = CliRunner().invoke(app, ["broken", "--deep"])
    assert isinstance(answer.exception, UserError)
    assert "no_such_package, again" in str(answer.exception)


def test_what_is_not_installed_is_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "reproduce" not in CliRunner().invoke(app_with(monkeypatch), ["--help"]).output


def test_the_paper_is_installed_here(run: Run) -> None:
    code, out, _ = run("--help")
    assert code == 0
    assert all(name in out for name in extensions.PAPER)


def test_theory_was_an_option_of_diagnose(mistake: Callable[..., str]) -> None:
    assert mistake("diagnose", "runs/demo", "--theory").endswith("tamedit theory runs/demo.")
    searching = mistake("diagnose", "runs/demo", "--theory", "--search", 3)
    assert searching.endswith("tamedit theory runs/demo --search 3.")
