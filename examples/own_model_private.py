"""Your own module and your own loss, made private in under ten lines.

The engine clips and sums, the noise is drawn for the sensitivity of that sum, and the divisor is a public constant.
"""

import torch
from torch import Tensor, nn

from tamedit import Engine
from tamedit.privacy.noise import GaussianNoise
from tamedit.privacy.poisson import PoissonSampler


def my_loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """One loss an example, not averaged over the batch."""
    x, y = batch
    return (model(x) - y).square().mean(dim=1)


def main(steps: int = 60, noise_multiplier: float = 1.0) -> tuple[float, float]:
    """The loss before and after private training."""
    torch.manual_seed(0)
    x = torch.randn(2_000, 8)
    y = x[:, :2] * 2 - x[:, 2:4]
    model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    before = my_loss(model, (x, y)).mean().item()

    engine = Engine(model, clip=1.0)
    noise = GaussianNoise(noise_multiplier * engine.clip)
    rate, expected = 0.1, 0.1 * len(x)  # Poisson sampling, and the divisor that goes with it
    sampler = PoissonSampler(len(x), rate)  # who is drawn must not follow from a seed that anyone knows
    for step in range(steps):
        chosen = torch.from_numpy(sampler.sample(step))
        result = engine(my_loss, (x[chosen], y[chosen]), units=len(chosen))
        noise.add_(result.sums)
        for name, parameter in model.named_parameters():
            parameter.grad = result.sums[name] / expected
        optimizer.step()

    return before, my_loss(model, (x, y)).mean().item()


if __name__ == "__main__":
    start, end = main()
    print(f"loss {start:.3f} before, {end:.3f} after 60 private steps")
    print("epsilon: tamedit account --sampling-rate 0.1 --noise-multiplier 1.0 --steps 60 --delta 1e-5")
