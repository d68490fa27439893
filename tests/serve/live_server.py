"""A server on a free port of this machine, in a thread: real sockets."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn

from tamedit.serve.application import make_application
from tamedit.serve.doors import Doors
from tamedit.serve.served import Served
from tamedit.serve.server_settings import Settings


@dataclass(frozen=True)
class Live:
    """A running server."""

    port: int
    doors: Doors
    served: Served

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any, dict[str, str]]:
        """Status, content (JSON where it is) and headers."""
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        given = {"Content-Type": "application/json", **(headers or {})}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, given)
            response = connection.getresponse()
            text = response.read().decode()
        finally:
            connection.close()
        kind = response.getheader("content-type", "")
        names = {name.lower(): value for name, value in response.getheaders()}
        return response.status, json.loads(text) if kind.startswith("application/json") else text, names

    def post(self, path: str, message: Any) -> Any:
        status, found, _ = self.ask("POST", path, message)
        assert status == 200, found
        return found

    def health(self) -> dict[str, int]:
        return self.ask("GET", "/api/health")[1]

    def emptied(self) -> None:
        """Until it holds nothing of any request; that is a moment after the last answer."""
        until = time.monotonic() + 10
        while self.doors.held:
            assert time.monotonic() < until, self.doors.held
            time.sleep(0.01)

    def wait(self, **wanted: int) -> dict[str, int]:
        """The health of the server once it is so."""
        until = time.monotonic() + 30
        while not wanted.items() <= (found := self.health()).items():
            assert time.monotonic() < until, found
            time.sleep(0.05)
        return found


@contextmanager
def listening(served: Served, **settings: Any) -> Iterator[Live]:
    with socket.socket() as where:
        where.bind(("127.0.0.1", 0))
        port = where.getsockname()[1]
        doors = make_application(served, Settings(port=port, **settings))
        server = uvicorn.Server(uvicorn.Config(doors, log_level="error", access_log=False, lifespan="on"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [where]}, daemon=True)
        thread.start()
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield Live(port, doors, served)
        server.should_exit = True
        thread.join(timeout=20)
        assert not thread.is_alive()
