"""PRIVACY.md of a private run: what is guaranteed, in plain words, for every unit, and what may leave the folder."""

from collections.abc import Iterable, Mapping
from typing import Any

from tamedit.formatting import NOTHING
from tamedit.formatting import epsilon as shown
from tamedit.privacy.entries import FILE_NAME, Record
from tamedit.privacy.statement import UNIT_WORDS
from tamedit.runs.artifact import SPECIFICATION, WEIGHTS
from tamedit.runs.folder import BOUNDS, CHECKPOINT, NOT_PRIVATE, PEOPLE, READING, RUN, SCALING

PRIVACY = "PRIVACY.md"
MODEL = {WEIGHTS: "the weights", SPECIFICATION: "what the model is, and its statement"}
MAY_LEAVE = {
    FILE_NAME: "what was spent, line by line, so that others can compute ε again",
    PRIVACY: "this page",
}
MUST_STAY = {
    NOT_PRIVATE: "losses, gradient norms and reports: measured without noise, not covered",
    CHECKPOINT: "the state of training: covered, but of no use to others",
    f"{RUN}, {READING}": "settings, with names of your files and the extent of your data",
    f"{SCALING}, {BOUNDS}, {PEOPLE}": "if they are there: released with noise and covered; the model has what it needs",
}


def privacy_page(
    units: dict[str, dict[str, Any]],
    unit: str,
    words: str,
    record: Record,
    model: Mapping[str, str] = MODEL,
) -> str:
    """The page: the statement for every unit (`statement.side_by_side`), that of the run's own unit first, and in `words`.

    `record`: the run's ledger, which says what the budget paid for. `model`: the files that the model is.
    """
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

## What the budget paid for

{_table(("released with noise", "times", "share drawn", "noise σ"), _paid(record))}

## What may leave this folder

{_list({**model, **MAY_LEAVE})}

What stays:

{_list(MUST_STAY)}

Readings that someone gives to the model later are not covered: its answers depend on them. `tamedit account` derives all of these
numbers again from the ledger.
"""


def _paid(record: Record) -> Iterable[tuple[str, ...]]:
    """Every purpose of the ledger, in its order."""
    purposes = dict.fromkeys(what for segment in record.segments for _, what in segment.charges)
    for what in purposes:
        for one in record.charged(what):
            yield what, f"{one.count:,}", f"{one.sampling_rate:.3g}", f"{one.noise_multiplier:.3g}"


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
