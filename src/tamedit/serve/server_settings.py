"""What the server was started with: where it listens, who may ask, and how much."""

import ipaddress
import os
import secrets
from dataclasses import dataclass

from tamedit.errors import UserError

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
LEAST_TOKEN = 16
HTTP = 80


@dataclass(frozen=True)
class Settings:
    """Bounds hold for the whole server, so that no number of clients can exhaust the machine."""

    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None  # whoever asks the API must show it; None: nobody must (loopback alone)
    upload_bytes: int = 20_000_000  # of one request
    computations: int = 1  # at once
    queue: int = 8  # requests that may wait for them
    read_seconds: float = 30.0  # in which a request must have arrived

    def __post_init__(self) -> None:
        if not self.loopback and self.token is None:
            raise UserError(
                f"host={self.host!r} lets other machines ask this model, so `token` is needed; for example "
                f"token='{secrets.token_urlsafe(24)}'."
            )
        if self.token is not None and (
            len(self.token) < LEAST_TOKEN or not self.token.isascii() or not self.token.isprintable()
        ):
            raise UserError(
                f"`token` must have at least {LEAST_TOKEN} characters, letters and digits; choose a longer one."
            )

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def held_bytes(self) -> int:
        """Of all requests together, while they are in memory."""
        return 4 * self.upload_bytes

    @property
    def address(self) -> str:
        """What a user opens. The token stands behind #: a browser sends that part to nobody."""
        name = "127.0.0.1" if self.host in ("0.0.0.0", "::") else f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{name}:{self.port}/" + (f"#token={self.token}" if self.token else "")

    def answers_to(self, host: str) -> bool:
        """Whether a Host header names this server. Any other name is that of a page that was rebound to this address."""
        name, colon, port = host.rpartition(":")
        if not colon or host.endswith("]"):
            name, port = host, str(HTTP)
        if port != str(self.port):
            return False
        own = {*LOOPBACK, self.host.lower(), f"[{self.host.lower()}]"}
        if self.host in ("0.0.0.0", "::"):  # every address of this machine, and its name: the token tells who asks
            own.add(os.uname().nodename.lower() if hasattr(os, "uname") else "")
            try:
                ipaddress.ip_address(name.strip("[]"))
                return True
            except ValueError:
                pass
        return name.lower() in own
