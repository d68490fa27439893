"""Numbers as people read them."""

import math
from typing import Any


def significant(value: float | None, digits: int = 3) -> str:
    """1,234, 0.123, 1.2e-07; a dash for what does not exist."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if not -4 <= size < 9:
        return f"{value:.{digits - 1}e}"
    return f"{value:,.{max(digits - 1 - size, 0)}f}"


def percent(share: float | None, digits: int = 1) -> str:
    """A share without its sign: the column's head names it."""
    return "–" if share is None or not math.isfinite(share) else f"{100 * share:.{digits}f}"


def whole_percent(share: float) -> str:
    """90 %."""
    return f"{100 * share:.0f} %"


def counted(number: int, thing: str) -> str:
    """1 meter, 2 meters."""
    return f"{number:,} {thing}{'s' * (number != 1)}"


def deep(tree: Any, *keys: str) -> Any:
    """A value deep in a tree of dictionaries; None where a level is missing."""
    for key in keys:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree
