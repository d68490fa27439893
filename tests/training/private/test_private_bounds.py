"""Bounds from private magnitudes: what is measured, what it costs, and when it is refused."""

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest

from tamedit.data.calendar import network_covariates
from tamedit.data.simulate import simulate
from tamedit.data.split import split_by_time
from tamedit.diagnostics.magnitudes import measure_run
from tamedit.errors import UserError
from tamedit.model.bounds import Bounds
from tamedit.privacy.entries import read as read_ledger
from tamedit.privacy.settings import Privacy
from tamedit.runs.artifact import load_model
from tamedit.runs.config import RunConfig, Speed
from tamedit.runs.folder import DataFacts
from tamedit.runs.provenance import Reference
from tamedit.runs.recipe import make_config
from tamedit.runs.request import TrainRequest
from tamedit.runs.start import Initial, load_initial_run
from tamedit.training.modulations import QUANTITIES
from tamedit.training.private.released_bounds import LIMIT, Z, example_magnitudes, expected_error
from tamedit.training.run import train
from tamedit.training.scales import make_scaling
from tamedit.windows.cut import cut_blocks
from tamedit.windows.examples import Examples

SERIES = simulate(meters=12, hours=900, seed=8, outage_rate=0)
SPLIT = split_by_time(SERIES)
NEARLY_EXACT = Privacy(noise_multiplier=1.0, unit="day", statistics_noise=1e-3, test_only=True)


