"""Numbers and tables as people read them: the one place that formats a number or prints a table."""

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from jinja2 import Environment

NOTHING = "–"  # where there is no number
NAME = 24  # letters of a name (the first cell of a row) that are not broken


def significant(value: float | None, digits: int = 3) -> str:
    """1,234, 0.123, 1.2e-07; a dash for what does not exist."""
    if value is None or not math.isfinite(value):
        return NOTHING
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if not -4 <= size < 9:
        return f"{value:.{digits - 1}e}"
    return f"{value:,.{max(digits - 1 - size, 0)}f}"


def percent(share: float | None, digits: int = 1) -> str:
    """A share without its sign: the column's head names it."""
    return NOTHING if share is None or not math.isfinite(share) else f"{100 * share:.{digits}f}"


def whole_percent(share: float) -> str:
    """90 %."""
    return f"{100 * share:.0f} %"


def counted(number: int, thing: str) -> str:
    """1 meter, 2 meters."""
    return f"{number:,} {thing}{'s' * (number != 1)}"


def epsilon(value: float | None) -> str:
    """ε for reading, rounded *up* to three significant digits: 1.84, 54,500, 1.18e+07."""
    if value is None or not math.isfinite(value):
        return "∞"
    if value <= 0.0:
        return "0"
    digits = 10.0 ** (math.floor(math.log10(value)) - 2)
    rounded = math.ceil(value / digits - 1e-9) * digits
    return f"{rounded:,.0f}" if 1e3 <= rounded < 1e6 else f"{rounded:.3g}"


def score(value: float | None, half: float | None = None, *, as_percent: bool = False) -> str:
    """A metric, 0.1234, 1.2e-05 or 12.3%; with half of its interval, 0.1234 ± 0.0011 or 12.3 ± 0.4 %."""
    if value is None:
        return NOTHING
    if half is None:
        return f"{value:.1%}" if as_percent else _decimals(value, 1e-3)
    if as_percent:
        return f"{100 * value:.1f} ± {100 * half:.1f} %"
    return f"{_decimals(value, 1e-3)} ± {_decimals(half, 1e-4)}"


def _decimals(value: float, least: float) -> str:
    """Four decimals, or powers of ten for what is smaller than `least`."""
    return f"{value:.1e}" if 0 < abs(value) < least else f"{value:.4f}"


def deep(tree: Any, *keys: str) -> Any:
    """A value deep in a tree of dictionaries; None where a level is missing."""
    for key in keys:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree


def best(text: str) -> Any:
    """A cell of a table that stands out."""
    from rich.text import Text

    return Text(text, style="bold")


def print_table(
    title: str,
    heads: Sequence[str],
    rows: Iterable[Sequence[Any]],
    words: Iterable[int] | None = (0,),
    nothing: str = "there is no such number",
) -> None:
    """A table on the terminal. Columns of `words` are left-aligned, others right-aligned. On a narrow terminal, cells are folded.

    A number is shown with three significant digits, a whole number as it is, None as a dash; a text is taken as it stands.
    A table with a dash says below what it means, `nothing`. Without `words` a column is one of words if it holds text
    alone.
    """
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    cells = list(rows)
    if words is None:
        words = [at for at in range(len(heads)) if all(isinstance(row[at], str) for row in cells)]
    made, left, console = (
        Table(title=escape(title), title_justify="left", show_header=any(heads)),
        set(words),
        Console(),
    )
    texts = [[head, *(_plain(row[at]) for row in cells)] for at, head in enumerate(heads)]
    for at, (head, width) in enumerate(zip(heads, _widths(texts, console.width), strict=True)):
        longest = max(map(len, texts[at][1:]), default=0)
        whole = min(longest, NAME) if at == 0 and width is None else None
        justify: Literal["left", "right"] = "left" if at in left else "right"
        # Without no_wrap rich narrows a name first, and then finds it wider than the terminal allows.
        fit: dict[str, Any] = {"width": width} if width else {"min_width": whole, "no_wrap": longest == whole}
        made.add_column(escape(head), justify=justify, overflow="fold", **fit)
    for row in cells:
        made.add_row(*(one if isinstance(one, Text) else Text(_plain(one)) for one in row))
    console.print(made)
    if any(_plain(one) == NOTHING for row in cells for one in row):
        print(f"{NOTHING}: {nothing}.")


def _widths(texts: Sequence[Sequence[str]], console: int) -> list[int | None]:
    """How wide each column is, without its frame, so that no name in the first and no word is broken; None if they do not fit."""
    wanted = [max(map(len, column)) for column in texts]
    widths = [max((len(word) for text in column for word in text.split()), default=0) for column in texts]
    widths[0] = min(NAME, wanted[0])
    spare = console - 3 * len(texts) - 1 - sum(widths)
    if spare < 0:
        return [None] * len(texts)
    for at, most in (*list(enumerate(wanted))[1:], (0, wanted[0])):
        more = max(0, min(spare, most - widths[at]))
        widths[at], spare = widths[at] + more, spare - more
    return list(widths)


def _plain(value: Any) -> str:
    if value is None or isinstance(value, float):
        return significant(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def templates() -> "Environment":
    """The pages' templates (report and cards): everything is escaped, and an unknown name is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("tamedit.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
