"""PRIVACY.md of a private run: what is guaranteed, in plain words, for every unit, and what may leave the folder."""

from collections.abc import Iterable
from typing import Any

from tamedit.formatting import NOTHING
from tamedit.formatting import epsilon as shown
from tamedit.privacy.entries import FILE_NAME
from tamedit.privacy.statement import UNIT_WORDS
from tamedit.runs.artifact import SPECIFICATION, WEIGHTS
from tamedit.runs.folder import BOUNDS, CHECKPOINT, NOT_PRIVATE, READING, RUN, SCALING

PRIVACY = "PRIVACY.md"
MAY_LEAVE = {
    WEIGHTS: "the weights",
    SPECIFICATION: "what the model is, and its statement",
    FILE_NAME: "what was spent, line by line, so that others can compute ε again",
    PRIVACY: "this page",
}
MUST_STAY = {
    NOT_PRIVATE: "losses, gradient norms and reports: measured without noise, not covered",
    CHECKPOINT: "the state of training: covered, but of no use to others",
    f"{RUN}, {READING}": "settings, with names of your files and the extent of your data",
    f"{SCALING}, {BOUNDS}": "if they are there: released with noise and covered; the model contains what it needs of them",
}


def privacy_page(units: dict[str, dict[str, Any]], unit: str, words: str) -> str:
    """The page: the statement for every unit (`statement.side_by_side`), that of the run's own unit first, and in `words`."""
    own = units[unit]
    statement = "\n".join(f"- {line}" for line in own["statement"].splitlines())
    table = _table(
        ("protected unit", "examples that it touches", f"ε at δ = {own['delta']:g}", "protection", "why"),
        (_row(unit, one) for unit, one in units.items()),
    )
    return f"""# What this model says about its training data

{statement}

{words}

## The same training, for every unit

{table}

A guarantee for a unit says nothing about larger units: a week of a home is not the home.

## What may leave this folder

{_list(MAY_LEAVE)}

What stays:

{_list(MUST_STAY)}

Readings that someone gives to the model later are not covered: its answers depend on them. `tamedit account` derives all of these
numbers again from the ledger.
"""


def _row(unit: str, one: dict) -> tuple[str, ...]:
    name = UNIT_WORDS[unit].split(" (")[0]
    if one["epsilon"] is None:
        return name, NOTHING, NOTHING, NOTHING, one["reason"]
    return name, f"{one['contributions']:,}", shown(one["epsilon"]["headline"]), one["protection"], one["reason"]


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = (heads, ("---",) * len(heads), *rows)
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines)


def _list(files: dict[str, str]) -> str:
    return "\n".join(f"- `{name}`: {what}" for name, what in files.items())
