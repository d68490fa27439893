"""A private run that learns who the homes are: released once, charged, said, and refused where it would be mostly noise."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tamedit.data.series import Series
from tamedit.data.simulate import simulate
from tamedit.data.split import split_by_time
from tamedit.errors import UserError
from tamedit.privacy.accountant import Mechanism
from tamedit.privacy.entries import read
from tamedit.privacy.population import POPULATION, Population, features
from tamedit.privacy.settings import Privacy
from tamedit.privacy.statistics import unit_sum
from tamedit.runs.agreement import check_agreement
from tamedit.runs.artifact import load_model
from tamedit.runs.config import Speed
from tamedit.runs.folder import PEOPLE, DataFacts
from tamedit.runs.layout import layout_of
from tamedit.runs.privacy_page import PRIVACY
from tamedit.runs.recipe import make_config
from tamedit.runs.release import release
from tamedit.runs.request import TrainRequest
from tamedit.training.private.released_population import exact_population, summed
from tamedit.training.run import train

FACTS = DataFacts(lower=(0.0,), upper=(8.0,))


@pytest.fixture(scope="module")
def fleet() -> Series:
    return simulate(meters=12, hours=24 * 28, seed=1)


def run(series: Series, folder: Path, facts: DataFacts = FACTS, resume: bool = False, **privacy: Any) -> Path:
    wanted = Privacy(**{"epsilon": 6.0, "unit": "day", "examples": 230, "population": True, **privacy})
    config = make_config(
        series, "simulated", scale="smoke", steps=2, window=24, size="tiny", privacy=wanted, batch_size=24
    )
    train(split_by_time(series), config, folder, facts=facts, speed=Speed(threads=1), resume=resume)
    return folder


@pytest.fixture(scope="module")
def made(fleet: Series, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(fleet, tmp_path_factory.mktemp("population") / "run", population_noise=4.0)


def test_it_is_in_the_model_the_ledger_and_the_page(made: Path) -> None:
    population, record = load_model(made)[1].population, read(made)
    assert population == Population.model_validate_json((made / PEOPLE).read_text())
    assert population is not None
    assert population.origin == "private"
    assert population.within.rows == 24
    assert record.charged(POPULATION) == [Mechanism(1.0, 4.0, 1)]
    assert record.epsilon("day", 1e-5).value <= 6.0, "the budget pays for everything together"
    assert "| who the homes are | 1 | 1 | 4 |" in (made / PRIVACY).read_text()
    assert check_agreement(made)[0].charged(POPULATION)


def test_it_is_near_the_truth(made: Path, fleet: Series) -> None:
    """The error of a moment has a deviation of 4 · 2 / 230 = 0.035; the divisor is the stated number and not the true one."""
    population = load_model(made)[1].population
    assert population is not None
    train_part = split_by_time(fleet).train
    days = train_part.values.reshape(12, -1)[:, : train_part.lengths[0] // 24 * 24].reshape(-1, 24, 1)
    u = features(days.astype(np.float64), 0.0, 8.0, 24)[0][:, 0]
    truth = u.sum(axis=0) / 230
    assert np.abs(np.array(population.mean) - truth)[[0, 2, 3, 4]].max() < 0.15


def test_a_resumed_run_reads_it_again_and_pays_nothing(made: Path, fleet: Series) -> None:
    before, paid = (made / PEOPLE).read_bytes(), read(made).charged(POPULATION)
    run(fleet, made, resume=True, population_noise=4.0)
    assert ((made / PEOPLE).read_bytes(), read(made).charged(POPULATION)) == (before, paid)


def test_a_lost_or_foreign_release_is_found(made: Path, fleet: Series, tmp_path: Path) -> None:
    whole = (made / PEOPLE).read_bytes()
    (made / PEOPLE).write_bytes(whole[:200])
    with pytest.raises(UserError, match=r"population\.json is damaged"):
        run(fleet, made, resume=True, population_noise=4.0)
    (made / PEOPLE).write_bytes(whole)
    other = run(fleet, tmp_path / "other", population=False)
    spec, there = json.loads((other / "model.json").read_text()), json.loads((made / "model.json").read_text())
    assert spec["population"] is None
    for origin in ("private", "nonprivate"):
        people = there["population"] | {"origin": origin}
        (other / "model.json").write_text(json.dumps(spec | {"population": people}))
        for check in (
            check_agreement,
            lambda folder: release(folder, tmp_path / "out", acknowledge="not-private-files"),
        ):
            with pytest.raises(UserError, match="never paid for"):
                check(other)


def test_without_a_use_it_is_refused_before_anything_is_charged(fleet: Series, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="give `lower` and `upper`"):
        run(fleet, tmp_path / "a", DataFacts())
    with pytest.raises(UserError, match=r"off by more than 0\.15"):
        run(fleet, tmp_path / "b", population_noise=100.0)
    with pytest.raises(UserError, match="leave `population` out"):
        TrainRequest(engine="evolution", privacy=Privacy(epsilon=3, population=True))
    assert not any((tmp_path / name).exists() for name in "ab")


def test_no_examples_have_a_sum_of_zero(fleet: Series) -> None:
    """The layout refuses a run without examples; were there none, the sum would be charged and released like any other."""
    config = make_config(
        fleet,
        "simulated",
        scale="smoke",
        steps=2,
        window=24,
        privacy=Privacy(unit="day", examples=9, noise_multiplier=1.0),
    )
    layout = layout_of(split_by_time(fleet).train, config)
    assert layout is not None
    windows = replace(layout.windows, starts=layout.windows.starts[:0], spans=None)
    _, pieces = summed(windows, config, FACTS)
    assert np.array_equal(unit_sum(pieces), np.zeros(94))
    assert exact_population(windows, 24) is None
