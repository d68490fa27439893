"""N is stated, or counted with noise that the ledger has paid for; the sampler alone knows how many there are."""

import json
from pathlib import Path

import numpy as np
import pytest

from tamedit.data.loading import load_split
from tamedit.data.series import Series
from tamedit.data.simulate import simulate
from tamedit.errors import UserError
from tamedit.privacy import counting
from tamedit.privacy.accountant import Mechanism, epsilon
from tamedit.privacy.counting import COUNTS, SHARE, Count, counting_plan, draw_count
from tamedit.privacy.entries import read as read_ledger
from tamedit.privacy.ledger import Ledger
from tamedit.privacy.settings import Privacy
from tamedit.runs.config import RunConfig, Speed
from tamedit.runs.folder import DataFacts
from tamedit.runs.layout import PrivateLayout, private_layout
from tamedit.runs.recipe import make_config
from tamedit.training.distributed import World
from tamedit.training.private import counted as counting_run
from tamedit.training.private.counted import counted
from tamedit.training.run import train

FACTS = DataFacts(typical_level=(0.35,), typical_scale=(0.35,))


@pytest.fixture(scope="module")
def fleet() -> Series:
    return simulate(meters=20, hours=24 * 31, seed=1)


def laid_out(fleet: Series, **privacy: object) -> tuple[PrivateLayout, Privacy]:
    wanted = Privacy(**{"epsilon": 8.0, "unit": "day", **privacy})  # type: ignore[arg-type]
    _, split = load_split(fleet, private=True)
    return private_layout(split.train, 24, 6, wanted), wanted


def config_of(privacy: Privacy) -> RunConfig:
    return make_config(simulate(meters=2, hours=48), "simulated", scale="smoke", window=24, privacy=privacy)


def drawn(layout: PrivateLayout, privacy: Privacy, folder: Path, shared: Path | None = None) -> Count:
    facts = DataFacts(ledger=str(shared) if shared else None)
    return counted(layout, config_of(privacy), facts, folder, world=World(), resume=False).count


def paid(place: Path) -> int:
    """How many counts a ledger has paid for."""
    return sum(one.count for one in read_ledger(place).charged(COUNTS))


@pytest.mark.parametrize("budget", [1.0, 8.0])
def test_the_count_is_noisy_and_costs_about_a_hundredth_of_the_budget(
    fleet: Series, budget: float, tmp_path: Path
) -> None:
    layout, privacy = laid_out(fleet, epsilon=budget)
    plan = counting_plan(privacy, layout.contribution())
    with Ledger.open(tmp_path, plan, layout.accounted) as ledger:
        found = [draw_count(len(layout.windows), 20, plan, ledger) for _ in range(300)]
        assert ledger.record.charged(COUNTS) == [Mechanism(1.0, plan.noise_multiplier, 600)], "every draw is charged"
    noise = found[0].noise
    apart = np.array([one.examples - len(layout.windows) for one in found])
    assert abs(apart.mean()) < 4 * noise / np.sqrt(300)
    assert apart.std() == pytest.approx(noise, rel=0.2)
    touched = layout.contribution()
    alone = epsilon(found[0].mechanisms, privacy.delta, touched.k, touched.neighbour).value
    assert alone < budget * 2.5 * np.sqrt(SHARE)  # ε of Gaussian releases grows as the root of their share


