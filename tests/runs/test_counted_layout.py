"""N is stated, or counted with noise that the ledger has paid for; the sampler alone knows how many there are."""

import json
from pathlib import Path

import numpy as np
import pytest

from tamedit.data.loading import load_split
from tamedit.data.series import Series
from tamedit.data.simulate import simulate
from tamedit.errors import UserError
from tamedit.privacy.accountant import epsilon
from tamedit.privacy.counting import COUNTS, SHARE
from tamedit.privacy.entries import read as read_ledger
from tamedit.privacy.settings import Privacy
from tamedit.runs.config import Speed
from tamedit.runs.folder import DataFacts
from tamedit.runs.layout import PrivateLayout, private_layout
from tamedit.runs.recipe import make_config
from tamedit.training.run import train

FACTS = DataFacts(typical_level=(0.35,), typical_scale=(0.35,))


@pytest.fixture(scope="module")
def fleet() -> Series:
    return simulate(meters=20, hours=24 * 31, seed=1)


def laid_out(fleet: Series, **privacy: object) -> tuple[PrivateLayout, Privacy]:
    wanted = Privacy(**{"epsilon": 8.0, "unit": "day", **privacy})  # type: ignore[arg-type]
    _, split = load_split(fleet, private=True)
    return private_layout(split.train, 24, 6, wanted), wanted


@pytest.mark.parametrize("budget", [1.0, 8.0])
def test_the_count_is_noisy_and_costs_about_a_hundredth_of_the_budget(
    fleet: Series, budget: float, tmp_path: Path
) -> None:
    layout, privacy = laid_out(fleet, epsilon=budget)
    drawn = [layout.counted(privacy, tmp_path, int).count for _ in range(300)]
    noise = drawn[0].noise
    apart = np.array([one.examples - len(layout.windows) for one in drawn])
    assert abs(apart.mean()) < 4 * noise / np.sqrt(300)
    assert apart.std() == pytest.approx(noise, rel=0.2)
    touched = layout.contribution()
    alone = epsilon(drawn[0].mechanisms, privacy.delta, touched.k, touched.neighbour).value
    assert alone < budget * 2.5 * np.sqrt(SHARE)  # ε of Gaussian releases grows as the root of their share


def test_a_stated_number_is_taken_and_a_test_counts_exactly(fleet: Series, tmp_path: Path) -> None:
    layout, privacy = laid_out(fleet, examples=777)
    assert layout.counted(privacy, tmp_path, int).count.examples == 777
    assert not layout.counted(privacy, tmp_path, int).count.mechanisms
    layout, privacy = laid_out(fleet, test_only=True)
    assert layout.counted(privacy, tmp_path, int).count.examples == len(layout.windows)


def test_a_run_pays_for_its_count_before_training_and_keeps_it_when_resumed(fleet: Series, tmp_path: Path) -> None:
    _, split = load_split(fleet, private=True)
    privacy = Privacy(epsilon=6.0, unit="day")
    config = make_config(
        fleet, "simulated", scale="smoke", steps=6, window=24, size="tiny", privacy=privacy, batch_size=24
    )
    train(split, config, tmp_path, facts=FACTS, speed=Speed(threads=1))
    record = read_ledger(tmp_path)
    charges = [what for segment in record.segments for _, what in segment.charges]
    assert charges[0] == COUNTS
    assert charges.count(COUNTS) == 1
    plan = record.segments[-1].plan
    assert plan.sampling_rate == float(f"{24 / plan.examples:.3g}")
    assert record.epsilon("day", 1e-5).value <= 6.0
    statement = json.loads((tmp_path / "model.json").read_text())["privacy"]["statement"]
    assert f"{plan.examples:,} (counted with noise" in statement
    assert "column 'meter' names the meters, about" in statement
    assert "the extent of the study, 2023-01-01 to 2023-02-01" in statement
    layout = private_layout(split.train, config.window, config.stride, privacy)
    assert layout.counted(privacy, tmp_path, int).count.examples == plan.examples


def test_the_sampler_draws_from_what_is_there_and_the_plan_never_says(fleet: Series) -> None:
    layout, privacy = laid_out(fleet, examples=10_000, noise_multiplier=1.0)
    plan = privacy.plan(10_000, 100, 10, layout.contribution(), seed=0)
    sampler = plan.sampler(examples=len(layout.windows))
    assert sampler.examples == len(layout.windows)
    assert plan.divisor == pytest.approx(100)
    assert max(int(sampler.sample(step).max(initial=0)) for step in range(50)) < len(layout.windows)


def test_too_few_stated_examples_are_one_sentence() -> None:
    with pytest.raises(UserError, match="examples"):
        Privacy(epsilon=8, examples=1)
