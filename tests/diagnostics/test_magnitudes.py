"""Reference magnitudes: what is measured, and what a private measurement costs and reveals."""

from pathlib import Path

import numpy as np
import pytest
import torch

from tamedit.data.scaling import fit_scaling
from tamedit.data.simulate import simulate
from tamedit.diagnostics.magnitudes import private_reference_bounds, reference_bounds, unit_magnitudes
from tamedit.diffusion.process import Process
from tamedit.errors import UserError
from tamedit.model.bounds import Bounds
from tamedit.model.dit import DiffusionTransformer
from tamedit.model.zoo import NetworkConfig
from tamedit.privacy.ledger import Ledger
from tamedit.privacy.plan import PrivacyPlan
from tamedit.windows.cut import cut_blocks
from tamedit.windows.examples import ExampleConfig, Examples
from tamedit.windows.masks import MaskConfig
from tamedit.windows.units import Contribution

LIMITS = Bounds(condition=20.0, scale=3.0, shift=3.0, gate=3.0)


@pytest.fixture
def network() -> DiffusionTransformer:
    torch.manual_seed(0)
    made = DiffusionTransformer(NetworkConfig(target_channels=1, length=24, depth=2, width=16, heads=2))
    for name, parameter in made.named_parameters():
        if "adaln" in name:
            torch.nn.init.normal_(parameter, std=0.1)
    return made


@pytest.fixture
def examples() -> Examples:
    series = simulate(meters=60, hours=24, seed=3, outage_rate=0)
    windows = cut_blocks(series, 24, None)
    return Examples(windows, MaskConfig(), fit_scaling("instance", series), ExampleConfig(), seed=0)


def test_an_unbounded_networks_magnitudes_follow_its_weights(network: DiffusionTransformer, examples: Examples) -> None:
    small = reference_bounds(network, examples, Process(), batches=2)
    with torch.no_grad():
        for block in network.blocks:
            block.adaln.projection.weight[2 * 16 : 3 * 16] *= 5  # the gate of attention
            block.adaln.projection.bias[2 * 16 : 3 * 16] *= 5
    large = reference_bounds(network, examples, Process(), batches=2)
    assert large.gate > 2 * small.gate
    assert large.scale == pytest.approx(small.scale, rel=1e-5)
    assert large.condition == pytest.approx(small.condition, rel=1e-5)


def open_ledger(folder: Path) -> Ledger:
    plan = PrivacyPlan(
        unit="series", examples=60, sampling_rate=0.5, clip=1.0, noise_multiplier=1.0, steps=1, delta=1e-5
    )
    return Ledger.open(folder, plan, {"series": Contribution(1, "removal", "one meter is one example")})


def test_a_private_measurement_is_charged_first_and_near_the_truth(
    network: DiffusionTransformer, examples: Examples, tmp_path: Path
) -> None:
    own = unit_magnitudes(network, examples, Process())
    with open_ledger(tmp_path) as ledger:
        released = private_reference_bounds(
            network, examples, Process(), limits=LIMITS, noise_multiplier=0.5, ledger=ledger
        )
        assert [(mechanism.noise_multiplier, what) for mechanism, what in ledger.record.segments[-1].charges] == [
            (0.5, "bounds")
        ]
    truth, limits = own.mean(0), np.array([20.0, 3.0, 3.0, 3.0])
    error = np.abs(np.array([released.condition, released.scale, released.shift, released.gate]) - truth) / limits
    assert (error < 5 * 2 * 0.5 / 60).all()


def test_one_examples_vector_depends_on_it_alone(network: DiffusionTransformer, examples: Examples) -> None:
    before = unit_magnitudes(network, examples, Process())
    examples.windows.series.values[24 * 7 : 24 * 8] *= 50
    after = unit_magnitudes(network, examples, Process())
    assert np.array_equal(np.delete(before, 7, axis=0), np.delete(after, 7, axis=0))


def test_limits_must_be_given(network: DiffusionTransformer, examples: Examples, tmp_path: Path) -> None:
    with open_ledger(tmp_path) as ledger, pytest.raises(UserError, match="public limit"):
        private_reference_bounds(network, examples, Process(), limits=Bounds(), noise_multiplier=1.0, ledger=ledger)


def test_every_block_has_its_own(tmp_path: Path) -> None:
    from tamedit.diagnostics.magnitudes import measure_run
    from tamedit.training.fit import train
    from tamedit.training.recipe import make_config

    series = simulate(hours=1200, seed=3)
    table = tmp_path / "meter.csv"
    series.frame().to_csv(table)
    from tamedit.tasks.fit import load_split

    series, split = load_split(str(table))
    free = make_config(series, str(table), scale="smoke", steps=4, window=48, bounds="off")
    train(split, free, tmp_path / "free")
    reference = measure_run(tmp_path / "free", public=True)
    assert len(reference.blocks) == free.network.depth + 1
    assert all(own.condition == pytest.approx(reference.magnitudes.condition, rel=0.01) for own in reference.blocks)
    for name in ("scale", "shift"):
        values = [getattr(own, name) for own in reference.blocks]
        assert min(values) <= getattr(reference.magnitudes, name) <= max(values)
    assert len({own.scale for own in reference.blocks}) == len(reference.blocks), "blocks differ"
    bounded = make_config(
        series, str(table), scale="smoke", window=48, bounds="tight", reference=reference, by_block=True
    )
    assert bounded.network.bounds == tuple(own.scaled(0.75) for own in reference.blocks)
    with pytest.raises(UserError, match="leave out --by-block"):
        make_config(series, str(table), size="base", window=48, reference=reference, by_block=True)
    with pytest.raises(UserError, match="--by-block needs --reference"):
        make_config(series, str(table), window=48, by_block=True)
