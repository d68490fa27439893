"""Reference magnitudes: what is measured."""

from pathlib import Path

import pytest
import torch

from tamedit.data.scaling import fit_scaling
from tamedit.data.simulate import simulate
from tamedit.diagnostics.magnitudes import reference_bounds
from tamedit.diffusion.process import Process
from tamedit.errors import UserError
from tamedit.model.dit import DiffusionTransformer
from tamedit.model.zoo import NetworkConfig
from tamedit.windows.cut import cut_blocks
from tamedit.windows.examples import ExampleConfig, Examples
from tamedit.windows.masks import MaskConfig


@pytest.fixture
def network() -> DiffusionTransformer:
    torch.manual_seed(0)
    made = DiffusionTransformer(
        NetworkConfig(target_channels=1, anchor_features=4, length=24, depth=2, width=16, heads=2)
    )
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


def test_every_block_has_its_own(tmp_path: Path) -> None:
    from tamedit.diagnostics.magnitudes import measure_run
    from tamedit.runs.recipe import make_config
    from tamedit.training.run import train

    series = simulate(hours=1200, seed=3)
    table = tmp_path / "meter.csv"
    series.frame().to_csv(table)
    from tamedit.data.loading import load_split

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
    with pytest.raises(UserError, match="leave out `by_block`"):
        make_config(series, str(table), size="base", window=48, reference=reference, by_block=True)
