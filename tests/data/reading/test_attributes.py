"""Static attributes of a table: columns of 0 and 1 that say the same in every row of a meter, or one sentence."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamedit as tame
from tamedit.data.loading import load_split
from tamedit.data.series import Series
from tamedit.data.study import Study
from tamedit.errors import UserError
from tamedit.statics import as_mapping, in_text, plain, stated, words_of

TARIFF = {"tariff": ("flat", "night")}
STUDY = Study.stating(("2024-01-01", "2024-02-01"))


def table(tariffs: Any = ("flat", "night", None), hours: int = 30, **columns: Any) -> pd.DataFrame:
    """A meter for each tariff, and other columns with a value for each meter."""
    stamps = pd.date_range("2024-01-03", periods=hours, freq="h")
    frames = []
    for number, tariff in enumerate(tariffs):
        frame = pd.DataFrame({"meter": f"m{number}", "time": stamps, "kwh": np.arange(hours) % 5 + 1.0})
        frame["tariff"] = pd.Series([tariff] * hours, dtype=object)
        for name, values in columns.items():
            frame[name] = pd.Series([values[number]] * hours, dtype=object)
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def marks(series: Series) -> list[list[float]]:
    return series.marks().tolist()


def test_each_category_is_a_column_that_is_the_same_in_all_rows_of_a_meter() -> None:
    frame = table(price=(1.0, 2.0, 3.0), heating=("gas", "oil", "gas"))
    holed = frame.drop(index=[4, 5, 40]).sample(frac=1, random_state=1)  # absent rows, in no order
    series = tame.read(
        holed, covariates=["price"], static={**TARIFF, "heating": ["oil", "gas"]}, missing_covariates="hold"
    )
    assert series.targets == ("kwh",)
    assert series.covariate_names == ("price", "tariff=flat", "tariff=night", "heating=oil", "heating=gas")
    assert series.other_covariates == ("price",)
    assert series.static == (("tariff", ("flat", "night")), ("heating", ("oil", "gas")))
    wanted = {"m0": [1, 0, 0, 1], "m1": [0, 1, 1, 0], "m2": [0, 0, 0, 1]}  # m2 says nothing of its tariff
    assert len(series) == 90
    for meter, name in enumerate(series.meters):
        rows = series.covariates[series.offsets[meter] : series.offsets[meter + 1], 1:]
        assert (rows == wanted[name]).all(), "absent rows as well"


def test_all_ways_of_writing_mean_the_same(tmp_path: Path) -> None:
    table().to_csv(tmp_path / "meters.csv", index=False)
    ways: list[Any] = [
        TARIFF,
        {"tariff": ["flat", "night"]},
        "tariff=flat|night",
        " tariff = flat | night ",
        ["tariff=flat|night"],
    ]
    for source in (table(), tmp_path / "meters.csv"):
        for way in ways:
            assert marks(tame.read(source, static=way)) == [[1, 0], [0, 1], [0, 0]]
    assert stated("a=x|y,b") == (("a", ("x", "y")), ("b", None))
    assert in_text({"a": ["x", "heat pump"], "b": None}) == "a=x|heat pump,b"
    assert stated(as_mapping(stated("a=x|y,b"))) == stated("a=x|y,b")
    assert stated({"heat": 1}) == (("heat", ("1",)),)


def test_names_alone_take_the_categories_of_the_table() -> None:
    series = tame.read(table(("night", None, "flat")), static=["tariff"])
    assert series.static == (("tariff", ("flat", "night")),)
    assert marks(series) == [[0, 1], [0, 0], [1, 0]]
    assert any("'flat', 'night'" in note for note in series.notes)
    assert words_of(series.static, series.marks()) == {"tariff": ["night", None, "flat"]}


@pytest.mark.parametrize("kind", ["whole", "holed", "text", "csv", "holed csv"])
def test_numbers_and_truths_are_categories_by_their_text(kind: str, tmp_path: Path) -> None:
    """1, 1.0, "1" and "01" are one category, and so are true, TRUE and True: whatever other rows make of the column."""
    holed = kind.startswith("holed")
    codes = [0, 1, None if holed else 1]
    frame = table(["x"] * 3, code=[str(one) for one in codes] if kind == "text" else codes, truth=[True, False, True])
    frame["code"] = frame["code"] if kind == "text" else frame["code"].astype(float if holed else int)
    source: Any = frame
    if kind.endswith("csv"):
        source = tmp_path / "meters.csv"
        frame.assign(truth=frame["truth"].map({True: "TRUE", False: "false"})).to_csv(source, index=False)
    series = tame.read(source, targets=["kwh"], static={"code": (0, 1, 2), "truth": ("true", "false")})
    assert marks(series) == [[1, 0, 0, 1, 0], [0, 1, 0, 0, 1], [0, 0, 0, 1, 0] if holed else [0, 1, 0, 1, 0]]
    assert [plain(one) for one in (1, 1.0, "01", " 1 ", "1e0")] == ["1"] * 5


def test_na_is_a_category_if_it_is_stated(tmp_path: Path) -> None:
    path = tmp_path / "meters.csv"
    table(("none", "gas", "NA")).to_csv(path, index=False)
    assert marks(tame.read(path, static={"tariff": ("none", "gas")})) == [[1, 0], [0, 1], [0, 0]]
    assert marks(tame.read(path, static={"tariff": ("gas", "NA")})) == [[0, 0], [1, 0], [0, 1]]
    assert marks(tame.read(table((-9, 1, 2)), targets=["kwh"], static={"tariff": (1, 2)}, missing=-9))[0] == [0, 0]


def test_what_is_no_attribute_is_refused_in_one_sentence() -> None:
    changed = table()
    changed.loc[35, "tariff"] = "flat"
    for frame, reading, sentence in (
        (changed, {"static": TARIFF}, r"Meter 'm1' has both 'night' and 'flat' in column 'tariff' of the DataFrame"),
        (changed, {"static": "tariff"}, r"Meter 'm1' has both 'night' and 'flat'"),
        (
            table(),
            {"static": "tariff=flat|dual"},
            r"has 'night' in column 'tariff', and `static` states 'flat', 'dual'",
        ),
        (table(), {"static": "heating=gas"}, "no column 'heating'"),
        (table([None, "", "?"]), {"static": "tariff"}, "has no value"),
        (table(), {"static": TARIFF, "id": "tariff"}, "named twice"),
        (table(), {"static": TARIFF, "targets": ["kwh", "tariff"]}, "named twice"),
        (table(), {"static": {"tariff": [str(one) for one in range(65)]}}, "65 categories, and 64 is the most"),
        (table([str(one) for one in range(65)], 2), {"static": "tariff", "targets": "kwh"}, "65 categories"),
        (table(), {"static": "tariff=flat|flat"}, "categories that differ"),
        (table(), {"static": "tariff=1|01"}, "categories that differ"),
        (table(), {"static": "tariff="}, "categories that differ"),
        (table(), {"static": ""}, "no list of attributes"),
        (table(), {"static": "tariff=flat,tariff=night"}, "named once"),
        (table(), {"static": TARIFF, "columns": "meters"}, "no place for attributes"),
        (table().rename(columns={"kwh": "tariff=flat"}), {"static": TARIFF}, "name of a category"),
    ):
        with pytest.raises(UserError, match=sentence):
            tame.read(frame, **reading)
    with pytest.raises(UserError, match="static: an array has no columns"):
        tame.read(np.ones((3, 4, 1)), static=TARIFF)


def private(frame: pd.DataFrame, **reading: Any) -> Series:
    return load_split(frame, private=True, study=STUDY, **{"static": TARIFF, "id": "meter", **reading})[0]


def test_a_private_run_refuses_nothing_for_what_stands_in_the_rows() -> None:
    """The first row in time that states a category says it; what was not stated counts as missing, and says nothing."""
    frame = table(("flat", "night", None))
    frame.loc[0:9, "tariff"] = None
    frame.loc[10:14, "tariff"] = "secret"
    frame.loc[15, "tariff"] = "night"
    frame.loc[30:59, "tariff"] = "secret"
    series = private(frame.sample(frac=1, random_state=3))
    order = [series.meters.index(name) for name in ("m0", "m1", "m2")]
    assert series.marks()[order].tolist() == [[0, 1], [0, 0], [0, 0]]
    assert not any("secret" in note for note in (*series.notes, *series.inferred))
    for reading in ({"static": "tariff"}, {"static": {"tariff": None}}):
        with pytest.raises(UserError, match=r"state them for a private run: static='tariff=flat\|night'"):
            private(table(), **reading)
    with pytest.raises(UserError, match="state them for a private run"):
        load_split(tame.read(table(), static="tariff", id="meter"), private=True, study=STUDY)
    assert private(frame, missing_covariates="hold").marks().sum() == 1, "nor with other covariates held"


def test_rows_that_a_study_adds_have_the_attribute() -> None:
    series = private(table())
    assert len(series) == 3 * 31 * 24
    assert (series.covariates.reshape(3, -1, 2) == series.marks()[:, None]).all()
    assert series.reach == 31 * 24, "an attribute is carried through all of its meter, and the accounting knows"
    part = series.between(np.full(3, 700), np.full(3, 740))
    assert marks(part) == [[1, 0], [0, 1], [0, 0]]


words = st.sampled_from([None, "flat", "night", "secret", "NA", "1", "true", ""])


@given(
    first=st.lists(st.lists(words, min_size=4, max_size=4), min_size=2, max_size=3),
    other=st.lists(words, min_size=4, max_size=4),
)
def test_one_meter_never_touches_the_attributes_of_another(
    first: list[list[str | None]], other: list[str | None], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """From a file, since how a column is read hangs on all of its cells."""
    place = tmp_path_factory.mktemp("attributes") / "meters.csv"

    def read(cells: list[list[str | None]]) -> dict[str, list[float]]:
        frame = table(["x"] * len(cells), hours=4).assign(tariff=[one for own in cells for one in own])
        frame.to_csv(place, index=False)
        series = private(place, static={"tariff": ("flat", "1", "true", "NA")})  # type: ignore[arg-type]
        return dict(zip(series.meters, marks(series), strict=True))

    before, after, alone = read(first), read([*first[:-1], other]), read([*first[:-1], [None] * 4])
    changed = f"m{len(first) - 1}"
    for name in before:
        if name != changed:
            assert before[name] == after[name] == alone[name]
