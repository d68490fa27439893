"""What the engine cannot do soundly it refuses by name, with the remedy."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tamedit.errors import UserError
from tamedit.privacy.engine import Engine

X = torch.randn(4, 4, 3, generator=torch.Generator().manual_seed(0))


def loss(module: nn.Module, batch: Tensor) -> Tensor:
    return module(batch).flatten(1).square().sum(1)


class Plain(nn.Module):
    def __init__(self, **extra) -> None:
        super().__init__()
        self.body = nn.Linear(3, 3)
        for name, value in extra.items():
            setattr(self, name, value)

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x)


class Scaled(Plain):
    def forward(self, x: Tensor) -> Tensor:
        return self.body(x) * self.gain


class Twice(Plain):
    def forward(self, x: Tensor) -> Tensor:
        return self.body(self.body(x))


class Outside(Plain):
    def forward(self, x: Tensor) -> Tensor:
        return F.linear(self.body(x), self.body.weight)


class SequenceFirst(Plain):
    """As many steps as examples, so that shapes alone do not show the swapped axes."""

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x.transpose(0, 1)).transpose(0, 1)


class Centred(Plain):
    def forward(self, x: Tensor) -> Tensor:
        return self.body(x - x.mean(0)).tanh() - self.body.bias.detach()


class CentredLater(Plain):
    def forward(self, x: Tensor) -> Tensor:
        h = self.body(x)
        return h - h.mean(0)


class Positions(Plain):
    def forward(self, x: Tensor) -> Tensor:
        return self.body(x) + self.table(torch.arange(4))


class FirstRow(Plain):
    def forward(self, x: Tensor) -> Tensor:
        return self.body(x) + self.token[0]


class Running(Plain):
    """Centres by a running mean of the data."""

    def forward(self, x: Tensor) -> Tensor:
        self.mean.lerp_(x.detach().mean((0, 1)), 0.1)
        return self.body(x - self.mean)


class Silent(Plain):
    """Centres by the batch, behind the back of autograd."""

    def forward(self, x: Tensor) -> Tensor:
        h = self.body(x)
        return h - h.mean(0, keepdim=True).detach()


class StraightThrough(Plain):
    """The loss of a unit is its own, its gradient is not: the sign of a mean over the batch turns it around."""

    def forward(self, x: Tensor) -> Tensor:
        h = self.body(x)
        turned = h * h.mean().sign().detach() * (1 + h.square().mean().detach())
        return h.detach() + turned - turned.detach()


class Noisy(Plain):
    def forward(self, x: Tensor) -> Tensor:
        return self.body(x) + torch.randn_like(x)


REFUSED_AT_ONCE = [
    (lambda: Scaled(gain=nn.Parameter(torch.ones(3))), r"'gain'.*leading axis of 1"),
    (lambda: Scaled(gain=nn.Parameter(torch.tensor(1.0))), r"'gain'"),
    (lambda: Plain(attention=nn.MultiheadAttention(4, 2)), r"'attention\.in_proj_weight'.*torch\.func"),
    (lambda: Plain(recurrent=nn.GRU(3, 3)), r"'recurrent\.weight_ih_l0'"),
    (lambda: Plain(norm=nn.BatchNorm1d(3)), r"'norm'.*BatchNorm1d.*LayerNorm"),
    (lambda: Plain(norm=nn.InstanceNorm1d(3, track_running_stats=True)), r"'norm'.*InstanceNorm1d.*LayerNorm"),
    (lambda: Plain(head=nn.utils.weight_norm(nn.Linear(3, 3))), r"'head\.weight_g' of a Linear"),
    (lambda: Plain(head=nn.utils.spectral_norm(nn.Linear(3, 3))), r"'head\.weight_orig' of a Linear"),
    (lambda: Plain().bfloat16(), r"'body\.weight' is torch\.bfloat16.*autocast"),
    (lambda: Plain().half(), r"'body\.weight' is torch\.float16.*autocast"),
    (lambda: Plain(wide=nn.Conv1d(4, 4, 3, groups=2)), r"'wide\.weight'"),
    (lambda: Plain(table=nn.Embedding(3, 3, max_norm=1.0)), r"'table\.weight'"),
]


@pytest.mark.filterwarnings("ignore:.*weight_norm:FutureWarning")
@pytest.mark.parametrize(("build", "message"), REFUSED_AT_ONCE)
def test_layers_that_cannot_be_caught(build, message):
    with pytest.raises(UserError, match=message):
        Engine(build())


def test_tied_weights():
    module = Plain(head=nn.Linear(3, 3))
    module.head.weight = module.body.weight
    with pytest.raises(UserError, match=r"'head\.weight' is tied to 'body\.weight'"):
        Engine(module)


REFUSED_IN_USE = [
    (Twice, r"'body' is used twice"),
    (Outside, r"'body\.weight' is used outside"),
    (SequenceFirst, r"'body' mixes examples"),
    (CentredLater, r"'body' mixes examples"),
    (lambda: Positions(table=nn.Embedding(4, 3)), r"'table' mixes examples"),
    (lambda: FirstRow(token=nn.Parameter(torch.ones(1, 3))), r"mixes examples"),
    (Silent, r"alone and .* in a batch, .*: the module or the loss mixes examples"),
    (StraightThrough, r"the module or the loss mixes examples"),
]


@pytest.mark.parametrize(("build", "message"), REFUSED_IN_USE)
def test_uses_that_break_the_per_unit_gradient(build, message):
    with pytest.raises(UserError, match=message):
        Engine(build())(loss, X, units=4)


def test_a_loss_that_is_divided_by_a_count_of_the_batch():
    with pytest.raises(UserError, match="do not divide by a count"):
        Engine(Plain())(lambda module, batch: loss(module, batch) / len(batch), X, units=4)


def test_a_detached_statistic_would_move_the_sum_beyond_the_bound():
    """What is refused: without the test, one unit changes the sums of the others by several C."""
    module = StraightThrough()
    nn.init.eye_(module.body.weight)
    nn.init.zeros_(module.body.bias)
    batch = torch.cat([torch.ones(6, 4, 3), torch.full((1, 4, 3), -100.0)])
    engine = Engine(module, clip=1.0)
    for site in engine.backend.sites:
        site.verified = True  # as if the test were not there
    first, second = engine(loss, batch, units=7).sums, engine(loss, batch[:6], units=6).sums
    moved = torch.stack([(first[name] - second[name]).square().sum() for name in first]).sum().sqrt()
    assert moved > 3
    with pytest.raises(UserError, match="mixes examples"):
        Engine(module, clip=1.0)(loss, batch, units=7)


@pytest.mark.parametrize("build", [Silent, CentredLater, StraightThrough])
@pytest.mark.parametrize("bad", [[0], [0, 3], [0, 1, 2]])
def test_mixing_is_found_beside_units_that_are_not_finite(build, bad):
    batch = X.clone()
    batch[bad] = float("nan")
    with pytest.raises(UserError, match="mixes examples"):
        Engine(build())(loss, batch, units=4)


def test_a_batch_without_a_finite_unit_leaves_the_test_to_the_next():
    engine = Engine(StraightThrough())
    engine(loss, torch.full_like(X, float("nan")), units=4)
    assert not any(site.verified for site in engine.backend.sites)
    with pytest.raises(UserError, match="mixes examples"):
        engine(loss, X, units=4)


def test_units_that_are_not_finite_are_no_mixing():
    batch = X.clone()
    batch[0], batch[2, 0, 0] = float("nan"), float("inf")
    assert all(torch.isfinite(one).all() for one in Engine(Plain())(loss, batch, units=4).sums.values())


def test_half_precision_is_no_mixing_and_hides_none():
    wide, big = torch.randn(12, 64, generator=torch.Generator().manual_seed(1)), nn.Sequential(nn.Linear(64, 64))
    with torch.autocast("cpu", torch.bfloat16):
        Engine(big)(lambda module, batch: loss(module, batch).float(), wide, units=12)
        with pytest.raises(UserError, match="mixes examples"):
            Engine(Silent())(lambda module, batch: loss(module, batch).float(), X * 1e-3, units=4)


def test_a_buffer_that_keeps_data():
    module = Running()
    module.register_buffer("mean", torch.zeros(3))
    with pytest.raises(UserError, match="buffer 'mean' was written to"):
        Engine(module)(loss, X, units=4)


def test_randomness_in_the_forward_pass_is_no_mixing_and_stays_as_it_was():
    torch.manual_seed(5)
    with pytest.warns(UserWarning, match="draws random numbers"):
        Engine(Noisy())(loss, X, units=4)
    after = torch.rand(1)
    torch.manual_seed(5)
    loss(Noisy(), X)
    assert torch.equal(after, torch.rand(1))


def test_an_input_without_one_row_an_example():
    with pytest.raises(UserError, match=r"'table' got an input of shape \(4,\) for 3 examples"):
        Engine(Positions(table=nn.Embedding(4, 3)))(loss, X[:3], units=3)


def test_mixing_is_found_even_when_the_first_gradients_vanish():
    class ZeroHead(Plain):
        def forward(self, x: Tensor) -> Tensor:
            return self.head(CentredLater.forward(self, x)) - 1

    module = ZeroHead(head=nn.Linear(3, 1))
    nn.init.zeros_(module.head.weight)
    with pytest.raises(
        UserError, match="mixes examples"
    ):  # nothing flows past the head yet, but it sees what was mixed
        Engine(module)(loss, X, units=4)


@pytest.mark.parametrize("build", [Twice, Outside, lambda: Scaled(gain=nn.Parameter(torch.ones(3)))])
def test_the_fallback_takes_what_book_keeping_refuses(build):
    module = build()
    result = Engine(module, clip=1e9, fallback="torch.func", micro_batch=3)(loss, X, units=4)
    expected = torch.autograd.grad(loss(module, X).sum(), list(module.parameters()))
    for value, gradient in zip(result.sums.values(), expected, strict=True):
        torch.testing.assert_close(value, gradient, rtol=1e-4, atol=1e-5)


def test_the_fallback_still_refuses_batch_statistics():
    with pytest.raises(UserError, match="BatchNorm1d"):
        Engine(Plain(norm=nn.BatchNorm1d(3)), fallback="torch.func")


@pytest.mark.parametrize(
    "arguments",
    [
        {"clip": 0.0},
        {"clip": float("inf")},
        {"micro_batch": 0},
        {"mode": "soft"},
        {"fallback": "loop"},
        {"shares": {"all": 1.0}},
        {"mode": "groups", "shares": {"other": 1.0}},
        {"mode": "groups", "shares": {"all": -1.0}},
    ],
)
def test_wrong_arguments(arguments):
    with pytest.raises(UserError, match=next(iter(set(arguments) - {"mode"}), "mode")):
        Engine(Plain(), **arguments)


def test_losses_and_rows_of_wrong_shape():
    engine = Engine(Plain())
    with pytest.raises(UserError, match="one loss per example"):
        engine(lambda module, batch: loss(module, batch).mean(), X, units=4)
    with pytest.raises(UserError, match="6 rows"):
        engine(loss, X, units=3, draws=2)


class Cancelling(nn.Module):
    """The output of the first example is zero but for rounding, and so is its gradient: no two batches round it alike."""

    def __init__(self, x: Tensor) -> None:
        super().__init__()
        self.body = nn.Linear(x.shape[1], 1, bias=False)
        first, weight = x[0].double(), self.body.weight.data[0].double()
        self.body.weight.data[0] = (weight - first * (weight @ first) / (first @ first)).float()

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x)


class CancellingAndMixing(Cancelling):
    def forward(self, x: Tensor) -> Tensor:
        h = self.body(x)
        return h - 1e-6 * h.detach().mean(0)


def test_rounding_of_a_tiny_gradient_is_not_mixing() -> None:
    x = torch.randn(8, 400, generator=torch.Generator().manual_seed(1))
    module = Cancelling(x)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    norms = Engine(module, clip=1.0)(loss, x, units=8).norms
    assert norms[0] < 1e-4 < norms[1:].min()
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
    with pytest.raises(UserError, match="mixes examples"):
        Engine(CancellingAndMixing(x), clip=1.0)(loss, x, units=8)
