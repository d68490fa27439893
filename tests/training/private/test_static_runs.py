"""A private run that knows attributes of homes: which unit it takes, what it states, and what one meter can move."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tamedit as tame
from tamedit.data.loading import load_split
from tamedit.data.study import Study
from tamedit.errors import UserError
from tamedit.privacy.accountant import Mechanism
from tamedit.privacy.entries import read
from tamedit.privacy.population import POPULATION
from tamedit.runs.artifact import load_model
from tamedit.runs.folder import DataFacts
from tamedit.runs.layout import PrivateLayout, private_layout
from tamedit.runs.privacy_page import PRIVACY
from tamedit.runs.recipe import make_config
from tamedit.tasks.model import Model
from tamedit.training.private.released_population import summed

pytestmark = pytest.mark.usefixtures("small_pool")
STUDY = ("2023-01-01", "2023-02-12")
STATIC = {"tariff": ["flat", "night"], "heating": ["gas", "pump"]}
COMMON: dict[str, Any] = {"scale": "smoke", "steps": 2, "window": 24, "batch_size": 4, "init": "homes", "study": STUDY}


def table(meters: int = 12) -> pd.DataFrame:
    """Homes with a mean load of about 1 (flat) or 4 (night); one states its tariff late, and one nothing that is known."""
    frame = tame.simulate(meters, 24 * 42, seed=2).frame()
    number = frame["meter"].map({name: place for place, name in enumerate(frame["meter"].unique())})
    night = (number % 2 == 1).to_numpy()
    frame["kwh"] = frame["kwh"] / frame.groupby("meter")["kwh"].transform("mean") * np.where(night, 4.0, 1.0)
    frame["tariff"] = np.where(night, "night", "flat")
    frame["heating"] = np.where(number == 0, "wood", "gas")
    frame.loc[frame.index[:50], "tariff"] = None
    return frame


def private(**change: Any) -> tame.Privacy:
    wanted = {"epsilon": 400.0, "unit": "series", "examples": 12, "population": True, "population_noise": 0.1}
    return tame.Privacy(**{**wanted, "test_only": True, **change})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("private") / "run"
    tame.fit(table(), out=out, id="meter", static=STATIC, privacy=private(), lower=0, upper=20, **COMMON)
    return out


def test_the_statement_says_that_the_categories_are_public(made: Path) -> None:
    spec, record = load_model(made)[1], read(made)
    sentence = "the categories of static attributes: tariff (flat, night) and heating (gas, pump)"
    assert sentence in spec.privacy["statement"]
    assert sentence in (made / PRIVACY).read_text()
    assert "wood" not in (made / PRIVACY).read_text()
    assert record.charged(POPULATION) == [Mechanism(1.0, 0.1, 1)]
    assert spec.population is not None
    assert spec.population.static == spec.static == (("tariff", ("flat", "night")), ("heating", ("gas", "pump")))
    assert "the model that ships with the package" in spec.privacy["statement"]


def test_homes_of_a_group_have_its_loads(made: Path) -> None:
    model = Model.load(made)
    medians = {}
    for word in ("flat", "night"):
        homes = model.generate(homes=16, days=14, static={"tariff": word})
        medians[word] = homes.groupby("home")["kwh"].mean().median()
    assert medians["night"] > 2.0 * medians["flat"]


@pytest.mark.parametrize("unit", ["week", "day", "record", "window"])
def test_a_smaller_unit_than_a_meter_is_refused_before_anything_is_charged(unit: str, tmp_path: Path) -> None:
    chosen = COMMON | {"out": tmp_path / "run", "lower": 0, "upper": 20}
    with pytest.raises(UserError, match=r"take unit='series', or leave out `static`"):
        tame.fit(table(), id="meter", static=STATIC, privacy=private(unit=unit), **chosen)
    assert not (tmp_path / "run").exists()


def test_categories_must_be_stated(tmp_path: Path) -> None:
    for data, reading in (
        (table(), {"id": "meter", "static": "tariff,heating"}),
        (tame.read(table(), id="meter", static=["tariff"]), {}),
    ):
        with pytest.raises(UserError, match="state them for a private run"):
            tame.fit(data, privacy=private(population=False), **COMMON, **reading)


def test_more_attributes_need_less_noise_or_more_homes() -> None:
    """√(3K + K²) = 2 becomes √8 with an attribute: the error that is refused grows as the norm does."""
    noise = 0.15 * 12 / 2.0 * 0.99  # without attributes just allowed
    many = private(population_noise=noise)
    with pytest.raises(UserError, match="state fewer attributes"):
        tame.fit(table(), id="meter", static=STATIC, privacy=many, lower=0, upper=20, **COMMON)


def replay(frame: pd.DataFrame) -> tuple[PrivateLayout, np.ndarray, list[bytes]]:
    """From a table to what is summed with noise, and to all that a network sees of each example."""
    reading = {"id": "meter", "static": STATIC}
    _, split = load_split(frame, private=True, study=Study.stating(STUDY), **reading)
    privacy = private()
    config = make_config(split.train, "a table", scale="smoke", privacy=privacy, window=24)
    layout = private_layout(split.train, config.window, config.stride, privacy)
    examples = layout.examples(config)
    _, vectors = summed(examples, config, DataFacts(lower=(0.0,), upper=(20.0,)))
    spans = examples.spans if examples.spans is not None else np.full(len(examples), examples.length)
    seen = [
        examples.series.values[begin : begin + span].tobytes()
        + examples.series.covariates[begin : begin + span].tobytes()
        for begin, span in zip(examples.starts.tolist(), spans.tolist(), strict=True)
    ]
    return layout, np.concatenate(list(vectors)), seen


@pytest.mark.parametrize("change", ["delete", "alter", "contradict", "unstated", "empty"])
def test_one_meter_moves_its_own_example_alone(change: str) -> None:
    """Neighbouring tables: the rows of a meter are deleted, or its attributes are changed in every way that could be refused."""
    frame = table()
    for meter in ("meter_00", "meter_05", "meter_11"):
        other, mine = frame.copy(), (frame["meter"] == meter).to_numpy()
        if change == "delete":
            other = other[~mine]
        elif change == "alter":
            other.loc[mine, ["tariff", "heating"]] = ["night", "pump"]
        elif change == "contradict":
            other.loc[np.flatnonzero(mine)[3:9], "tariff"] = "night"
            other.loc[np.flatnonzero(mine)[9:], "tariff"] = "flat"
        else:
            other.loc[mine, "tariff"] = "dual" if change == "unstated" else None
        (layout, here, seen), (layout_there, there, seen_there) = replay(frame), replay(other)
        assert layout.contribution() == layout_there.contribution()
        assert layout.contribution().k == 1
        place = int(meter[-2:])
        kept = [number for number in range(12) if number != place]
        still = list(range(11)) if change == "delete" else kept
        np.testing.assert_array_equal(here[kept], there[still])
        assert [seen[one] for one in kept] == [seen_there[one] for one in still]
        moved = np.linalg.norm(here.sum(axis=0) - there.sum(axis=0))
        assert moved <= (1.0 if change == "delete" else 2.0) + 1e-9
        if change in ("delete", "alter"):
            assert moved > 0.1, "or the test would say nothing"


def test_other_units_are_accounted_for_with_an_attribute_that_reaches_through_its_meter() -> None:
    """Of a run with whole meters as examples, a day still touches one example, by replacement."""
    layout, _, _ = replay(table())
    touched = layout.accounted["day"]
    assert (touched.k, touched.neighbour) == (1, "replacement")
