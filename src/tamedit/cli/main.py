"""The command line: one file a command, and one place where mistakes become one sentence."""

import os
import sys
from typing import Annotated

import typer

from tamedit import __version__
from tamedit.cli.data import app as data_app
from tamedit.cli.demo import demo
from tamedit.cli.evaluate import evaluate
from tamedit.cli.fill import forecast, generate, impute
from tamedit.cli.train import train
from tamedit.errors import UserError

app = typer.Typer(
    name="tamedit",
    help="Differentially private diffusion transformers for time series: fill gaps, forecast, generate.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(data_app, name="data", help="Named data sets, the simulator, and a look at a file.")
for command in (train, impute, forecast, generate, evaluate, demo):
    app.command()(command)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tamedit {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    if debug:
        os.environ["TAMEDIT_DEBUG"] = "1"


def main() -> None:
    """Run a command; a user's mistake is one sentence and exit code 2."""
    try:
        app()
    except UserError as error:
        if os.environ.get("TAMEDIT_DEBUG"):
            raise
        print(f"tamedit: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("tamedit: stopped.", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
