"""The bounds on an example that the theory of a run rests on hold for examples, and the theory for their gradients."""

import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from scipy import stats

from tamedit.data.calendar import network_covariates
from tamedit.data.series import Series
from tamedit.data.simulate import simulate
from tamedit.data.split import Split, split_by_time
from tamedit.diffusion.loss import denoising_loss
from tamedit.errors import UserError
from tamedit.runs.artifact import load_model, save_model
from tamedit.runs.config import RunConfig
from tamedit.runs.recipe import make_config
from tamedit.training.run import train
from tamedit.training.source import noised_batch
from tamedit.windows.cut import cut
from tamedit.windows.examples import Examples
from tamedit_paper.theory.of_run import analyse_run, entry_bounds, input_bounds

Run = tuple[Path, RunConfig, Split]


def wild() -> Series:
    """A meter with outliers, steps and gaps: what the bounds must survive."""
    series, rng = simulate(hours=900, seed=3), np.random.default_rng(0)
    values = series.values.copy()
    values[rng.choice(900, 20, replace=False)] = 1e4
    values[200:260] = 0.0
    values[230] = 1e6  # a single spike in a constant window comes nearest to √(n − 1)
    values[rng.choice(900, 60, replace=False)] = np.nan
    return type(series)(**{**vars(series), "values": values})


@pytest.fixture(scope="module", params=["free", "none"])
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    series = wild()
    split = split_by_time(series)
    config = make_config(series, "wild", scale="smoke", steps=12, window=24, anchor=request.param)
    folder = tmp_path_factory.mktemp("theory") / request.param
    train(split, config, folder)
    return folder, config, split


def batches(run: Run, steps: int) -> list[tuple]:
    """Examples as training sees them."""
    folder, config, split = run
    _, spec = load_model(folder)
    windows = cut(network_covariates(split.train, config.calendar), config.window, config.stride)
    examples = Examples(windows, config.masks, spec.scaling_of(), config.examples, config.seed)
    rng = np.random.default_rng(1)
    return [noised_batch(examples, rng.integers(0, len(examples), 32), step, config.process) for step in range(steps)]


def test_public_facts_hold_for_every_example(trained: Run) -> None:
    folder, config, _ = trained
    _, spec = load_model(folder)
    entries, seen = entry_bounds(spec), {"residual": 0.0, "values": 0.0, "anchor": 0.0, "covariates": 0.0}
    for batch, _, _ in batches(trained, 40):
        for name, before in seen.items():
            part = batch.residual if name == "residual" else getattr(batch.context, name)
            seen[name] = max(before, float(part.abs().max()))
    for name, largest in seen.items():
        assert entries[name].assumed or largest <= entries[name].limit * (1 + 1e-5), name
    anchored = config.examples.anchor == "free"
    assert {name for name, entry in entries.items() if entry.assumed} == (
        {"epsilon"} if anchored else {"epsilon", "residual", "values"}
    )
    if anchored:
        assert seen["residual"] == entries["residual"].limit == 5.0  # the clamp is reached
        assert seen["values"] > 0.8 * entries["values"].limit  # and the deviation's limit nearly so
        assert entries["values"].limit == pytest.approx(math.asinh(math.sqrt(23)))


def test_noised_and_wanted_stay_within_what_is_derived(trained: Run) -> None:
    folder, config, _ = trained
    _, spec = load_model(folder)
    checked = 0
    for batch, time, epsilon in batches(trained, 20):
        largest = {"residual": batch.residual.abs().max(), "epsilon": epsilon.abs().max()}
        entries = entry_bounds(spec)
        entries |= {name: entries[name]._replace(limit=float(value)) for name, value in largest.items()}
        inputs = input_bounds(spec, entries)
        noised, wanted = config.process.diffuse(batch.residual, epsilon, time)
        assert float(noised.abs().max()) <= inputs.noised * (1 + 1e-6)
        assert float(wanted.abs().max()) <= inputs.wanted * (1 + 1e-6)
        checked += 1
    assert checked == 20
    assert (inputs.wanted == pytest.approx(inputs.noised)) == (config.process.prediction == "v")


def test_gradients_of_the_examples_are_below_the_bound(trained: Run) -> None:
    """Single examples by autograd, with the weights that the bound speaks of; layer by layer."""
    folder, config, _ = trained
    network, _ = load_model(folder)
    found = analyse_run(folder, assumed=6.0)
    assert found.theory.propagated is not None
    batch, time, epsilon = batches(trained, 1)[0]
    compared = 0
    for index in range(len(batch)):
        one = slice(index, index + 1)
        if max(float(batch.residual[one].abs().max()), float(batch.context.values[one].abs().max())) > 6:
            continue  # only assumed: the paper's form does not clamp
        network.zero_grad()
        denoising_loss(network, batch[one], time[one], epsilon[one], config.process).sum().backward()
        squares: dict[str, float] = {}
        for name, weight in network.named_parameters():
            layer = name.rsplit(".", 1)[0]
            assert weight.grad is not None
            squares[layer] = squares.get(layer, 0.0) + float(weight.grad.square().sum())
        for layer, bound in found.theory.propagated.layers.items():
            assert math.sqrt(squares[layer]) <= bound * (1 + 1e-5), layer
        assert math.sqrt(sum(squares.values())) <= found.theory.quadrature * (1 + 1e-5)
        compared += 1
    assert compared >= 20


def test_the_stated_chance_of_a_large_epsilon_is_the_normals(trained: Run) -> None:
    folder, config, _ = trained
    found = analyse_run(folder, assumed=3.0)
    inside = stats.norm.cdf(3) - stats.norm.cdf(-3)
    assert found.epsilon_exceeds == pytest.approx(1 - inside**config.window, rel=1e-9)
    passed = torch.randn(4000, config.window, generator=torch.Generator().manual_seed(0)).abs().amax(1) > 3
    assert found.epsilon_exceeds == pytest.approx(float(passed.float().mean()), abs=0.02)


def test_covariates_of_the_user_are_assumed(trained: Run) -> None:
    _, spec = load_model(trained[0])
    assert entry_bounds(spec)["covariates"] == (1.0, "points on circles: the calendar", False)
    own = spec.model_copy(update={"covariates": ("price",)})
    assert entry_bounds(own, 4.0)["covariates"] == (4.0, "assumed", True)
    assert entry_bounds(own, 0.5)["covariates"].limit == 1.0  # the calendar is beside it
    without = spec.model_copy(update={"network": spec.network.model_copy(update={"covariate_channels": 0})})
    assert entry_bounds(without)["covariates"].limit == 0.0


def test_a_clamp_counts_only_where_there_is_one(trained: Run) -> None:
    _, spec = load_model(trained[0])
    free = spec.model_copy(update={"examples": spec.examples.model_copy(update={"residual_limit": None})})
    entries = entry_bounds(free, 7.0)
    assert entries["residual"].limit == 7.0
    assert entries["residual"].assumed


def test_weights_that_are_not_finite_are_refused(trained: Run, tmp_path: Path) -> None:
    shutil.copytree(trained[0], tmp_path / "run")
    weights = load_file(tmp_path / "run" / "model.safetensors")
    weights["output.bias"] = torch.full_like(weights["output.bias"], torch.nan)
    save_model(tmp_path / "run", load_model(tmp_path / "run")[1], weights)
    with pytest.raises(UserError, match="not finite"):
        analyse_run(tmp_path / "run")
