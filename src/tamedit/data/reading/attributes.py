"""Static attributes of the meters of a table, from columns that say the same in every row of a meter.

An empty cell says nothing. Where all cells of a meter are empty its attribute is not known. Two different categories in one
meter, or a value that was not stated, are refused in one sentence. Such a sentence would depend on what the table says of people,
so in a private run ("lenient") nothing is refused: a value that was not stated counts as empty, and a meter has the category of
its first row, in the order of time, that states one. So the attribute of a meter depends on the rows of this meter alone.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float, Int64

from tamedit.data.reading import grid
from tamedit.data.reading.tables import Table, row_at
from tamedit.errors import UserError
from tamedit.statics import Given, Stated, Static, blocks_of, check_number, plain, stated

_NOTHING = "na nan n/a #n/a null none nil <na> nat ? - --"
NOTHING = frozenset(("", *_NOTHING.split()))  # in small letters: an empty cell, unless it is stated as a category


@dataclass(frozen=True)
class Attributes:
    """What to read, and whether a mistake in the rows is to be passed over."""

    stated: Stated = ()
    lenient: bool = False

    @classmethod
    def of(cls, given: "Given | Attributes | None") -> "Attributes":
        if given is None or isinstance(given, Attributes):
            return given or cls()
        return cls(stated(given))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.stated)

    @property
    def guessed(self) -> bool:
        """Whether some categories are those that are found in the table."""
        return any(categories is None for _, categories in self.stated)


def refuse_guessed(names: tuple[str, ...]) -> None:
    """In a private run the categories must be stated."""
    raise UserError(
        f"Which categories of {' and '.join(map(repr, names))} there are is a fact about the people in the table; state them "
        f"for a private run: static='{names[0]}=flat|night'."
    )


def read_attributes(
    table: Table, wanted: Attributes, readings: grid.Readings, missing: tuple[float | str, ...] = ()
) -> tuple[Static, Float[np.ndarray, "M S"]]:
    """The attributes with all their categories, and 0 or 1 for each meter and category."""
    found: list[tuple[str, tuple[str, ...]]] = []
    numbers = []
    for name, said in wanted.stated:
        codes, words = _words(table, name, said, missing)
        categories = _found(table, name, words) if said is None else said
        places = {plain(category): place for place, category in enumerate(categories)}
        place_of = np.array([-1 if word is None else places.get(word, -1) for word in words] + [-1])
        if not wanted.lenient:
            _refuse_unstated(table, name, categories, codes, words, place_of)
        ordered = place_of[codes][readings.order]
        numbers.append(_of_meters(name, categories, ordered, readings, wanted.lenient))
        found.append((name, categories))
    static = tuple(found)
    check_number(sum(len(categories) for _, categories in static))
    marks = np.zeros((len(readings.meters), sum(len(categories) for _, categories in static)))
    for block, own in zip(blocks_of(static), numbers, strict=True):
        marks[np.flatnonzero(own >= 0), block.start + own[own >= 0]] = 1.0
    return static, marks


def _words(
    table: Table, name: str, categories: tuple[str, ...] | None, missing: tuple[float | str, ...]
) -> tuple[Int64[np.ndarray, " n"], list[str | None]]:
    """Which of some words stands in each row (−1: none); a word is None where it stands for nothing."""
    if categories is not None:  # as written: NA may be a category, and how a cell is read must not hang on other rows
        table.keep_names(name)
    known = {plain(one) for one in categories or ()}
    nothing = {plain(one if isinstance(one, str) else f"{one:.15g}") for one in missing}
    codes, values = pd.factorize(table.frame[name].astype(object))
    words = [plain(value) for value in values]
    gone = [word not in known and (word.lower() in NOTHING or word in nothing) for word in words]
    return codes, [None if empty else word for word, empty in zip(words, gone, strict=True)]


def _found(table: Table, name: str, words: list[str | None]) -> tuple[str, ...]:
    """The categories that are in the table."""
    found = tuple(sorted({word for word in words if word is not None}))
    if not found:
        raise UserError(f"Column {name!r} of {table.where} has no value; leave it out of `static`.")
    check_number(len(found))
    table.notes.append(f"The categories of {name!r} were taken to be {', '.join(map(repr, found))}.")
    return found


def _refuse_unstated(
    table: Table,
    name: str,
    categories: tuple[str, ...],
    codes: Int64[np.ndarray, " n"],
    words: list[str | None],
    place_of: Int64[np.ndarray, " w"],
) -> None:
    for number, word in enumerate(words):
        if word is not None and place_of[number] < 0:
            row = row_at(table.frame.index[int(np.argmax(codes == number))], table.where)
            raise UserError(
                f"Row {row} has {word!r} in column {name!r}, and `static` states {', '.join(map(repr, categories))}; state it, "
                "or correct the row."
            )


def _of_meters(
    name: str, categories: tuple[str, ...], places: Int64[np.ndarray, " n"], readings: grid.Readings, lenient: bool
) -> Int64[np.ndarray, " M"]:
    """The number of each meter's category, by its first row that states one; −1 where none does."""
    own = np.full(len(readings.meters), -1, dtype=np.int64)
    rows = np.flatnonzero(places >= 0)
    meters, first = np.unique(readings.codes[rows], return_index=True)
    own[meters] = places[rows][first]
    other = np.flatnonzero(places[rows] != own[readings.codes[rows]])
    if len(other) and not lenient:
        meter = int(readings.codes[rows[other[0]]])
        one, two = categories[own[meter]], categories[places[rows[other[0]]]]
        of_meter = f"Meter {readings.meters[meter]!r}" if readings.meters[meter] else "The meter"
        raise UserError(
            f"{of_meter} has both {one!r} and {two!r} in column {name!r} of {readings.where}, but an attribute in `static` is "
            "constant; correct it, or read the column with `covariates`."
        )
    return own
