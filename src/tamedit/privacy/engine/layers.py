"""Layers whose per-unit gradients are collected during one ordinary backward pass.

A layer y = f(x; θ) enters the autograd graph as a function of x alone. Its backward gives the gradient of x and hands
x and the gradient g of y to the layer's `Site`, which computes the gradient of θ per unit. Autograd itself never
computes the gradient of a parameter. With R = draws × positions rows per unit:

    Linear             W: Σ_r g_r a_rᵀ,  b: Σ_r g_r
    Conv1d             the same, a_r = the window under the kernel
    LayerNorm, RMSNorm scale: Σ_r g_r ⊙ x̂_r,  shift: Σ_r g_r
    Embedding          row i: Σ_{r: index_r = i} g_r
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tamedit.errors import UserError
from tamedit.kernels import linear
from tamedit.privacy.engine.pieces import Factored, Kept, Piece, Rows
from tamedit.privacy.engine.workspace import Workspace

KEPT_COST = 16  # storing, measuring and summing one entry of a kept gradient costs about this many multiply-adds
_UNSAFE_VIEW = torch.ops.aten._unsafe_view.default


def like(tensor: Tensor, other: Tensor) -> Tensor:
    """The tensor in the other's precision, which autocast may have changed."""
    return tensor if tensor.dtype == other.dtype else tensor.to(other.dtype)


class Tape:
    """What all sites of a module share while a micro-batch is on its way."""

    def __init__(self) -> None:
        self.workspace = Workspace()
        self.units, self.draws = 0, 1
        self.probed: int | None = None  # the one unit whose loss flows back, while it is tested whether examples mix
        self.anchor = torch.zeros((), requires_grad=True)  # lets gradients flow through layers of the raw data


class _Caught(torch.autograd.Function):
    """y = f(x; θ) with θ held constant; the backward pass shows (x, g) to the site."""

    @staticmethod
    def forward(ctx: Any, site: "Site", inputs: Tensor, anchor: Tensor) -> Tensor:
        ctx.site = site
        ctx.save_for_backward(inputs)
        return site.compute(inputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor | None, None]:
        (inputs,) = ctx.saved_tensors
        ctx.site.receive(inputs, gradients[0])
        return None, ctx.site.input_gradient(gradients[0]) if ctx.needs_input_grad[1] else None, None


class Site:
    """One layer that owns trainable parameters, and its gradients per unit."""

    def __init__(self, name: str, module: Any, tape: Tape) -> None:
        self.name, self.module, self.tape = name, module, tape
        self.names = {
            attribute: f"{name}.{attribute}" if name else attribute
            for attribute, parameter in module.named_parameters(recurse=False)
            if parameter.requires_grad
        }
        self.pieces: dict[str, Piece] = {}
        self.used = False
        self.verified = False  # seen not to mix examples, with a gradient that was not zero

    def forward(self, inputs: Tensor) -> Tensor:
        """Replaces the module's own forward."""
        return self.catch(inputs)

    def catch(self, inputs: Tensor) -> Tensor:
        if self.used:
            raise UserError(
                f"layer {self.name!r} is used twice in one forward pass, so its gradients have cross terms; give each "
                "use its own layer, or pass fallback='torch.func'."
            )
        examples = self.tape.units * self.tape.draws
        if inputs.dim() == 0 or len(inputs) % examples:
            raise UserError(
                f"layer {self.name!r} got an input of shape {tuple(inputs.shape)} for {examples} examples; give it one "
                "row per example on the first axis (expand what all examples share), or pass fallback='torch.func'."
            )
        self.used = True
        return _Caught.apply(self, inputs, self.tape.anchor)

    def receive(self, inputs: Tensor, gradient: Tensor) -> None:
        gradient = gradient.reshape(self.tape.units, -1, gradient.shape[-1])  # (U, R, D_out)
        if self.tape.probed is not None:
            self.probe(gradient, self.tape.probed)
        else:
            self.pieces = {self.names[key]: piece for key, piece in self.form(inputs, gradient).items()}

    def probe(self, gradient: Tensor, unit: int) -> None:
        """The loss of one unit flowed back: a gradient in the rows of another unit means that examples mix."""
        touched = torch.nan_to_num(gradient).flatten(1).any(1)  # (U,); the rows of a unit that is NaN have 0 · NaN
        if touched.sum() > touched[unit]:
            raise UserError(
                f"layer {self.name!r} mixes examples: the loss of one unit depends on the rows of another, so no "
                "per-unit gradient exists; keep one row per example on the first axis, and use no statistic over the batch."
            )
        self.verified = self.verified or bool(touched[unit])

    def compute(self, inputs: Tensor) -> Tensor:
        """y = f(x; θ)."""
        raise TypeError(f"{type(self).__name__} is no layer with a forward pass")

    def input_gradient(self, gradient: Tensor) -> Tensor | None:
        """The gradient of x; None where x is no function of anything trained."""
        raise TypeError(f"{type(self).__name__} is no layer with a forward pass")

    def form(self, inputs: Tensor, gradient: Tensor) -> dict[str, Piece]:
        """The pieces of the trainable attributes, from the layer's input and its output gradient (U, R, D_out)."""
        raise TypeError(f"{type(self).__name__} is no layer with a forward pass")


