"""The engine's guarantees on small modules: every layer, clipping modes, neighbours, bad and empty batches."""

from copy import deepcopy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from oracles.per_unit_gradients import clipped_sum, norm, per_unit_gradients, relative_error
from tamedit import kernels
from tamedit.errors import UserError
from tamedit.privacy.engine.clipping import AUTOMATIC_FLOOR, Engine

LENGTH, WIDTH = 5, 4


class Bare(nn.Module):
    """Positions and a learned token, as bare parameters with a leading axis of 1."""

    def __init__(self) -> None:
        super().__init__()
        self.positions = nn.Parameter(torch.randn(1, LENGTH, WIDTH))
        self.token = nn.Parameter(torch.randn(1, 1, WIDTH))
        self.mix = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        token = self.token.expand(len(x), -1, -1)
        return self.mix(torch.cat([token, x + self.positions], dim=1)).tanh()


class Convolved(nn.Module):
    def __init__(self, **options) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(WIDTH, 3, **options)

    def forward(self, x: Tensor) -> Tensor:
        return self.convolution(x.transpose(1, 2)).tanh()


class Looked(nn.Module):
    def __init__(self, **options) -> None:
        super().__init__()
        self.table = nn.Embedding(6, WIDTH, **options)

    def forward(self, x: Tensor) -> Tensor:
        return self.table((x[..., 0].abs() * 3).long() % 6).sin() * x


class Pooled(nn.Module):
    """A layer on vectors (B, D) beside one on sequences."""

    def __init__(self) -> None:
        super().__init__()
        self.steps, self.whole = nn.Linear(WIDTH, 8), nn.Linear(WIDTH, 8, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.steps(x).tanh() * self.whole(x.mean(1))[:, None].sin()


def chain(*layers: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), *layers, nn.Tanh(), nn.Linear(WIDTH, 2))


MODULES = {
    "linear": lambda: nn.Sequential(nn.Linear(WIDTH, 7), nn.GELU(), nn.Linear(7, 2, bias=False)),
    "wide": lambda: nn.Sequential(nn.Linear(WIDTH, 96), nn.GELU(), nn.Linear(96, 96), nn.Tanh()),  # factored
    "layer_norm": lambda: chain(nn.LayerNorm(WIDTH)),
    "layer_norm_without_shift": lambda: chain(nn.LayerNorm(WIDTH, bias=False)),
    "rms_norm": lambda: chain(nn.RMSNorm(WIDTH)),
    "convolution": lambda: Convolved(kernel_size=3, padding=1),
    "strided_convolution": lambda: Convolved(kernel_size=2, stride=2, dilation=2, padding=2, bias=False),
    "same_circular_convolution": lambda: Convolved(kernel_size=4, padding="same", padding_mode="circular"),
    "valid_convolution": lambda: Convolved(kernel_size=3, padding="valid"),
    "embedding": lambda: nn.Sequential(Looked(), nn.Linear(WIDTH, 2)),
    "padded_embedding": lambda: Looked(padding_idx=0),
    "bare": Bare,
    "pooled": Pooled,
    "in_place": lambda: nn.Sequential(nn.Linear(WIDTH, 7), nn.ReLU(inplace=True), nn.Linear(7, 2)),
}


def loss(module: nn.Module, batch: Tensor) -> Tensor:
    return module(batch).flatten(1).square().sum(1)


def build(name: str, dtype: torch.dtype = torch.float64, seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    module = MODULES[name]().double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn_like(parameter))
    return module.to(dtype)


