"""What a user can get wrong, said in one sentence: what, where, what to do."""

from typing import Any


class UserError(Exception):
    """A mistake that the user can correct.

    The message is one sentence that names what was wrong, where (file, row, column, argument, value) and what to
    do about it. The command line prints it without a traceback and exits with code 2.
    """


def first_complaint(error: Any) -> str:
    """pydantic's list of complaints as one sentence about the first."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"]) or error.title
    return f"{where}={first['input']!r} is not possible: {first['msg']}; choose another value."
