"""`tamedit serve`: the playground, a page on this machine."""

from importlib.util import find_spec
from typing import Annotated

import typer

from tamedit.errors import UserError


def serve(
    source: Annotated[
        str,
        typer.Argument(
            metavar="RUN_OR_RELEASE",
            help="Folder of a trained model or of a release; or `homes`, the model that ships with the package.",
        ),
    ] = "homes",
    port: Annotated[int, typer.Option("--port", help="Port to listen on.", min=1, max=65535)] = 8000,
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on. Any other than this machine's own needs --token.")
    ] = "127.0.0.1",
    token: Annotated[
        str | None,
        typer.Option("--token", envvar="TAMEDIT_TOKEN", help="Whoever asks must show it: 16 characters or more."),
    ] = None,
    megabytes: Annotated[int, typer.Option("--megabytes", help="Largest upload.", min=1, max=1000)] = 20,
    computations: Annotated[int, typer.Option("--computations", help="Computations at once.", min=1, max=64)] = 1,
    queue: Annotated[
        int, typer.Option("--queue", help="Requests that may wait; more are refused.", min=0, max=1000)
    ] = 8,
) -> None:
    """Play with a model on a page: fill gaps, forecast, generate homes, see what an ε means. Nothing is kept on disk.

    The page needs no network. Stop it with Ctrl-C.
    """
    if find_spec("fastapi") is None or find_spec("uvicorn") is None:
        raise UserError("The playground needs two more packages; install them with pip install 'tamedit[serve]'.")
    from tamedit.serve.listen import serve as listen
    from tamedit.serve.served import load_served
    from tamedit.serve.server_settings import Settings

    settings = Settings(
        host=host,
        port=port,
        token=token,
        upload_bytes=megabytes * 1_000_000,
        computations=computations,
        queue=queue,
    )
    served = load_served(source)

    def ready() -> None:
        typer.echo(f"{served.name}: open {settings.address}")
        if settings.loopback:
            typer.echo("Only this machine can reach it. What you drop there stays in its memory. Stop with Ctrl-C.")
        else:
            typer.echo("The connection is not encrypted: use it in a network that you trust. Stop with Ctrl-C.")

    listen(served, settings, ready)
