"""Arguments become flags: the core says window=200 or `window`, and a user of the command line reads --window 200."""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from typing import Any

VALUE = r"""'[^']*'|"[^"]*"|\([^)]*\)|[^\s;,()`]*[^\s;,.()`]"""
BEFORE = r"(?<![^\s(,;:])"  # an argument begins a word; inside a path, a cell or an address it is the user's own text


def flag(name: str) -> str:
    """The flag of an argument."""
    return f"--{name.replace('_', '-')}"


def in_flags(text: str, known: dict[str, str] | None = None) -> str:
    """The text with every argument that is `known` (by default, all options of all commands) written as a flag."""
    known = every_flag() if known is None else known
    names = "|".join(sorted(known, key=len, reverse=True))

    def written(found: re.Match[str]) -> str:
        name, value = found["quoted"] or found["name"], found["value"]
        if value in (None, "True"):
            return known[name]
        plain = value.strip("'\"")
        if value.startswith("("):
            plain = value.strip("()").replace(", ", ",").rstrip(",")
        return f"{known[name]} {plain if value.endswith(('…', ')')) else shlex.quote(plain)}"

    return re.sub(rf"`(?P<quoted>{names})`|{BEFORE}(?P<name>{names})=(?P<value>{VALUE})?", written, text)


@cache
def every_flag() -> dict[str, str]:
    """The flag of every option of every command by the name of its argument. A request for privacy begins with a budget."""
    from typer.main import get_command

    from tamedit.cli.main import app

    def options(command: Any) -> Iterator[tuple[str, str]]:
        for inner in getattr(command, "commands", {}).values():
            yield from options(inner)
        for option in command.params:
            if option.param_type_name == "option":
                yield option.name, option.opts[0]

    return {**dict(options(get_command(app))), "privacy": "--epsilon"}
