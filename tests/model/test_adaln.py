"""The drop-in is bounded unless told otherwise, refuses what it cannot do, and takes the weights of a DiT."""

from collections.abc import Iterator
from typing import Any

import jaxtyping
import pytest
import torch
from torch import Tensor, nn

from tamedit import BoundedAdaLNZero, Bounds, UserError, gated, modulate
from tamedit.model.zoo import REFERENCE


@pytest.fixture
def unchecked() -> Iterator[None]:
    """As users run it: no shapes are checked but by the code itself."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def test_bounded_unless_told_otherwise() -> None:
    module, free = BoundedAdaLNZero(64, 32), BoundedAdaLNZero(64, 32, Bounds())
    assert module.bounds == REFERENCE["none"].scaled(0.9)
    nn.init.normal_(module.projection.weight, std=100)
    free.load_state_dict(module.state_dict())
    condition = 1000 * torch.randn(8, 32)
    for bounded, unbounded in zip(module(condition), free(condition), strict=True):
        for value, other, limit in zip(bounded, unbounded, list(dict(module.bounds).values())[1:], strict=True):
            assert value.abs().max() <= torch.tensor(limit)
            assert other.abs().max() > 1000 * limit


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"operator": "tan"}, "operator='tan' is unknown; choose tanh, "),
        ({"bounds": None}, r"bounds=None is not possible; .* Bounds\(\) to leave everything free"),
    ],
)
def test_a_wrong_choice_is_refused_when_it_is_built(unchecked: None, wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        BoundedAdaLNZero(64, 32, **wrong)


@pytest.mark.parametrize("shape", [(8, 10, 32), (32,)])
def test_a_condition_of_another_form_is_refused_when_it_is_given(unchecked: None, shape: tuple[int, ...]) -> None:
    with pytest.raises(UserError, match="one vector per example"):
        BoundedAdaLNZero(64, 32)(torch.randn(shape))


class DiTBlock(nn.Module):
    """DiT's own lines (facebookresearch/DiT, models.py), with linear maps for attention and MLP."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.attn, self.mlp = nn.Linear(width, width), nn.Linear(width, width)
        self.adaLN_modulation = nn.Sequential(nn.SiLU(), nn.Linear(width, 6 * width, bias=True))

    def forward(self, x: Tensor, c: Tensor) -> Tensor:
        shift_msa, scale_msa, gate_msa, shift_mlp, scale_mlp, gate_mlp = self.adaLN_modulation(c).chunk(6, dim=1)
        x = x + gate_msa.unsqueeze(1) * self.attn(dit_modulate(self.norm(x), shift_msa, scale_msa))
        return x + gate_mlp.unsqueeze(1) * self.mlp(dit_modulate(self.norm(x), shift_mlp, scale_mlp))


def dit_modulate(x: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
    return x * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1)


def test_the_weights_of_a_dit_block_give_its_modulation() -> None:
    block, ours = DiTBlock(16), BoundedAdaLNZero(16, 16, Bounds())
    state = block.state_dict()
    ours.load_dit(state["adaLN_modulation.1.weight"], state["adaLN_modulation.1.bias"])
    x, c = torch.randn(5, 7, 16), torch.randn(5, 16)
    attention, mlp = ours(nn.functional.silu(c))
    shift_msa, scale_msa, gate_msa, shift_mlp, scale_mlp, gate_mlp = block.adaLN_modulation(c).chunk(6, dim=1)
    for found, wanted in ((attention, (scale_msa, shift_msa, gate_msa)), (mlp, (scale_mlp, shift_mlp, gate_mlp))):
        for one, other in zip(found, wanted, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=1e-6)
    h = x + gated(attention, block.attn(modulate(block.norm(x), attention)))
    torch.testing.assert_close(h + gated(mlp, block.mlp(modulate(block.norm(h), mlp))), block(x, c))


def test_the_weights_of_dits_final_layer_have_no_gate() -> None:
    final, ours = nn.Sequential(nn.SiLU(), nn.Linear(12, 2 * 16)), BoundedAdaLNZero(16, 12, Bounds(), branches=1)
    ours.load_dit(final[1].weight, final[1].bias)
    c = torch.randn(5, 12)
    (found,) = ours(nn.functional.silu(c))
    shift, scale = final(c).chunk(2, dim=1)
    torch.testing.assert_close(found.scale, scale, rtol=0, atol=1e-6)
    torch.testing.assert_close(found.shift, shift, rtol=0, atol=1e-6)
    assert not found.gate.any()


def test_weights_of_another_size_are_refused_and_nothing_is_changed(unchecked: None) -> None:
    ours = BoundedAdaLNZero(16, 12)
    for weight, bias in ((torch.ones(96, 16), torch.ones(96)), (torch.ones(96, 12), torch.ones(32))):
        with pytest.raises(UserError, match="check width, condition_width and branches"):
            ours.load_dit(weight, bias)
    assert not ours.projection.weight.any()
