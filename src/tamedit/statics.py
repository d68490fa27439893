"""Static attributes of meters: words that are known of a meter as a whole, such as its tariff or its heating.

An attribute has categories, which are stated. Each becomes a column of 0 and 1, named `tariff=night`. A meter has a 1 in at most
one column of an attribute, and 0 in all of them where its category is not known:

    s ∈ {0, 1}^S,   ‖s‖² ≤ A          A attributes, S categories in all
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from jaxtyping import Float

from tamedit.errors import UserError

Static: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]  # attributes, and the categories of each
Stated: TypeAlias = tuple[tuple[str, tuple[str, ...] | None], ...]  # None: those that are found in the table
Given: TypeAlias = str | Sequence[str] | Mapping[str, object]  # as a user writes them
MOST = 64  # categories, of all attributes together


def plain(value: object) -> str:
    """A category as text, the same for 1, 1.0, "1" and "01", and for true and True: however its column was read."""
    text = str(value).strip()
    if text.lower() in ("true", "false"):
        return text.capitalize()
    try:
        number = float(text)
    except ValueError:
        return text
    if not math.isfinite(number):
        return text
    return str(int(number)) if number.is_integer() and abs(number) < 1e12 else f"{number:.12g}"


def stated(given: Given) -> Stated:
    """What a user wrote: "tariff=flat|night,heating", a list of such texts, or {"tariff": ("flat", "night")}; checked."""
    pairs: list[tuple[str, object]]
    if isinstance(given, Mapping):
        pairs = [(str(name).strip(), categories) for name, categories in given.items()]
    else:
        texts = given.split(",") if isinstance(given, str) else [str(one) for one in given]
        parts = [text.partition("=") for text in texts]
        pairs = [(name.strip(), rest.split("|") if equals else None) for name, equals, rest in parts]
    found = tuple((name, _categories(name, categories)) for name, categories in pairs)
    names = [name for name, _ in found]
    if not names or "" in names:
        raise UserError(f"static={given!r} is no list of attributes; write it as 'tariff=flat|night,heating=gas|none'.")
    for name in names:
        if names.count(name) > 1 or "=" in name:
            raise UserError(f"The attribute {name!r} of `static` must be named once, and its name cannot contain '='.")
    check_number(sum(len(categories or ()) for _, categories in found))
    return found


def _categories(name: str, given: object) -> tuple[str, ...] | None:
    if given is None:
        return None
    several = given if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    found = tuple(str(one).strip() for one in several)
    if not found or "" in found or len({plain(one) for one in found}) < len(found):
        raise UserError(
            f"The attribute {name!r} of `static` needs categories that differ, such as {name}=flat|night, and has {list(found)}."
        )
    return found


def check_number(categories: int) -> None:
    """Refuse more categories than there may be."""
    if categories > MOST:
        raise UserError(
            f"`static` has {categories} categories, and {MOST} is the most; leave out or merge some of them."
        )


def as_mapping(attributes: Stated) -> dict[str, list[str] | None]:
    """The same for JSON."""
    return {name: None if categories is None else list(categories) for name, categories in attributes}


def in_text(given: Given) -> str:
    """The same as one text, for a command."""
    parts = stated(given)
    return ",".join(name if categories is None else f"{name}={'|'.join(categories)}" for name, categories in parts)


def listed(static: Static) -> str:
    """For a sentence: tariff (flat, night) and heating (gas)."""
    return " and ".join(f"{name} ({', '.join(categories)})" for name, categories in static)


def columns_of(static: Static) -> tuple[str, ...]:
    """The names of the columns of 0 and 1."""
    return tuple(f"{name}={category}" for name, categories in static for category in categories)


def blocks_of(static: Static) -> list[slice]:
    """Which of these columns belong to each attribute."""
    ends = np.cumsum([0, *(len(categories) for _, categories in static)]).tolist()
    return [slice(begin, end) for begin, end in pairwise(ends)]


def words_of(static: Static, marks: Float[np.ndarray, "H S"]) -> dict[str, list[str | None]]:
    """The category of each attribute, home by home; None where it is not known."""
    found: dict[str, list[str | None]] = {}
    for (name, categories), block in zip(static, blocks_of(static), strict=True):
        own = marks[:, block] > 0
        found[name] = [categories[int(row.argmax())] if row.any() else None for row in own]
    return found


def chosen(static: Static, given: Given) -> tuple[tuple[str, str], ...]:
    """The category that was asked for, of some attributes: "tariff=night" or {"tariff": "night"}; checked."""
    known, found = dict(static), []
    for name, categories in stated(given):
        if name not in known:
            raise UserError(f"This model has no attribute {name!r}; it has {listed(static)}.")
        if categories is None or len(categories) != 1:
            raise UserError(f"Ask for one category of {name!r}: {name}={known[name][0]}, or leave it out.")
        matching = [one for one in known[name] if plain(one) == plain(categories[0])]
        if not matching:
            raise UserError(f"{name!r} has no category {categories[0]!r}; this model knows {', '.join(known[name])}.")
        found.append((name, matching[0]))
    return tuple(found)
