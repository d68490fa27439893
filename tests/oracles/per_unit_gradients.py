"""Slow and obviously right: the gradient of one unit at a time, by autograd, clipped and added up in a loop."""

from collections.abc import Callable

import torch
from torch import Tensor, nn


def per_unit_gradients(module: nn.Module, loss_of_rows: Callable[[slice], Tensor], units: int, draws: int):
    """A list with one dictionary of gradients a unit: of the mean of its draws' losses, computed alone."""
    names = [name for name, value in module.named_parameters() if value.requires_grad]
    parameters = [value for value in module.parameters() if value.requires_grad]
    result = []
    for unit in range(units):
        loss = loss_of_rows(slice(unit * draws, (unit + 1) * draws)).mean()
        gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
        pairs = zip(names, parameters, gradients, strict=True)
        result.append({name: torch.zeros_like(p) if gradient is None else gradient for name, p, gradient in pairs})
    return result


def norm(gradients: dict[str, Tensor]) -> float:
    return sum(float(value.double().square().sum()) for value in gradients.values()) ** 0.5


def clipped_sum(gradients: list[dict[str, Tensor]], clip: float) -> dict[str, Tensor]:
    """Σ_u min(1, C / ‖g_u‖) g_u in double precision."""
    total = {name: torch.zeros_like(value, dtype=torch.float64) for name, value in gradients[0].items()}
    for one in gradients:
        factor = min(1.0, clip / norm(one)) if norm(one) > 0 else 1.0
        for name, value in one.items():
            total[name] += factor * value.double()
    return total


def relative_error(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> float:
    """‖ours − theirs‖ / ‖theirs‖ over all parameters."""
    difference = {name: ours[name].double() - value.double() for name, value in theirs.items()}
    return norm(difference) / max(norm(theirs), 1e-300)
