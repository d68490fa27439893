"""A user of the page reads what to do in the file, never the name of an argument."""

import inspect
import re

import pandas as pd
import pytest

from tamedit.data.reader import read
from tamedit.errors import UserError
from tamedit.serve.page_words import REMEDIES, for_page

HOURS = pd.date_range("2024-03-01", periods=48, freq="h")
TABLES = {
    "no stamps": pd.DataFrame({"a": [0.5] * 48}),
    "words": pd.DataFrame({"time": HOURS, "kwh": ["much"] * 2 + ["1"] * 46}),
    "jitter": pd.DataFrame({"time": HOURS + pd.to_timedelta([7, -9, 3, 0] * 12, unit="s"), "kwh": 1.5}),
    "off the grid": pd.DataFrame({"time": [*HOURS[:-1], HOURS[-1] + pd.Timedelta("29min")], "kwh": 1.5}),
    "many columns": pd.DataFrame({"time": HOURS, **{f"home {number}": range(48) for number in range(12)}}),
    "no reading": pd.DataFrame({"time": HOURS, "kwh": [None] * 48}, dtype=None).astype({"kwh": float}),
}
ARGUMENTS = [name for name in inspect.signature(read).parameters if name not in ("source", "value")]


@pytest.mark.parametrize("name", TABLES)
def test_a_mistake_names_no_argument(name: str) -> None:
    with pytest.raises(UserError) as caught:
        read(TABLES[name])
    assert re.search(rf"\b({'|'.join(ARGUMENTS)})=", str(caught.value)), (
        "the case is one where the core names an argument"
    )
    said = for_page(str(caught.value))
    assert not re.search(rf"\b({'|'.join(ARGUMENTS)})=", said)
    assert said.partition(";")[0] == str(caught.value).partition(";")[0], "the problem stays"


def test_notes_and_other_sentences() -> None:
    assert set(REMEDIES) == set(ARGUMENTS), "every argument of reading has words for the page"
    note = read(pd.DataFrame({"time": HOURS, "a": range(48), "b": range(48)})).notes[2]
    assert "columns=" in note
    assert "one row per meter and time" in for_page(note)
    assert for_page("Nothing is missing; hide some rows first.") == "Nothing is missing; hide some rows first."
