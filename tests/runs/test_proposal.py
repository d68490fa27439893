"""Proposals: from public facts alone, within the budget and the time, and only where the user said nothing."""

import math
from pathlib import Path
from typing import Any

import pytest

from tamedit.data.loading import IN_MEMORY
from tamedit.data.simulate import simulate
from tamedit.data.split import split_by_time
from tamedit.errors import UserError
from tamedit.privacy.accountant import Mechanism, epsilon
from tamedit.privacy.settings import Privacy
from tamedit.runs.layout import layout_of, private_layout
from tamedit.runs.proposal import CELL_SECONDS, KEPT, propose, propose_for, recommended
from tamedit.runs.recipe import make_config
from tamedit.runs.request import TrainRequest
from tamedit.training.requested import prepare


@pytest.mark.parametrize(("examples", "wanted"), [(400, 8.0), (2800, 3.0)])
def test_a_proposal_stays_within_budget_and_time(examples: int, wanted: float) -> None:
    found = propose(examples, wanted, minutes=2, cores=2)
    spent = epsilon([Mechanism(found.batch_size / examples, found.noise_multiplier, found.steps)], 1e-5).value
    assert 0.97 * wanted < spent <= wanted
    assert found.batch_size * found.steps * 168 * CELL_SECONDS <= 2 * 60 * 2 * 1.001
    assert found.batch_size <= examples
    ratio = math.sqrt(found.steps) * found.batch_size / found.noise_multiplier
    assert ratio == pytest.approx(found.signal_to_noise, rel=0.02)
    assert KEPT * 0.8 < found.share_of_limit <= 1


def test_more_time_is_never_worse() -> None:
    short, long = propose(3000, 8.0, minutes=0.5), propose(3000, 8.0, minutes=8)
    assert long.signal_to_noise > short.signal_to_noise
    assert long.steps >= short.steps


def test_a_meter_is_drawn_several_times() -> None:
    assert propose(200, 8.0, unit="series", minutes=1).draws > 1
    assert propose(200, 8.0, unit="week", minutes=1).draws == 1


def test_units_are_counted_on_the_layout() -> None:
    series = simulate(meters=5, hours=168 * 6, start="2023-01-02")
    privacy = Privacy(epsilon=8.0, unit="week")
    found = propose_for(private_layout(series, 168, 24, privacy), privacy, minutes=1)
    assert found.examples == 5 * 6
    whole = Privacy(epsilon=8.0, unit="series")
    assert propose_for(private_layout(series, 168, 24, whole), whole, minutes=1).examples == 5


def test_what_the_user_gave_stays() -> None:
    series = simulate(meters=5, hours=168 * 6, start="2023-01-02")
    train = split_by_time(series).train
    privacy = Privacy(epsilon=8.0, unit="week")
    config = make_config(series, "fleet", steps=30, privacy=privacy)
    found = recommended(config, layout_of(train, config), steps=30)
    assert found.training.steps == 30
    assert found.training.batch_size != config.training.batch_size
    assert found.network.depth == 2
    sized = make_config(series, "fleet", size="tiny", privacy=privacy)
    assert recommended(sized, layout_of(train, sized), size="tiny").network == sized.network
    drawn = make_config(series, "fleet", privacy=Privacy(epsilon=8.0, unit="series", draws=2))
    assert recommended(drawn, layout_of(train, drawn)).privacy == drawn.privacy


@pytest.mark.parametrize(
    "chosen",
    [
        {"privacy": None},
        {"privacy": Privacy(noise_multiplier=1.0)},
        {"privacy": Privacy(epsilon=8.0, unit="window", layout="overlapping")},
        {"privacy": Privacy(epsilon=8.0), "scale": "smoke"},
    ],
)
def test_other_runs_are_left_alone(chosen: dict[str, Any], tmp_path: Path) -> None:
    series = simulate(meters=5, hours=168 * 6)
    request = TrainRequest(out=tmp_path, **chosen)
    prepared = prepare(series, request)
    assert not request.planned
    assert prepared.config == make_config(prepared.series, IN_MEMORY, **chosen)


def test_bounds_of_every_block_keep_the_size_that_they_were_made_for() -> None:
    series = simulate(meters=40, hours=168 * 20, seed=0)
    config = make_config(series, "fleet", privacy=Privacy(epsilon=8.0, unit="week"))
    bounds = config.network.bounds * (config.network.depth + 1)
    by_block = config.model_copy(update={"network": config.network.model_copy(update={"bounds": bounds})})
    found = recommended(by_block, layout_of(split_by_time(series).train, by_block))
    assert found.network == by_block.network
    assert found.training != by_block.training


def test_a_start_keeps_its_own_bounds() -> None:
    assert propose(10_000, 8.0, begins=True).bounds is None
    assert propose(10_000, 8.0).bounds == "off"


def test_a_start_that_cannot_be_improved_is_said() -> None:
    """√T B / σ below 15: there tuning did harm (docs/privacy.md)."""
    assert propose(25, 1.0, unit="series", begins=True).needless
    assert not propose(10_000, 8.0, begins=True).needless
    assert not propose(25, 1.0, unit="series").needless, "from random weights there is nothing to keep"


def test_too_little_is_refused() -> None:
    with pytest.raises(UserError, match="at least 2"):
        propose(1, 8.0)
    with pytest.raises(UserError, match="allow more with `minutes`"):
        propose(1000, 8.0, minutes=1e-4)


@pytest.mark.parametrize(
    ("examples", "epsilon", "unit", "error", "wanted"),
    [
        (2000, 1.0, "week", 10.0 * 2.0 / 2000, "population"),  # σ √(3 + 1) / N, and σ is 10 per home-week
        (182, 8.0, "series", 1.5 * 2.0 / 182, "population"),  # per whole home σ is 10 / ε, at least 1.5
        (182, 3.0, "series", 10.0 / 3.0 * 2.0 / 182, "evolution"),
        (
            200,
            8.0,
            "week",
            10.0 * 2.0 / 200,
            "evolution",
        ),  # noisy moments, but as many votes as 1,600 homes have at ε = 1
        (182, 1.0, "series", 10.0 * 2.0 / 182, "simulator"),
    ],
)
def test_the_generator_depends_on_the_noise(
    examples: int, epsilon: float, unit: str, error: float, wanted: str
) -> None:
    found = propose(examples, epsilon, unit=unit)
    assert found.generator == wanted
    assert f"{error:.2g} per moment" in found.generating
    assert ("the free simulator" in found.generating) == (wanted == "simulator")


def test_a_model_that_begins_well_takes_few_steps() -> None:
    well, scratch = propose(3000, 8.0, minutes=5, begins=True), propose(3000, 8.0, minutes=5)
    assert well.steps < scratch.steps
    assert well.batch_size > scratch.batch_size
    assert well.signal_to_noise >= 0.9 * scratch.signal_to_noise