def test_the_charge_is_on_the_disk_before_the_noise_is_drawn(
    fleet: Series, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What lies in both ledgers at the moment of the draw, and after a crash right behind it."""
    layout, privacy = laid_out(fleet)
    shared, seen = tmp_path / "data.jsonl", []

    def crash(count: int) -> None:
        seen.extend(paid(place) for place in (tmp_path / "run", shared))
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(counting, "secure_normals", crash)
        with pytest.raises(KeyboardInterrupt):
            drawn(layout, privacy, tmp_path / "run", shared)
    assert seen == [2, 2]
    drawn(layout, privacy, tmp_path / "run", shared)
    assert paid(shared) == 4, "the number was lost, so another one costs as much again"


def test_another_attempt_in_the_same_folder_gets_the_same_number(fleet: Series, tmp_path: Path) -> None:
    """Averaging over attempts is not possible: here they agree, and elsewhere each one is charged in full."""
    layout, privacy = laid_out(fleet)
    shared = tmp_path / "data.jsonl"
    first = [drawn(layout, privacy, tmp_path / "a", shared) for _ in range(5)]
    assert len(set(first)) == 1
    assert paid(shared) == 2
    other = private_layout(layout.windows.series, 48, 6, privacy)
    drawn(other, privacy, tmp_path / "a", shared)
    assert paid(tmp_path / "a") == 4, "other examples are another count"
    drawn(layout, privacy, tmp_path / "b", shared)
    assert paid(shared) == 6


def test_attempts_that_count_again_and_again_end_with_the_budget(fleet: Series, tmp_path: Path) -> None:
    layout, privacy = laid_out(fleet, epsilon=1.0)
    shared, plan = tmp_path / "data.jsonl", counting_plan(privacy, layout.contribution())
    facts = {"definitions": layout.definitions}
    with Ledger.open(tmp_path / "a", plan, layout.accounted, facts=facts, shared=shared) as ledger:
        ledger.charge(plan.mechanism, COUNTS, 100)
        drawn(layout, privacy, tmp_path / "b", shared)
        ledger.charge(plan.mechanism, COUNTS, 116)
    with pytest.raises(UserError, match="nothing is left: 2 private runs"):
        drawn(layout, privacy, tmp_path / "c", shared)
    assert not (tmp_path / "c").exists()


def test_a_refused_run_has_paid_for_its_count(fleet: Series, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused after the draw: the charge stays in both ledgers, nothing else does, and the folder can be used again."""
    monkeypatch.setattr(counting_run, "refuse_uncounted", lambda *_: None)  # as if the most examples could be paid for
    _, split = load_split(fleet, private=True)
    out, shared = tmp_path / "run", tmp_path / "data.jsonl"
    facts = FACTS.model_copy(update={"ledger": str(shared)})
    wanted = Privacy(epsilon=1.0, noise_multiplier=0.3, unit="day")
    chosen = {"scale": "smoke", "steps": 2, "window": 24, "size": "tiny", "batch_size": 24}
    config = make_config(fleet, "simulated", privacy=wanted, **chosen)
    for _ in range(2):
        with pytest.raises(UserError, match="pays for no step"):
            train(split, config, out, facts=facts, speed=Speed(threads=1))
        for place in (out, shared):
            assert read_ledger(place).mechanisms[0].count == 2
            assert read_ledger(place).steps == 0
        assert {path.name for path in out.iterdir()} == {"ledger.jsonl"}
    config = make_config(fleet, "simulated", privacy=Privacy(epsilon=1.0, unit="day"), **chosen)
    train(split, config, out, facts=facts, speed=Speed(threads=1))
    assert read_ledger(shared).epsilon("day", 1e-5).value <= 1.0
    assert len(read_ledger(shared).runs) == 1


def test_what_can_be_refused_is_refused_before_the_count(fleet: Series, tmp_path: Path) -> None:
    facts = DataFacts(typical_level=(1.0, 2.0), typical_scale=(1.0, 2.0))
    _, split = load_split(fleet, private=True)
    config = config_of(Privacy(epsilon=8.0, unit="day"))
    with pytest.raises(UserError, match="one number per target"):
        train(split, config, tmp_path / "run", facts=facts)
    assert not (tmp_path / "run").exists()
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "run.json").write_text("{}")
    with pytest.raises(UserError, match="already contains a run"):
        train(split, config, tmp_path / "taken", facts=FACTS)
    assert {path.name for path in (tmp_path / "taken").iterdir()} == {"run.json"}


def test_a_stated_number_is_taken_and_a_test_counts_exactly(fleet: Series, tmp_path: Path) -> None:
    layout, privacy = laid_out(fleet, examples=777)
    assert drawn(layout, privacy, tmp_path).examples == 777
    assert not drawn(layout, privacy, tmp_path).mechanisms
    layout, privacy = laid_out(fleet, test_only=True)
    assert drawn(layout, privacy, tmp_path).examples == len(layout.windows)
    assert not list(tmp_path.iterdir())


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
    assert drawn(layout, privacy, tmp_path).examples == plan.examples


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
