"""The command line: one file per command, and one place where mistakes become one sentence."""

import errno
import os
import sys
import traceback
from typing import Annotated, Any, NoReturn

import typer

from tamedit import __version__
from tamedit.cli import extensions, options
from tamedit.cli.account import account
from tamedit.cli.audit import audit
from tamedit.cli.calibrate import calibrate
from tamedit.cli.data import app as data_app
from tamedit.cli.demo import demo
from tamedit.cli.diagnose import Diagnose, diagnose
from tamedit.cli.distill import distill
from tamedit.cli.evaluate_command import evaluate
from tamedit.cli.fidelity_command import fidelity
from tamedit.cli.fill import forecast, impute
from tamedit.cli.flags import in_flags
from tamedit.cli.generate_command import generate
from tamedit.cli.plan_command import plan
from tamedit.cli.release_command import release, verify
from tamedit.cli.report import report
from tamedit.cli.request_options import KnowsOldNames
from tamedit.cli.serve import serve
from tamedit.cli.train import train
from tamedit.errors import UserError, first_complaint

TOO_MUCH = "This needs more memory or larger numbers than are available; ask for fewer samples, steps or windows."
_state = {"debug": False}
app = typer.Typer(
    name="tamedit",
    help="Differentially private diffusion transformers for time series: fill gaps, forecast, generate.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(data_app, name="data", help="Named data sets, the simulator, and a description of a file.")
app.command(cls=KnowsOldNames)(train)
app.command(cls=Diagnose)(options.takes_threads(diagnose))
ONE_THREAD = (plan, account, calibrate, release, verify)  # is all they use
for command in (
    impute,
    forecast,
    generate,
    evaluate,
    fidelity,
    report,
    plan,
    account,
    audit,
    calibrate,
    distill,
    release,
    verify,
    serve,
    demo,
):
    app.command()(command if command in ONE_THREAD else options.takes_threads(command))
extensions.add_to(app)


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
    _state["debug"] = debug


def main() -> None:
    """Run a command; a user's mistake gives one sentence and exit code 2, a request to stop exit code 130."""
    _state["debug"] = False
    try:
        code = app(standalone_mode=False, prog_name="tamedit")  # also as python -m, for completion
    except options.Stopped as stopped:
        _end(str(stopped), 130)
    except UserError as error:
        _end(str(error), 2)
    except OSError as error:
        if error.errno == errno.EPIPE:
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - nobody reads the output any more; Python flushes at exit
            sys.exit(1)
        place = f" ({error.filename})" if error.filename else ""
        _end(
            f"The operating system reports: {error.strerror or error}{place}; free some space, or choose another place.",
            2,
        )
    except (MemoryError, OverflowError):
        _end(TOO_MUCH, 2)
    except Exception as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()  # type: ignore[attr-defined]
            sys.exit(2)
        if hasattr(error, "format_message"):  # click's own mistakes: an unknown option, a value out of range
            _end(_on_the_command_line(error), 2)
        if type(error).__name__ == "Abort":
            _end("stopped.", 130)
        if type(error).__name__.startswith("OutOfBounds") or "allocate memory" in str(error):  # of pandas, of torch
            _end(TOO_MUCH, 2)
        if type(error).__name__ != "ValidationError" or not hasattr(error, "errors"):
            raise
        _end(first_complaint(error), 2)
    if code == 130:  # Ctrl-C, as typer reports it
        _end("stopped.", 130)
    sys.exit(code if isinstance(code, int) else 0)


def _on_the_command_line(error: Any) -> str:
    """click's complaint as one sentence."""
    option, message = getattr(error, "param", None), error.message.removeprefix("Value error, ").rstrip(".")
    value, listed, words = message.replace("'", "").partition(" is not one of ")
    if option is not None and listed:
        return f"{option.opts[0]} {value} is unknown; choose {words}."
    if option is not None and hasattr(error.__cause__, "errors"):
        given = error.__cause__.errors()[0]["input"]
        return f"{option.opts[0]} {given} is not possible: {message.replace('Input', 'it')}."
    command = error.ctx.command_path if error.ctx else "tamedit"
    return f"{error.format_message().rstrip('.')}; see {command} --help."


def _end(sentence: str, code: int) -> NoReturn:
    if _state["debug"]:
        traceback.print_exc()
    print(f"tamedit: {in_flags(sentence)}", file=sys.stderr)
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # threads of a group whose other processes are gone may abort Python on its ordinary way out
    sys.exit(code)