def data(examples: int, dtype: torch.dtype = torch.float64, seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(examples, LENGTH, WIDTH, generator=generator, dtype=torch.float64).to(dtype)


def oracle(module: nn.Module, batch: Tensor, units: int, draws: int = 1) -> list[dict[str, Tensor]]:
    return per_unit_gradients(module, lambda rows: loss(module, batch[rows]), units, draws)


@pytest.mark.parametrize("name", MODULES)
@settings(deadline=None, max_examples=8)
@given(units=st.integers(1, 5), draws=st.integers(1, 3), micro_batch=st.integers(1, 6), seed=st.integers(0, 99))
def test_norms_and_sums_equal_a_loop_of_single_gradients(name, units, draws, micro_batch, seed):
    for dtype, tolerance in ((torch.float64, 1e-10), (torch.float32, 1e-5)):
        module, batch = build(name, dtype, seed), data(units * draws, dtype, seed)
        gradients = oracle(deepcopy(module).double(), batch.double(), units, draws)
        clip = norm(gradients[0]) * 0.7 + 1e-3
        result = Engine(module, clip=clip, micro_batch=micro_batch)(loss, batch, units=units, draws=draws)
        expected = torch.tensor([norm(one) for one in gradients], dtype=torch.float64)
        torch.testing.assert_close(result.norms, expected, rtol=tolerance, atol=0)
        assert relative_error(result.sums, clipped_sum(gradients, clip)) < tolerance
        assert result.sensitivity == clip
        losses = loss(module, batch).detach().view(units, draws).mean(1)
        torch.testing.assert_close(result.losses, losses)


@pytest.mark.parametrize("name", ["linear", "layer_norm", "convolution", "embedding", "bare"])
def test_torch_func_agrees(name):
    module, batch = build(name), data(6)
    ours = Engine(module, clip=0.5)(loss, batch, units=3, draws=2)
    theirs = Engine(module, clip=0.5, fallback="torch.func", micro_batch=2)(loss, batch, units=3, draws=2)
    assert relative_error(ours.sums, theirs.sums) < 1e-10
    torch.testing.assert_close(ours.norms, theirs.norms)


def grouped(name: str) -> str:
    return "first" if name.startswith("0") else "rest"


def test_every_mode_keeps_each_unit_within_the_clip():
    module, batch = build("linear"), data(4)
    gradients = oracle(module, batch, 4)
    for mode, shares in (
        ("flat", None),
        ("automatic", None),
        ("groups", None),
        ("groups", {"first": 3.0, "rest": 1.0}),
    ):
        engine = Engine(module, clip=0.3, mode=mode, groups=grouped, shares=shares)
        for unit in range(4):
            alone = engine(loss, batch[unit : unit + 1], units=1)
            assert norm(alone.sums) <= alone.sensitivity * (1 + 1e-12)
            if mode == "automatic":
                assert norm(alone.sums) == pytest.approx(
                    0.3 * alone.norms.item() / (alone.norms.item() + AUTOMATIC_FLOOR)
                )
            if mode == "groups":
                share = dict.fromkeys(("first", "rest"), 1.0) if shares is None else shares
                for group, limit in share.items():
                    own = norm({n: value for n, value in gradients[unit].items() if grouped(n) == group})
                    part = norm({n: value for n, value in alone.sums.items() if grouped(n) == group})
                    limit_of_group = 0.3 * limit / sum(s * s for s in share.values()) ** 0.5
                    assert part == pytest.approx(min(own, limit_of_group))
                    assert alone.group_norms[group].item() == pytest.approx(own)


def test_norms_split_into_groups_and_parameters():
    module, batch = build("linear"), data(3)
    result = Engine(module, groups=grouped)(loss, batch, units=3)
    for unit, one in enumerate(oracle(module, batch, 3)):
        for name, value in one.items():
            assert result.parameter_norms[name][unit].item() == pytest.approx(float(value.norm()))
    total = sum(value.square() for value in result.group_norms.values()).sqrt()
    torch.testing.assert_close(total, result.norms)


@settings(deadline=None, max_examples=20)
@given(
    name=st.sampled_from(sorted(MODULES)),
    units=st.integers(2, 5),
    out=st.integers(0, 4),
    clip=st.floats(1e-3, 1e3),
    mode=st.sampled_from(["flat", "automatic", "groups"]),
)
def test_a_neighbour_moves_the_sum_by_at_most_the_sensitivity(name, units, out, clip, mode):
    module, batch = build(name), data(units)
    engine = Engine(module, clip=clip, mode=mode, groups=lambda name: name[-1])
    keep = torch.arange(units) != out % units
    more, less = engine(loss, batch, units=units), engine(loss, batch[keep], units=units - 1)
    assert norm({key: more.sums[key] - less.sums[key] for key in more.sums}) <= clip * (1 + 1e-9)


@pytest.mark.parametrize("poison", [float("nan"), float("inf"), -float("inf"), 1e300])
@pytest.mark.parametrize("name", sorted(set(MODULES) - {"embedding", "padded_embedding"}))
def test_a_bad_example_changes_nothing_but_its_own_share(name, poison):
    module, batch = build(name), data(4)
    spoiled = batch.clone()
    spoiled[2, 1, 0] = poison
    engine = Engine(module, clip=0.5, micro_batch=3)
    result, rest = engine(loss, spoiled, units=4), engine(loss, batch[[0, 1, 3]], units=3)
    good = [0, 1, 3]
    torch.testing.assert_close(result.norms[good], rest.norms)
    if not result.norms[2].isfinite():
        assert result.factors["all"][2] == 0
        assert relative_error(result.sums, rest.sums) < 1e-12
    assert norm({key: result.sums[key] - rest.sums[key] for key in rest.sums}) <= 0.5 * (1 + 1e-9)


def test_a_bad_gradient_of_a_few_rows_of_a_table_counts_as_zero():
    module, batch = build("embedding"), data(3)
    spoiled = batch.clone()
    spoiled[1, 0, 1] = float("nan")  # beside the number that is looked up: the row's gradient is not finite
    engine = Engine(module, clip=0.5)
    result, rest = engine(loss, spoiled, units=3), engine(loss, batch[[0, 2]], units=2)
    assert result.norms.isfinite().tolist() == [True, False, True]
    assert relative_error(result.sums, rest.sums) < 1e-12


def test_one_bad_draw_spoils_its_unit_alone():
    module, batch = build("pooled"), data(6)
    batch[3] = float("nan")
    result = Engine(module)(loss, batch, units=3, draws=2)
    assert result.norms.isfinite().tolist() == [True, False, True]
    assert all(value.isfinite().all() for value in result.sums.values())


def test_an_empty_batch_gives_zero_sums_and_asks_nobody():
    result = Engine(build("linear"), groups=grouped)(lambda module, batch: pytest.fail("called"), data(0), units=0)
    assert all(not value.any() for value in result.sums.values())
    assert result.norms.shape == result.losses.shape == result.group_norms["rest"].shape == (0,)


def test_the_module_is_left_as_it_was():
    module, batch = build("bare"), data(3)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    Engine(module)(loss, batch, units=3)
    assert all(parameter.grad is None and isinstance(parameter, nn.Parameter) for parameter in module.parameters())
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert all("forward" not in layer.__dict__ for layer in module.modules())
    with pytest.raises(ZeroDivisionError):
        Engine(module)(lambda module, batch: 1 / 0, batch, units=3)
    assert all("forward" not in layer.__dict__ for layer in module.modules())
    assert isinstance(module.token, nn.Parameter)


def test_frozen_and_unused_parameters():
    module = build("linear")
    module[0].weight.requires_grad_(False)
    module.add_module("unused", nn.Linear(2, 2, dtype=torch.float64))
    result = Engine(module, clip=0.1)(lambda m, b: loss(m[:3], b), data(3), units=3)
    assert "0.weight" not in result.sums
    assert not result.sums["unused.weight"].any()
    assert result.sums["0.bias"].any()


def test_any_nest_of_tensors_is_a_batch():
    module, batch = build("linear"), data(4)
    expected = Engine(module, micro_batch=3)(loss, batch, units=4)
    nested = {"x": (batch, [batch * 2])}
    result = Engine(module, micro_batch=3)(lambda m, b: loss(m, b["x"][1][0] / 2), nested, units=4)
    assert relative_error(result.sums, expected.sums) < 1e-12
    with pytest.raises(UserError, match="int"):
        Engine(module)(loss, (batch, 3), units=4)


def test_a_factored_norm_does_not_vanish_where_the_square_of_one_factor_does():
    """g = 1e-30 and a = 1e30 make a gradient of ones, of norm 8; in single precision ‖g‖ would be 0 and nothing be clipped."""
    layer = nn.Linear(8, 8, bias=False)
    batch = torch.full((2, 8), 1e30)
    result = Engine(layer, clip=1.0)(lambda module, rows: module(rows).sum(1) * 1e-30, batch, units=2)
    assert torch.allclose(result.norms, torch.full((2,), 8.0, dtype=result.norms.dtype))
    assert float(result.sums["weight"].norm()) == pytest.approx(2.0, rel=1e-5)


@pytest.mark.skipif(kernels._KERNEL is None, reason="this PyTorch has no oneDNN")
def test_inputs_get_their_gradients_by_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two layers: two calls forward, and one backward, since nothing trained is behind the first layer."""
    monkeypatch.setattr(kernels, "_SMALL", 1)
    torch.manual_seed(0)
    module, batch, calls = (
        nn.Sequential(nn.Linear(WIDTH, 8), nn.Tanh(), nn.Linear(8, 3)),
        torch.randn(6, LENGTH, WIDTH),
        [],
    )
    engine = Engine(module, clip=0.1)

    def losses(module: nn.Module, rows: Tensor) -> Tensor:
        return module(rows).square().sum((1, 2))

    engine(losses, batch, units=6)  # tests whether examples mix, with passes of its own
    kernel = kernels._KERNEL
    monkeypatch.setattr(kernels, "_KERNEL", lambda *arguments: calls.append(1) or kernel(*arguments))
    by_kernel = engine(losses, batch, units=6).sums
    assert len(calls) == 3
    monkeypatch.setattr(kernels, "_KERNEL", None)
    for name, plain in engine(losses, batch, units=6).sums.items():
        torch.testing.assert_close(by_kernel[name], plain, rtol=1e-5, atol=1e-7)