class LinearSite(Site):
    @property
    def weight(self) -> Tensor:
        weight: Tensor = self.module.weight
        return weight

    def compute(self, inputs: Tensor) -> Tensor:
        flat: Tensor = linear(inputs.flatten(0, -2), self.weight, self.module.bias)
        # Not a view to autograd, so that the next layer may work in place.
        output: Tensor = flat if inputs.dim() == 2 else _UNSAFE_VIEW(flat, (*inputs.shape[:-1], flat.shape[-1]))
        return output

    def input_gradient(self, gradient: Tensor) -> Tensor:
        return linear(gradient, like(self.weight, gradient).t().contiguous(), None)

    def form(self, inputs: Tensor, gradient: Tensor) -> dict[str, Piece]:
        weight = self.weight
        gradient = like(gradient, weight)
        pieces: dict[str, Piece] = {}
        if "weight" in self.names:
            inputs = like(inputs, weight).reshape(self.tape.units, -1, weight.shape[1])  # (U, R, D_in)
            rows = inputs.shape[1]
            if rows * rows * sum(weight.shape) < KEPT_COST * weight.numel():
                pieces["weight"] = Factored(gradient, inputs)
            else:
                kept = self.tape.workspace.take(self.name, (len(inputs), *weight.shape), weight)
                pieces["weight"] = Kept(torch.bmm(gradient.transpose(1, 2), inputs, out=kept))
        if "bias" in self.names:
            pieces["bias"] = Kept(gradient.sum(1))
        return pieces


class Conv1dSite(LinearSite):
    """A convolution is a linear layer on the windows under its kernel; autograd itself differentiates the windows."""

    @property
    def weight(self) -> Tensor:
        weight: Tensor = self.module.weight.flatten(1)  # (out, in · kernel)
        return weight

    def forward(self, inputs: Tensor) -> Tensor:
        conv = self.module
        kernel, dilation, stride = conv.kernel_size[0], conv.dilation[0], conv.stride[0]
        mode = "constant" if conv.padding_mode == "zeros" else conv.padding_mode
        span = dilation * (kernel - 1)
        left, right = (span // 2, span - span // 2) if conv.padding == "same" else _both(conv.padding)
        padded = F.pad(inputs, (left, right), mode=mode)
        windows = padded.unfold(2, span + 1, stride)[..., ::dilation]  # (B, in, L, kernel)
        return self.catch(windows.transpose(1, 2).flatten(2)).transpose(1, 2)  # (B, out, L)


def _both(padding: str | tuple[int]) -> tuple[int, int]:
    size = 0 if isinstance(padding, str) else padding[0]  # the string can only be "valid"
    return size, size


class NormSite(Site):
    """LayerNorm or RMSNorm over the last axis: autograd takes the normalisation, the site its scale and shift."""

    def forward(self, inputs: Tensor) -> Tensor:
        norm = self.module
        if isinstance(norm, nn.LayerNorm):
            return self.catch(F.layer_norm(inputs, norm.normalized_shape, None, None, norm.eps))
        return self.catch(F.rms_norm(inputs, norm.normalized_shape, None, norm.eps))

    def compute(self, inputs: Tensor) -> Tensor:
        scaled = inputs * self.module.weight
        shift = getattr(self.module, "bias", None)
        return scaled if shift is None else scaled + shift

    def input_gradient(self, gradient: Tensor) -> Tensor:
        return gradient * self.module.weight

    def form(self, inputs: Tensor, gradient: Tensor) -> dict[str, Piece]:
        gradient = like(gradient, self.module.weight)
        pieces: dict[str, Piece] = {}
        if "weight" in self.names:
            pieces["weight"] = Kept((gradient * inputs.reshape(gradient.shape)).sum(1))
        if "bias" in self.names:
            pieces["bias"] = Kept(gradient.sum(1))
        return pieces


class EmbeddingSite(Site):
    def compute(self, inputs: Tensor) -> Tensor:
        return F.embedding(inputs, self.module.weight, self.module.padding_idx)

    def input_gradient(self, gradient: Tensor) -> None:
        return None

    def form(self, inputs: Tensor, gradient: Tensor) -> dict[str, Piece]:
        units, count = self.tape.units, self.module.num_embeddings
        unit = torch.arange(units, device=inputs.device)[:, None]
        touched, place = torch.unique(inputs.reshape(units, -1) + unit * count, return_inverse=True)
        gradient = like(gradient, self.module.weight)
        rows = gradient.new_zeros(len(touched), gradient.shape[-1])
        rows.index_add_(0, place.flatten(), gradient.flatten(0, 1))
        if self.module.padding_idx is not None:
            rows[touched % count == self.module.padding_idx] = 0
        return {"weight": Rows(touched // count, touched % count, rows, units, count)}


SITES: list[tuple[type[nn.Module], type[Site], Callable[[Any], bool]]] = [
    (nn.Linear, LinearSite, lambda layer: True),
    (nn.Conv1d, Conv1dSite, lambda layer: layer.groups == 1),
    (nn.LayerNorm, NormSite, lambda layer: len(layer.normalized_shape) == 1),
    (nn.RMSNorm, NormSite, lambda layer: len(layer.normalized_shape) == 1),
    (nn.Embedding, EmbeddingSite, lambda layer: not (layer.sparse or layer.scale_grad_by_freq or layer.max_norm)),
]
