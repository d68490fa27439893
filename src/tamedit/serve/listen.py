"""Runs the server until it is stopped."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress

import torch
import uvicorn

from tamedit.errors import UserError
from tamedit.serve.application import make_application
from tamedit.serve.served import Served
from tamedit.serve.server_settings import Settings

CONNECTIONS = 256


def listening(settings: Settings) -> socket.socket:
    """The socket, or one sentence why there is none."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((settings.host, settings.port))
    except (OSError, OverflowError) as error:
        found.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(
            f"Cannot listen at {settings.host} on port={settings.port} ({reason}); choose another `port`."
        ) from error
    return found


def serve(served: Served, settings: Settings, ready: Callable[[], None], threads: int | None = None) -> None:
    """Answer requests until Ctrl-C. Nothing is logged but mistakes of the server itself."""
    with listening(settings) as where:
        if threads:
            torch.set_num_threads(threads)
        config = uvicorn.Config(
            make_application(served, settings),
            log_level="error",
            access_log=False,
            server_header=False,
            limit_concurrency=CONNECTIONS,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=3,
            lifespan="on",
            ws="none",
        )
        server = uvicorn.Server(config)
        ready()
        with suppress(KeyboardInterrupt):
            asyncio.run(server.serve(sockets=[where]))
