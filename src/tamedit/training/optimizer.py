"""AdamW that knows how noisy its gradients are.

A private gradient is g + n with n ~ N(0, φ) in every coordinate, φ = (σ C / divisor)², a public number. So the average of
its squares estimates g² + φ, and Adam divides by the noise's size instead of the gradient's. Removing the known bias
(DP-AdamBC: Tang, Shpilevskiy, Lécuyer, AAAI 2024) gives

    m ← β₁ m + (1 − β₁) g,   v ← β₂ v + (1 − β₂) g²,   m̂ = m / (1 − β₁ᵗ),   v̂ = v / (1 − β₂ᵗ)
    θ ← (1 − η λ) θ − η m̂ / (√max(v̂ − φ, κ φ) + ε)

κ limits the step of a coordinate that contains nothing but noise. With φ = 0 this is AdamW, bit for bit. Everything
here is post-processing of the noisy gradient.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from tamedit.runs.config import TrainingConfig


def make_optimizer(parameters: Iterable[nn.Parameter], config: TrainingConfig) -> torch.optim.Optimizer:
    """The optimiser of a run. If it corrects for noise, the noise variance is set later."""
    chosen: dict[str, Any] = {"lr": config.learning_rate, "weight_decay": config.weight_decay}
    if config.noise_correction:
        return NoisyAdamW(parameters, **chosen)
    return torch.optim.AdamW(parameters, foreach=True, **chosen)


class NoisyAdamW(torch.optim.Optimizer):
    """AdamW with the second moment corrected for noise of known variance; `noise_variance` may be set before the first step."""

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        *,
        lr: float,
        weight_decay: float,
        betas: tuple[float, float] = (0.9, 0.999),
        epsilon: float = 1e-8,
        noise_variance: float = 0.0,
        noise_floor: float = 1.0,
    ) -> None:
        super().__init__(parameters, {"lr": lr, "weight_decay": weight_decay, "betas": betas})
        self.epsilon, self.noise_variance, self.noise_floor = epsilon, noise_variance, noise_floor

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            parameters = [one for one in group["params"] if one.grad is not None]
            if not parameters:
                continue
            gradients = [one.grad for one in parameters]
            states = [self._state(one) for one in parameters]
            first, second = [one["exp_avg"] for one in states], [one["exp_avg_sq"] for one in states]
            for state in states:
                state["step"] += 1
            count, (beta1, beta2), rate = float(states[0]["step"]), group["betas"], group["lr"]
            torch._foreach_mul_(parameters, 1 - rate * group["weight_decay"])
            torch._foreach_lerp_(first, gradients, 1 - beta1)
            torch._foreach_mul_(second, beta2)
            torch._foreach_addcmul_(second, gradients, gradients, 1 - beta2)
            size = torch._foreach_div(second, 1 - beta2**count)
            if self.noise_variance > 0:
                torch._foreach_sub_(size, self.noise_variance)
                torch._foreach_clamp_min_(size, self.noise_floor * self.noise_variance)
            torch._foreach_sqrt_(size)
            torch._foreach_add_(size, self.epsilon)
            torch._foreach_addcdiv_(parameters, first, size, -rate / (1 - beta1**count))

    def _state(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        state: dict[str, Tensor] = self.state[parameter]
        if not state:
            state["step"] = torch.zeros(())
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        return state
