"""What a user can get wrong, said in one sentence: what, where, what to do.

Sentences speak of arguments: window=200, or `window` in backquotes. The command line alone turns them into flags.
"""

from typing import Any


class UserError(Exception):
    """A mistake that the user can correct.

    The message is one sentence that names what was wrong, where (file, row, column, argument, value) and what to
    do about it. The command line prints it without a traceback and exits with code 2.
    """


class Resumable(UserError):
    """A run stopped at something outside of it, such as a full disk: it keeps its folder, and can be continued."""


def first_complaint(error: Any) -> str:
    """pydantic's list of complaints as one sentence about the first."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "literal_error":
        return f"{where}={first['input']!r} is unknown; choose {first['ctx']['expected'].replace(chr(39), '')}."
    if first["type"] == "extra_forbidden":
        return f"{where}={first['input']!r} is unknown; leave it out."
    message = first["msg"].removeprefix("Value error, ").replace("Input should", "it should")
    if not where:
        return f"{error.title}: {message}."
    return f"{where}={first['input']!r} is not possible: {message}."
