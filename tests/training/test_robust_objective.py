"""A window of an empty home, nearly constant and with one spike in its hidden part, does not rule the gradient."""

from dataclasses import replace

import numpy as np
import torch

from tamedit.data.calendar import network_covariates
from tamedit.data.series import Series
from tamedit.data.simulate import simulate
from tamedit.diffusion.process import Process
from tamedit.model.bounds import Bounds
from tamedit.model.dit import DiffusionTransformer
from tamedit.privacy.engine import Engine
from tamedit.runs.recipe import make_config
from tamedit.training.public import FACTS
from tamedit.training.scales import make_scaling
from tamedit.training.source import engine_losses, noised_batch
from tamedit.windows.cut import cut_blocks
from tamedit.windows.examples import Examples
from tamedit.windows.masks import task_config

HOURS, HOMES, EMPTY = 48, 25, 7


def homes_with_an_empty_one() -> Series:
    """Home 7 stands by at 0.03 kWh, give or take 5 %, but for one spike in the last hours, which are hidden."""
    series = simulate(meters=HOMES, hours=HOURS, seed=4, outage_rate=0)
    values, first = series.values.copy(), int(series.offsets[EMPTY])
    ripple = np.random.default_rng(0).standard_normal((HOURS, 1))
    values[first : first + HOURS] = 0.03 * (1 + 0.05 * ripple)
    values[first + HOURS - 5] = 1.5
    return replace(series, values=values)


def relative_norm(*, floor: bool, limit: bool) -> float:
    """‖g‖ of the empty home's window over the median window's, the median over twelve draws of time and noise."""
    series = homes_with_an_empty_one()
    config = make_config(series, "simulated", window=HOURS)
    scaling = make_scaling(config, FACTS, series)
    if not floor:
        scaling = replace(scaling, floor=(0.0,), relative_floor=(0.0,))
    seen = config.examples if limit else config.examples.model_copy(update={"residual_limit": None})
    known = network_covariates(series, config.calendar)
    examples = Examples(cut_blocks(known, HOURS, None), task_config("block", 12), scaling, seen, seed=1)
    torch.manual_seed(0)
    network = DiffusionTransformer(
        config.network.model_copy(update={"depth": 1, "width": 16, "heads": 2, "bounds": (Bounds(),)})
    )
    for parameter in network.parameters():  # away from the zeros of the start, so that all gradients flow
        parameter.data += 0.05 * torch.randn_like(parameter)
    engine, ratios = Engine(network, keep_memory=False), []
    for step in range(12):
        rows = noised_batch(examples, np.arange(HOMES), step, Process())
        norms = engine(engine_losses(Process()), rows, units=HOMES).norms
        ratios.append(float(norms[EMPTY] / norms.median()))
    return float(np.median(ratios))


def test_floor_and_limit_each_take_weight_from_a_nearly_constant_window() -> None:
    neither = relative_norm(floor=False, limit=False)
    assert neither > 100  # without them this window is worth more than all others together
    assert relative_norm(floor=True, limit=False) < neither / 10
    assert relative_norm(floor=False, limit=True) < neither / 10


def test_with_both_it_weighs_about_as_much_as_another() -> None:
    assert relative_norm(floor=True, limit=True) < 2
