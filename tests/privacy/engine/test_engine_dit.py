"""The engine on the backbone itself: all switches and operators, draws, micro-batches, and against Opacus."""

import warnings
from copy import deepcopy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from oracles.per_unit_gradients import clipped_sum, norm, per_unit_gradients, relative_error
from tamedit.model.bounds import OPERATORS, Bounds
from tamedit.model.dit import DiffusionTransformer, is_conditioning
from tamedit.model.zoo import NetworkConfig
from tamedit.privacy.engine import Engine
from tamedit.windows.batch import Context

BOTH = Bounds(condition=2.0, scale=0.5, shift=0.5, gate=0.4)
SWITCHES = {"none": Bounds(), "c": BOTH.only_condition(), "modulation": BOTH.only_modulation(), "both": BOTH}
Rows = tuple[Tensor, Tensor, Context, Tensor]


def network(bounds: Bounds, operator: str = "tanh", length: int = 12, width: int = 8, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    shape = {"target_channels": 2, "covariate_channels": 1, "length": length, "depth": 2, "width": width, "heads": 2}
    module = DiffusionTransformer(NetworkConfig(**shape, bounds=(bounds,), operator=operator)).double()
    with torch.no_grad():
        for parameter in module.parameters():  # the zeros of the start would hide most gradients
            parameter.add_(0.8 * width**-0.5 * torch.randn_like(parameter))
    return module


def rows(count: int, length: int = 12, dtype: torch.dtype = torch.float64, seed: int = 0) -> Rows:
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator).to(dtype)

    seen = (draw(count, length, 2) > 0).to(dtype)
    context = Context(
        draw(count, length, 2) * seen, seen, draw(count, length, 2), draw(count, length, 1), draw(count, 2) * 0 + 1
    )
    time = torch.randint(0, 1000, (count,), generator=generator)
    return draw(count, length, 2), time, context, draw(count, length, 2)


def loss(module: nn.Module, batch: Rows) -> Tensor:
    noised, time, context, target = batch
    return (module(noised, time, context) - target).square().mean((1, 2))


def take(batch: Rows, index: slice | Tensor) -> Rows:
    return tuple(value[index] for value in batch)  # type: ignore[return-value]


def assert_agrees(module: nn.Module, batch: Rows, units: int, draws: int, micro_batch: int, tolerance: float) -> None:
    exact = deepcopy(module).double()
    double = (batch[0].double(), batch[1], Context(*(v.double() for v in vars(batch[2]).values())), batch[3].double())
    gradients = per_unit_gradients(exact, lambda index: loss(exact, take(double, index)), units, draws)
    norms = torch.tensor([norm(one) for one in gradients], dtype=torch.float64)
    clip = float(norms.median())
    result = Engine(module, clip=clip, micro_batch=micro_batch)(loss, batch, units=units, draws=draws)
    torch.testing.assert_close(result.norms, norms, rtol=tolerance, atol=0)
    assert relative_error(result.sums, clipped_sum(gradients, clip)) < tolerance


@pytest.mark.parametrize("switch", SWITCHES)
@pytest.mark.parametrize("operator", OPERATORS)
def test_every_switch_and_operator(switch, operator):
    assert_agrees(network(SWITCHES[switch], operator), rows(4), 2, 2, 1, 1e-10)


@settings(deadline=None, max_examples=12)
@given(
    switch=st.sampled_from(sorted(SWITCHES)),
    units=st.integers(1, 4),
    draws=st.integers(1, 3),
    micro_batch=st.integers(1, 5),
    length=st.sampled_from([3, 12]),
    width=st.sampled_from([4, 32]),
    single=st.booleans(),
)
def test_shapes_draws_and_micro_batches(switch, units, draws, micro_batch, length, width, single):
    dtype, tolerance = (torch.float32, 1e-5) if single else (torch.float64, 1e-10)
    module = network(SWITCHES[switch], length=length, width=width).to(dtype)
    assert_agrees(module, rows(units * draws, length, dtype), units, draws, micro_batch, tolerance)


def test_opacus_agrees():
    opacus = pytest.importorskip("opacus")
    module, batch = network(BOTH), rows(5)
    ours = Engine(module, clip=0.7)(loss, batch, units=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = opacus.GradSampleModule(deepcopy(module), loss_reduction="sum")
        loss(theirs, batch).sum().backward()
    gradients = [
        {name.removeprefix("_module."): value.grad_sample[unit] for name, value in theirs.named_parameters()}
        for unit in range(5)
    ]
    expected = torch.tensor([norm(one) for one in gradients], dtype=torch.float64)
    torch.testing.assert_close(ours.norms, expected, rtol=1e-10, atol=0)
    assert relative_error(ours.sums, clipped_sum(gradients, 0.7)) < 1e-10


def test_torch_func_agrees():
    module, batch = network(BOTH), rows(6)
    ours = Engine(module, clip=0.7)(loss, batch, units=3, draws=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = Engine(module, clip=0.7, fallback="torch.func", micro_batch=2)(loss, batch, units=3, draws=2)
    torch.testing.assert_close(ours.norms, theirs.norms, rtol=1e-10, atol=0)
    assert relative_error(ours.sums, theirs.sums) < 1e-10


def test_other_examples_do_not_matter():
    module, batch = network(BOTH), rows(4)
    engine = Engine(module, clip=1e9)
    alone = engine(loss, take(batch, slice(0, 1)), units=1)
    shuffled = engine(loss, take(batch, torch.tensor([3, 0, 1])), units=3)
    replaced = engine(loss, tuple(torch.cat([a[:1], b]) if isinstance(a, Tensor) else _joined(a, b) for a, b in
                                  zip(batch, rows(3, seed=5), strict=True)), units=4)  # fmt: skip
    torch.testing.assert_close(shuffled.norms[1], alone.norms[0], rtol=1e-12, atol=0)
    torch.testing.assert_close(replaced.norms[0], alone.norms[0], rtol=1e-12, atol=0)


def _joined(first: Context, others: Context) -> Context:
    pairs = zip(vars(first).values(), vars(others).values(), strict=True)
    return Context(*(torch.cat([one[:1], more]) for one, more in pairs))


def test_a_spoiled_window_changes_nothing_but_its_own_share():
    module, batch = network(BOTH), rows(4)
    engine = Engine(module, clip=0.5)
    rest = engine(loss, take(batch, torch.tensor([0, 1, 3])), units=3)
    batch[2].values[2, 3, 0] = float("nan")
    spoiled = engine(loss, batch, units=4)
    assert not spoiled.norms[2].isfinite()
    assert relative_error(spoiled.sums, rest.sums) < 1e-12


def test_norms_of_conditioning_and_the_rest():
    module, batch = network(SWITCHES["none"]), rows(3)
    engine = Engine(module, groups=lambda name: "cond" if is_conditioning(name) else "other")
    result = engine(loss, batch, units=3)
    gradients = per_unit_gradients(module, lambda index: loss(module, take(batch, index)), 3, 1)
    for unit, one in enumerate(gradients):
        for group, wanted in (("cond", True), ("other", False)):
            own = norm({name: value for name, value in one.items() if is_conditioning(name) is wanted})
            assert result.group_norms[group][unit].item() == pytest.approx(own, rel=1e-10)


def test_the_untrained_network_is_accepted():
    """At the start only the output layer has a gradient: nothing is refused, and its norm is right."""
    module = DiffusionTransformer(NetworkConfig(target_channels=2, covariate_channels=1, length=12, depth=2)).double()
    assert_agrees(module, rows(3), 3, 1, 2, 1e-10)
