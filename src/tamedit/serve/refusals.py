"""Every refusal has one form: {"error": one sentence, "code": a word}."""

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from tamedit.errors import UserError
from tamedit.serve.page_words import for_page

CLIENT_GONE = 499
BY_STATUS = {
    404: ("not-found", "There is nothing at this address; GET /api/docs lists what there is."),
    405: ("method", "This address is asked in another way; GET /api/docs says how."),
    400: ("malformed", "The request is not readable; send JSON as /api/docs describes it."),
    422: ("malformed", "The request is not readable; send JSON as /api/docs describes it."),
}


class Refused(Exception):
    """A request that is not answered, and why."""

    def __init__(self, status: int, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.code = status, code


def refusal(status: int, code: str, sentence: str) -> JSONResponse:
    """The answer that says so."""
    return JSONResponse({"error": sentence, "code": code}, status, {"Retry-After": "5"} if status == 503 else None)


def add_refusals(app: FastAPI) -> None:
    """Everything that can go wrong in the application, in that form."""
    from tamedit.serve.workload import Cancelled

    @app.exception_handler(Refused)
    async def refused(request: Request, error: Refused) -> Response:
        return refusal(error.status, error.code, str(error))

    @app.exception_handler(UserError)
    async def mistaken(request: Request, error: UserError) -> Response:
        return refusal(422, "not-possible", for_page(str(error)))

    @app.exception_handler(RequestValidationError)
    async def malformed(request: Request, error: RequestValidationError) -> Response:
        return refusal(422, "malformed", _complaint(error))

    @app.exception_handler(HTTPException)
    async def unknown(request: Request, error: HTTPException) -> Response:
        code, sentence = BY_STATUS.get(error.status_code, ("refused", "The request was refused; see /api/docs."))
        return refusal(error.status_code, code, sentence)

    @app.exception_handler(Cancelled)
    async def gone(request: Request, error: Cancelled) -> Response:
        return refusal(CLIENT_GONE, "cancelled", "The request was cancelled.")

    @app.exception_handler(MemoryError)
    async def too_large(request: Request, error: MemoryError) -> Response:
        return refusal(413, "too-large", "This needs more memory than there is; ask for fewer samples or steps.")

    @app.exception_handler(Exception)
    async def broken(request: Request, error: Exception) -> Response:
        return refusal(500, "internal", "The server made a mistake; it has printed what happened where it was started.")


def _complaint(error: RequestValidationError) -> str:
    """The first complaint as one sentence. What was sent is not repeated at length."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part not in ("body", "query"))
    message = first["msg"].removeprefix("Value error, ").replace("Input should", "it should").replace("\n", " ")
    if first["type"] == "json_invalid" or (not where and first["type"] != "value_error"):
        return BY_STATUS[422][1]
    if first["type"] == "missing":
        return f"`{where}` is missing; GET /api/docs says what to send."
    if first["type"] == "extra_forbidden":
        return f"`{where}` is unknown; leave it out."
    given = repr(first.get("input"))
    shown = f"{where}={given}" if len(given) <= 40 and where else f"`{where}`" if where else "The request"
    return f"{shown} is not possible: {message}."
