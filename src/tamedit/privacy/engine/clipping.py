"""Per-unit clipped gradient sums, in one backward pass.

    ḡ_u = ∇_θ (1/G) Σ_draws ℓ(θ; example of u)            the draws of a unit are averaged before clipping
    sum = Σ_u η_u ḡ_u

    flat        η_u = min(1, C / ‖ḡ_u‖)                    the paper's
    automatic   η_u = C / (‖ḡ_u‖ + γ)                       every unit is brought close to length C
    groups      η_{u,k} = min(1, C_k / ‖ḡ_{u,k}‖)           every group k of parameters has its own share, Σ_k C_k² = C²

In every mode ‖Σ_k η_{u,k} ḡ_{u,k}‖ ≤ C, so adding or removing a unit changes the sum by at most C. The result carries
this number as its `sensitivity`. Noise is added elsewhere, and nothing here knows how much.

How it is fast. Layers are caught in the autograd graph (`layers.py`), so autograd computes no gradient of a parameter.
Each layer's gradient is computed once, per unit, into memory that is reused. Its norm is read while it is in
cache. The clipped sum is then one matrix-vector product over the stored gradients. Layers on vectors (B, D) keep only the
two factors of their gradients. The batch is split into micro-batches that fit the cache.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from tamedit.errors import UserError
from tamedit.privacy.engine.backends import Backend, BookKeeping, LossFunction, TorchFunc
from tamedit.privacy.engine.inspection import buffer_versions, refuse_low_precision, refuse_written_buffers
from tamedit.privacy.engine.pieces import Piece, widened
from tamedit.privacy.engine.rows import check_rows, flatten
from tamedit.privacy.engine.workspace import keep_freed_memory

Mode = Literal["flat", "automatic", "groups"]
AUTOMATIC_FLOOR = 0.01  # γ of automatic clipping
KEPT_BYTES = 320 * 2**20  # per-unit gradients of a micro-batch
MOST_EXAMPLES = 32  # of a micro-batch: few enough that windows with many unknown steps do not hold up the others


@dataclass(frozen=True, eq=False)
class ClippedSum:
    """A clipped sum, and the most that one unit can change it. Everything except `sums` after noise is *not* private."""

    sums: dict[str, Tensor]  # by parameter name; not divided, no noise
    sensitivity: float  # C
    norms: Float[Tensor, " U"]  # ‖ḡ_u‖ before clipping; inf or NaN for a unit that counted as zero
    factors: dict[str, Float[Tensor, " U"]]  # η_u by group (one number per unit except in mode "groups")
    group_norms: dict[str, Float[Tensor, " U"]]
    parameter_norms: dict[str, Float[Tensor, " U"]]
    losses: Float[Tensor, " U"]  # mean over the draws


class Engine:
    """Clips the gradients of any module per privacy unit.

        engine = Engine(module, clip=1.0)
        result = engine(lambda module, batch: losses_of(module, batch), batch, units=48)     # losses: one per example

    The batch has units · draws rows, with the draws of one unit consecutive, in any nest of tuples, lists, mappings and
    dataclasses of tensors. `groups` names the group of a parameter (for `group_norms`, and for the shares of C in mode
    "groups"). `micro_batch` counts units and changes nothing but speed and memory; None chooses by the module's size.
    `keep_memory` lets glibc keep freed memory (see `workspace.keep_freed_memory`; it holds for the whole process).

    Guarantees
    - sums of neighbouring batches (one unit more or less) differ by at most `sensitivity`, up to rounding.
    - a unit's gradient depends on its own rows only; a module whose layers mix examples is rejected by name. This is
      tested before a layer's first gradient is used (`mixing.py`): the loss of one unit must reach no other unit's rows, and
      its gradient must be the same when its rows are alone in the batch, to 1e-4 and without autocast. (Where the loss draws
      random numbers, as dropout does, the second cannot be tested, and a warning says so.)
    - a forward pass that writes into a buffer is rejected: what it keeps of the data would be saved without noise.
    - parameters below single precision are rejected: their sums could change by more than C.
    - a unit whose gradient is not finite (or overflows when squared) adds exactly zero and disturbs no other unit.
    - an empty batch gives zero sums; the loss function is not called.
    - parameters and their `.grad` do not change; parameters that do not reach the loss get zeros.
    - a trainable parameter that cannot be caught, tied parameters, a layer used twice, a parameter used outside its
      layer: rejected by name. With fallback="torch.func" all but BatchNorm are accepted, more slowly.
    """

    def __init__(
        self,
        module: nn.Module,
        *,
        clip: float = 1.0,
        mode: Mode = "flat",
        groups: Callable[[str], str] | None = None,
        shares: Mapping[str, float] | None = None,
        micro_batch: int | None = None,
        fallback: Literal["torch.func"] | None = None,
        keep_memory: bool = True,
    ) -> None:
        if not (clip > 0 and math.isfinite(clip)):
            raise UserError(f"clip={clip} must be a positive number.")
        if micro_batch is not None and micro_batch < 1:
            raise UserError(f"micro_batch={micro_batch} must be at least 1 unit.")
        if mode not in ("flat", "automatic", "groups"):
            raise UserError(f"mode={mode!r} is not known; choose flat, automatic or groups.")
        if fallback not in (None, "torch.func"):
            raise UserError(f"fallback={fallback!r} is not known; choose None or 'torch.func'.")
        self.module, self.clip, self.mode, self.micro_batch = module, float(clip), mode, micro_batch
        self.trainable = {name: value for name, value in module.named_parameters() if value.requires_grad}
        if not self.trainable:
            raise UserError("module has no trainable parameter; call requires_grad_() on what should be trained.")
        refuse_low_precision(module)
        self.group_of = {name: groups(name) if groups else "all" for name in self.trainable}
        self.group_clips = self._group_clips(shares)
        self.backend: Backend = TorchFunc(module) if fallback else BookKeeping(module)
        if keep_memory:
            keep_freed_memory()

    def _group_clips(self, shares: Mapping[str, float] | None) -> dict[str, float]:
        """C_k = C · share_k / √(Σ share²), equal shares unless given."""
        names = list(dict.fromkeys(self.group_of.values()))
        given = dict.fromkeys(names, 1.0) if shares is None else dict(shares)
        if self.mode != "groups" and shares is not None:
            raise UserError(f"shares are given, but mode={self.mode!r}; pass mode='groups'.")
        if set(given) != set(names) or not all(share > 0 and math.isfinite(share) for share in given.values()):
            raise UserError(f"shares={given} must give one positive number to each group of {names}.")
        length = math.hypot(*given.values()) if given else 1.0
        return {name: self.clip * given[name] / length for name in names}

    def __call__(self, loss_function: LossFunction, batch: Any, *, units: int, draws: int = 1) -> ClippedSum:
        """The clipped sum over a batch; `loss_function(module, rows of the batch)` gives one loss per row."""
        tensors, rebuild = flatten(batch)
        check_rows(tensors, units, draws)
        sums = {name: torch.zeros_like(value, requires_grad=False) for name, value in self.trainable.items()}
        parts, buffers = [], buffer_versions(self.module)
        size = self.micro_batch or self._units_at_once(units, draws)
        for start in range(0, units, max(1, size)):
            count = min(size, units - start)
            rows = [tensor[start * draws : (start + count) * draws] for tensor in tensors]
            losses, pieces = self.backend.run(loss_function, rows, rebuild, count, draws)
            squares = self._squares(pieces, count, losses.device)
            factors, bad = self._factors(squares)
            self._add(pieces, factors, bad, sums)
            parts.append((losses.view(count, draws).mean(1), squares, factors))
        refuse_written_buffers(buffers, self.module)
        return self._result(sums, parts)

    def _units_at_once(self, units: int, draws: int) -> int:
        """Micro-batches of nearly equal size, as few as memory and cache allow."""
        held = sum(value.numel() * value.element_size() for value in self.trainable.values())
        examples = min(MOST_EXAMPLES, max(1, KEPT_BYTES // max(held, 1)))
        parts = math.ceil(units / max(1, examples // draws))
        return math.ceil(units / max(1, parts))

    def _squares(self, pieces: dict[str, Piece], units: int, device: torch.device) -> Float[Tensor, "P U"]:
        """‖·‖² by parameter and unit, zero where a parameter got no gradient."""
        none = torch.zeros(units, device=device)
        norms = [pieces[name].norms if name in pieces else none.to(own.dtype) for name, own in self.trainable.items()]
        return widened(torch.stack(norms)).square()

    def _by_group(self, squares: Float[Tensor, "P U"]) -> dict[str, Float[Tensor, " U"]]:
        members: dict[str, list[int]] = {}
        for index, group in enumerate(self.group_of.values()):
            members.setdefault(group, []).append(index)
        return {group: squares[rows].sum(0).sqrt() for group, rows in members.items()}

    def _factors(self, squares: Float[Tensor, "P U"]) -> tuple[dict[str, Tensor], Bool[Tensor, " U"] | None]:
        """η by group, and the units whose gradient is not finite (None if there are none): theirs is 0."""
        norm = squares.sum(0).sqrt()
        if self.mode == "groups":
            factors = {name: limited(self.group_clips[name], own) for name, own in self._by_group(squares).items()}
        else:
            whole = self.clip / (norm + AUTOMATIC_FLOOR) if self.mode == "automatic" else limited(self.clip, norm)
            factors = dict.fromkeys(self.group_clips, whole)
        bad = ~torch.isfinite(norm)
        if not bad.any():
            return factors, None
        return {name: factor.masked_fill(bad, 0) for name, factor in factors.items()}, bad

    def _add(
        self, pieces: dict[str, Piece], factors: dict[str, Tensor], bad: Tensor | None, sums: dict[str, Tensor]
    ) -> None:
        with torch.no_grad():
            cast: dict[tuple[str, torch.dtype], Tensor] = {}
            for name, piece in pieces.items():
                total, group = sums[name], self.group_of[name]
                if (group, total.dtype) not in cast:
                    cast[group, total.dtype] = factors[group].to(total.dtype)
                piece.add_to(total, cast[group, total.dtype], bad)

    def _result(self, sums: dict[str, Tensor], parts: list[tuple[Tensor, Tensor, dict[str, Tensor]]]) -> ClippedSum:
        if parts:
            losses, squares = torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts], dim=1)
            factors = {name: torch.cat([part[2][name] for part in parts]) for name in self.group_clips}
        else:
            like = next(iter(self.trainable.values())).detach()
            losses, squares = like.new_zeros(0), widened(like.new_zeros(len(self.trainable), 0))
            factors = dict.fromkeys(self.group_clips, squares.new_zeros(0))
        return ClippedSum(
            sums=sums,
            sensitivity=self.clip,
            norms=squares.sum(0).sqrt(),
            factors=factors,
            group_norms=self._by_group(squares),
            parameter_norms=dict(zip(self.trainable, squares.sqrt(), strict=True)),
            losses=losses,
        )


def limited(clip: float, norms: Float[Tensor, " U"]) -> Float[Tensor, " U"]:
    """min(1, C / ‖g‖), and 1 where the gradient is zero."""
    return (clip / norms).clamp_max(1.0)