@pytest.fixture(scope="module")
def free_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A public model without bounds that has learnt to modulate."""
    table = tmp_path_factory.mktemp("public") / "homes.csv"
    SERIES.frame().to_csv(table)
    folder = table.parent / "run"
    config = make_config(SERIES, str(table), scale="smoke", steps=30, window=48, bounds="off")
    train(SPLIT, config, folder)
    return folder


def started(run: Path) -> Initial:
    return load_initial_run(run, public=True, private=True)


def configured(initial: Initial, privacy: Privacy = NEARLY_EXACT, **chosen: object) -> RunConfig:
    return make_config(
        SERIES,
        "homes",
        scale="smoke",
        steps=4,
        window=48,
        privacy=privacy,
        batch_size=8,
        start=initial.start,
        private_bounds=True,
        **chosen,  # type: ignore[arg-type]
    )


def examples_of(config: RunConfig) -> Examples:
    windows = cut_blocks(network_covariates(SPLIT.train, config.calendar), 48, 48)
    scaling = make_scaling(config, DataFacts(), SPLIT.train)
    return Examples(windows, config.masks, scaling, config.examples, seed=0)


def bounds_of(folder: Path) -> list[Bounds]:
    return [Bounds(**one) for one in json.loads((folder / "bounds.json").read_text())]


@pytest.mark.parametrize("name", QUANTITIES)
def test_level_and_scale_give_the_p99_of_a_normal(name: str) -> None:
    normal = np.random.default_rng(0).standard_normal(200_000)
    drawn = 5.0 + normal if name == "condition" else np.abs(normal)
    level = drawn.mean()
    scale = np.sqrt(np.pi / 2) * np.abs(drawn - level).mean()
    assert level + Z[QUANTITIES.index(name)] * scale == pytest.approx(np.quantile(drawn, 0.99), rel=0.02)


def test_with_little_noise_the_bounds_are_those_of_the_data(free_run: Path, tmp_path: Path) -> None:
    initial = started(free_run)
    config = configured(initial, bounds="tight")
    train(SPLIT, config, tmp_path, initial=initial)
    (found,) = bounds_of(tmp_path)
    values = example_magnitudes(config, initial, examples_of(config))
    most = LIMIT * np.array([getattr(config.network.bounds[0], name) for name in QUANTITIES]) / 0.75
    for column, name in enumerate(QUANTITIES):
        own = np.minimum(values[:, :, column], most[column])
        expected = 0.75 * np.nanquantile(own, 0.99)
        assert getattr(found, name) == pytest.approx(expected, rel=0.35), name
    assert found != config.network.bounds[0]
    network, spec = load_model(tmp_path)
    assert spec.network.bounds == (found,)
    assert network.blocks[0].adaln.bounds == network.final_adaln.bounds == found


def test_the_release_is_paid_once_from_the_budget(free_run: Path, tmp_path: Path) -> None:
    initial = started(free_run)
    config = configured(initial, Privacy(epsilon=40.0, unit="day", statistics_noise=1.2))

    def stop(step: int, steps: int, numbers: dict) -> None:
        if step == 2:
            os.kill(os.getpid(), signal.SIGINT)

    speed = Speed(checkpoint_seconds=1e-3)
    assert not train(SPLIT, config, tmp_path, initial=initial, speed=speed, progress=stop).finished
    released = bounds_of(tmp_path)
    assert train(SPLIT, config, tmp_path, initial=initial, speed=speed, resume=True).finished
    assert bounds_of(tmp_path) == released
    charges = [charge for segment in read_ledger(tmp_path).segments for charge in segment.charges]
    (paid,) = [mechanism for mechanism, what in charges if what == "bounds"]
    assert (paid.noise_multiplier, paid.sampling_rate, paid.count) == (1.2, 1.0, 2)
    assert read_ledger(tmp_path).epsilon("day", 1e-5).value <= 40.0
    assert read_ledger(tmp_path).steps == 4


def test_an_examples_values_come_from_it_alone(free_run: Path) -> None:
    initial = started(free_run)
    config = configured(initial)
    examples = examples_of(config)
    before = example_magnitudes(config, initial, examples)
    first = examples.windows.starts[7]
    examples.windows.series.values[first : first + 48] = np.random.default_rng(1).gamma(0.3, 9.0, (48, 1))
    after = example_magnitudes(config, initial, examples)
    changed = np.flatnonzero([not np.array_equal(a, b, equal_nan=True) for a, b in zip(before, after, strict=True)])
    assert changed.tolist() == [7]


def test_every_block_can_have_its_own(free_run: Path, tmp_path: Path) -> None:
    initial = started(free_run)
    reference: Reference = measure_run(free_run, public=True)
    config = configured(initial, reference=reference, by_block=True)
    train(SPLIT, config, tmp_path, initial=initial)
    found = bounds_of(tmp_path)
    assert len(found) == config.network.depth + 1
    assert len({one.scale for one in found}) == len(found)
    assert load_model(tmp_path)[1].network.bounds == tuple(found)
    for own, public in zip(found, reference.blocks, strict=True):
        assert own.scale == pytest.approx(0.9 * public.scale, rel=0.4)


def test_the_noise_is_what_is_expected(free_run: Path, tmp_path: Path) -> None:
    """The spread over seeds of a test, against the formula that refuses small data sets."""
    initial = started(free_run)
    found = []
    for seed in range(12):
        config = configured(initial, NEARLY_EXACT.model_copy(update={"statistics_noise": 0.3}), seed=seed)
        train(SPLIT, config.model_copy(update={"training": config.training.model_copy(update={"steps": 1})}),
              tmp_path / str(seed), initial=initial)  # fmt: skip
        found.append(bounds_of(tmp_path / str(seed))[0].scale)
    count = len(examples_of(config))
    reference = config.network.bounds[0].scale
    expected = expected_error(count, 4, 0.3)
    assert 0.3 * expected < np.std(found) / reference < 2.5 * expected


def test_refusals(free_run: Path, tmp_path: Path) -> None:
    initial = started(free_run)
    noisy = configured(initial, Privacy(epsilon=8.0, unit="day"))
    with pytest.raises(UserError, match="mostly noise"):
        train(SPLIT, noisy, tmp_path / "noisy", initial=initial)
    assert not (tmp_path / "noisy").exists()
    for wrong in ({"init": initial, "bounds": "off"}, {}):
        with pytest.raises(UserError, match="needs `privacy`, `init` and `bounds`"):
            TrainRequest(privacy=NEARLY_EXACT, private_bounds=True, **wrong)
