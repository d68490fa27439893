"""Who may ask, and how much they may send: checked before the application sees a request.

Pages of other sites must not reach a server on this machine. Their requests carry an Origin that is not ours; a page that was
rebound to our address carries another Host; a form can send only a few content types. Each is refused. A body is read
whole and counted, one request's and all requests' together, before any of it is parsed.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from tamedit.serve.refusals import Refused, refusal
from tamedit.serve.server_settings import Settings

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
TYPES = ("application/json", "text/csv", "application/octet-stream")
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}


class Doors:
    """ASGI middleware around the application."""

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]], settings: Settings) -> None:
        self.app, self.settings = app, settings
        self.held = 0  # bytes of bodies in memory

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return

        async def with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                given = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", []), *given]}
            await send(message)

        kept = 0
        try:
            self._check(scope)
            body = bytearray()
            async for piece in self._pieces(scope, receive):
                kept += len(piece)
                body += piece
            await self.app(scope, _again(bytes(body), receive), with_headers)
        except Refused as error:
            answer = refusal(error.status, error.code, str(error))
            answer.headers["connection"] = "close"  # what is left of the body is not read
            await answer(scope, receive, with_headers)
        except ConnectionError:
            pass  # the client went before its request was complete
        finally:
            self.held -= kept

    def _check(self, scope: Scope) -> None:
        """Raise for a request that this server does not answer."""
        names = [name for name, _ in scope["headers"]]
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get("host", "")
        if names.count(b"host") != 1 or not self.settings.answers_to(host):
            raise Refused(403, "host", "This server answers only to its own address; open the one that it printed.")
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        if (origin is not None and origin != f"http://{host}") or (
            scope["path"].startswith("/api") and site not in ("none", "same-origin")
        ):
            raise Refused(403, "origin", "Pages of other sites may not use this server.")
        if self.settings.token is not None and scope["path"].startswith("/api"):
            shown = headers.get("authorization", "").removeprefix("Bearer ").encode()
            if not secrets.compare_digest(shown, self.settings.token.encode()):
                raise Refused(
                    401, "token", "Show the token that the server was started with: Authorization: Bearer TOKEN."
                )
        if scope["method"] == "POST" and headers.get("content-type", "").partition(";")[0].strip().lower() not in TYPES:
            raise Refused(415, "type", "Send JSON (Content-Type: application/json) or a table (text/csv).")
        size = headers.get("content-length", "0")
        if not size.isdecimal() or int(size) > self.settings.upload_bytes:
            raise self._too_large()

    async def _pieces(self, scope: Scope, receive: Receive) -> Any:
        """The body, piece by piece, within the time and the sizes that are allowed."""
        size, more = 0, True
        until = asyncio.get_running_loop().time() + self.settings.read_seconds
        while more:
            try:
                async with asyncio.timeout_at(until):
                    message = await receive()
            except TimeoutError as error:
                raise Refused(408, "slow", "The request did not arrive in time; send it again.") from error
            if message["type"] == "http.disconnect":
                raise ConnectionError
            piece, more = message.get("body", b""), message.get("more_body", False)
            size += len(piece)
            if size > self.settings.upload_bytes:
                raise self._too_large()
            if self.held + len(piece) > self.settings.held_bytes:
                raise Refused(503, "busy", "The server holds too many uploads at once; try again in a few seconds.")
            self.held += len(piece)
            yield piece

    def _too_large(self) -> Refused:
        limit = self.settings.upload_bytes / 1e6
        return Refused(
            413,
            "too-large",
            f"This is more than {limit:g} MB; send a part of it, or use tamedit impute for whole files.",
        )


def _again(body: bytes, receive: Receive) -> Receive:
    """The body that was read, once; then what the client does."""
    given = False

    async def replay() -> dict[str, Any]:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
