"""Your own model, your own trainer: `BoundedAdaLNZero` under Opacus' PrivacyEngine, unchanged.

A small conditional network on a toy regression. Opacus sees nothing but an `nn.Linear` inside the bounded block.
"""

import warnings

import torch
from opacus import PrivacyEngine
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from tamedit import BoundedAdaLNZero, Bounds, gated, modulate


class MyBlock(nn.Module):
    """Maps a sequence (B, L, 1) to (B, L, 1), steered by a condition (B, 3)."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.lift = nn.Linear(1, width)
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.adaln = BoundedAdaLNZero(width, 3, Bounds(condition=2.0, scale=1.0, shift=1.0, gate=1.0), branches=1)
        self.mlp = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))
        self.head = nn.Linear(width, 1)

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        (modulation,) = self.adaln(condition)
        h = self.lift(x)
        h = h + gated(modulation, self.mlp(modulate(self.norm(h), modulation)))
        predicted: Tensor = self.head(h)
        return predicted


def main(epochs: int = 6) -> tuple[float, float, float]:
    """The loss before and after private training, and the ε that Opacus accounts."""
    torch.manual_seed(0)
    x, condition = torch.randn(512, 10, 1), torch.randn(512, 3)
    y = x * condition[:, None, :1].tanh()
    model: nn.Module = MyBlock()
    optimizer: torch.optim.Optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loader = DataLoader(TensorDataset(x, condition, y), batch_size=64)
    before = nn.functional.mse_loss(model(x, condition), y).item()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Opacus' remarks on its random generator and on hooks
        engine = PrivacyEngine()
        model, optimizer, loader = engine.make_private(
            module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=1.0, max_grad_norm=1.0
        )
        for _ in range(epochs):
            for inputs, steering, target in loader:
                optimizer.zero_grad()
                nn.functional.mse_loss(model(inputs, steering), target).backward()
                optimizer.step()
        after = nn.functional.mse_loss(model.eval()(x, condition), y).item()
        spent = engine.get_epsilon(delta=1e-5)
    return before, after, spent


if __name__ == "__main__":
    start, end, epsilon = main()
    print(f"loss {start:.3f} before, {end:.3f} after training with epsilon = {epsilon:.2f} (Opacus, delta = 1e-5)")
