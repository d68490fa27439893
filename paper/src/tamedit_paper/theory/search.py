"""Looks for the example with the largest gradient: an adversary against S_aware.

    maximise ‖∇_θ ℓ‖ over x_t, wanted, observed values, anchor and covariates within `InputBounds`

Projected gradient ascent with Adam on the logarithm of the norm, from random corners and interior points of the box, with
random masks and diffusion steps; every other start is moved to where the first LayerNorm is steepest (tokens with equal
entries, found by least squares). Any (x_t, wanted) is reached by the velocity form of the process, which is a rotation
of (residual, ε), so the loss that is searched is `denoising_loss` itself.

    python -m tamedit_paper.theory.search        prints the largest gradient found and the bound
"""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from tamedit.diffusion.loss import denoising_loss
from tamedit.diffusion.process import Process
from tamedit.errors import UserError
from tamedit.model.bounds import Bounds
from tamedit.model.dit import DiffusionTransformer
from tamedit.model.zoo import SIZES, NetworkConfig
from tamedit.windows.batch import Batch, Context
from tamedit_paper.theory.propagation import InputBounds
from tamedit_paper.theory.sensitivity import analyse

PROCESS = Process(prediction="v")
FREE = ("noised", "wanted", "values", "anchor", "covariates")


@dataclass(frozen=True)
class Example:
    """One example by its free parts, each (1, L, K) or (1, L, V), its masks and its diffusion step."""

    noised: Tensor
    wanted: Tensor
    values: Tensor
    anchor: Tensor
    covariates: Tensor
    observed: Tensor
    hidden: Tensor
    time: Tensor

    def loss(self, network: DiffusionTransformer) -> Tensor:
        """`denoising_loss` of the batch that holds this example alone."""
        signal, noise = PROCESS.signal.to(self.noised)[self.time], PROCESS.noise.to(self.noised)[self.time]
        residual = signal * self.noised - noise * self.wanted
        epsilon = noise * self.noised + signal * self.wanted
        channels = torch.ones_like(self.values[:, 0])
        context = Context(self.values * self.observed, self.observed, self.anchor, self.covariates, channels)
        batch = Batch(context, residual, self.hidden)
        return denoising_loss(network, batch, self.time, epsilon, PROCESS)[0]

    def gradients(self, network: DiffusionTransformer, create_graph: bool = False) -> dict[str, Tensor]:
        """The gradient of every parameter."""
        names, parameters = zip(*network.named_parameters(), strict=True)
        return dict(
            zip(names, torch.autograd.grad(self.loss(network), parameters, create_graph=create_graph), strict=True)
        )


def random_example(network: DiffusionTransformer, inputs: InputBounds, generator: torch.Generator) -> Example:
    """Anywhere in the box, corners included; every cell is observed, hidden or missing."""
    config, precision = network.config, network.output.weight.dtype

    def within(limit: float, channels: int) -> Tensor:
        stretch = 1 + 4 * torch.rand((), generator=generator)
        return limit * (stretch * (2 * torch.rand(1, config.length, channels, generator=generator) - 1)).clamp(-1, 1)

    cells = (1, config.length, config.target_channels)
    order = torch.rand(cells, generator=generator).flatten().argsort().argsort().view(cells)
    count = int(torch.randint(inputs.hidden_cells, order.numel() + 1, (), generator=generator))
    count = count if torch.rand((), generator=generator) < 0.5 else inputs.hidden_cells
    hidden = order < count
    observed = ~hidden & (torch.rand(cells, generator=generator) < 0.7)
    free = {name: within(getattr(inputs, name), config.target_channels) for name in ("noised", "wanted", "values")}
    free["anchor"] = within(inputs.anchor, config.anchor_features * config.target_channels)
    free["covariates"] = within(inputs.covariates, config.covariate_channels)
    return Example(
        **{name: value.to(precision) for name, value in free.items()},
        observed=observed.to(precision),
        hidden=hidden.to(precision),
        time=torch.randint(0, PROCESS.steps, (1,), generator=generator),
    )


def clamped(example: Example, inputs: InputBounds) -> Example:
    """The nearest example within the bounds."""
    limits = {name: getattr(inputs, name) for name in FREE}
    return replace(example, **{name: getattr(example, name).clamp(-limits[name], limits[name]) for name in FREE})


@torch.no_grad()
def collapsed(network: DiffusionTransformer, example: Example, inputs: InputBounds) -> Example:
    """Tokens with entries as equal as the inputs allow: there the LayerNorm of the first block is steepest."""
    channels = network.config.target_channels
    noised, values, observed, anchor, known = (
        getattr(example, name)[0].clone() for name in ("noised", "values", "observed", "anchor", "covariates")
    )
    base = observed @ network.context_input.weight[:, channels : 2 * channels].T + network.context_input.bias
    base = base + network.positions
    parts = network.context_input.weight.split([channels, channels, anchor.shape[-1], known.shape[-1]], dim=1)
    for step in range(len(base)):
        seen, hidden = observed[step], example.hidden[0, step]
        matrix = torch.cat([network.noised_input.weight * hidden, parts[0] * seen, parts[2], parts[3]], dim=1)
        matrix, target = matrix - matrix.mean(0), -(base[step] - base[step].mean())
        solution = torch.linalg.pinv(matrix) @ target
        noised[step], values[step], anchor[step], known[step] = solution.split(
            [channels, channels, anchor.shape[-1], known.shape[-1]]
        )
    moved = replace(example, noised=noised[None], values=values[None], anchor=anchor[None], covariates=known[None])
    return clamped(moved, inputs)


@contextmanager
def recorded(network: DiffusionTransformer) -> Iterator[list[float]]:
    """Collects the least standard deviation of a token at every LayerNorm while the network runs."""
    least: list[float] = []

    def record(module: torch.nn.Module, given: tuple[Tensor, ...], answer: Tensor) -> None:
        least.append(given[0].detach().std(-1, unbiased=False).min().item())

    norms = [part for part in network.modules() if isinstance(part, torch.nn.LayerNorm)]
    hooks = [part.register_forward_hook(record) for part in norms]
    try:
        yield least
    finally:
        for hook in hooks:
            hook.remove()


def least_spread(network: DiffusionTransformer, example: Example) -> float:
    """The least standard deviation of a token at any LayerNorm, for this example."""
    with recorded(network) as least, torch.no_grad():
        example.loss(network)
    return min(least)


def norm_of(gradients: dict[str, Tensor], chosen: Callable[[str], bool] = lambda name: True) -> Tensor:
    """The norm of the gradient of the chosen parameters."""
    return torch.stack([value.square().sum() for name, value in gradients.items() if chosen(name)]).sum().sqrt()


def ascend(
    network: DiffusionTransformer,
    inputs: InputBounds,
    *,
    starts: int = 4,
    steps: int = 30,
    rate: float = 0.1,
    seed: int = 0,
    chosen: Callable[[str], bool] = lambda name: True,
) -> tuple[float, Example]:
    """The largest gradient norm of the chosen parameters that was found, and its example. Use double precision."""
    generator, largest, best = torch.Generator().manual_seed(seed), -1.0, None
    for start in range(starts):
        example = random_example(network, inputs, generator)
        example = collapsed(network, example, inputs) if start % 2 else example
        free = [getattr(example, name).clone().requires_grad_() for name in FREE]
        optimizer = torch.optim.Adam(free, lr=rate / 10 ** (start // 2 % 3))
        for _ in range(steps + 1):
            moving = replace(example, **dict(zip(FREE, free, strict=True)))
            with sdpa_kernel(SDPBackend.MATH):  # the attention that can be differentiated twice
                norm = norm_of(moving.gradients(network, create_graph=True), chosen)
                slopes = torch.autograd.grad(-norm.clamp_min(1e-30).log(), free, allow_unused=True)
            if norm.item() > largest:
                largest = norm.item()
                best = replace(moving, **{name: getattr(moving, name).detach().clone() for name in FREE})
            for value, slope in zip(free, slopes, strict=True):  # √ of a zero variance has no slope: stay
                value.grad = torch.zeros_like(value) if slope is None else slope.nan_to_num(0.0, 0.0, 0.0)
            optimizer.step()
            for name, value in zip(FREE, free, strict=True):
                value.data.clamp_(-getattr(inputs, name), getattr(inputs, name))
    if best is None:
        raise UserError(f"starts={starts} must be at least 1, and the network's gradients finite.")
    return largest, best


def shaken(depth: int, bounds: Bounds, seed: int = 0, spread: float = 0.1, **changes: object) -> DiffusionTransformer:
    """A tiny network in double precision, away from its zero initialisation."""
    torch.manual_seed(seed)
    shape: dict[str, object] = {
        "target_channels": 2,
        "covariate_channels": 4,
        "length": 6,
        "width": 8,
        "heads": 2,
        "mlp_ratio": 2,
    }
    network = DiffusionTransformer(NetworkConfig(depth=depth, bounds=(bounds,), **{**shape, **changes})).double()  # type: ignore[arg-type]
    for parameter in network.parameters():
        parameter.data += spread * torch.randn_like(parameter)
    return network


def print_sizes() -> None:
    """S_aware of the named sizes: untrained, and with output weights N(0, 0.02²)."""
    print(f"{'size':>8} {'untrained':>9} {'S_aware':>8} {'C_block':>8}  share of the three groups")
    inputs = InputBounds.from_data(residual=4, epsilon=4, values=4, anchor=4)
    for size, shape in SIZES.items():
        given = {"length": 96, "target_channels": 7, "mlp_ratio": 4} | {k: v for k, v in shape.items() if k != "depth"}
        network = shaken(shape["depth"], Bounds(condition=8, scale=1, shift=1, gate=1), spread=0.0, **given)
        untrained = analyse(network, inputs, clip=1.0).sensitivity
        torch.nn.init.normal_(network.output.weight, std=0.02)
        theory = analyse(network, inputs, clip=1.0)
        shares = ", ".join(f"{name} {value / theory.sensitivity:.1e}" for name, value in theory.groups.items())
        print(f"{size:>8} {untrained:>9.0f} {theory.sensitivity:>8.0e} {max(theory.block_jacobians):>8.0e}  {shares}")


def main() -> None:
    """Prints, for tiny networks, the largest gradient found and the bound; then the bound of the named sizes."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--starts", type=int, default=8)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--epsilon", type=float, default=1e-6, help="of the LayerNorms of the tiny networks")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    inputs = InputBounds(noised=3, wanted=3, values=3, anchor=3, covariates=3)
    heads = ("depth", "shaken", "random", "spread", "S|spread", "ratio", "found", "spread", "S_aware", "ratio")
    print(" ".join(f"{head:>8}" for head in heads), " C_block")
    for depth in (1, 2):
        for spread in (0.0, 0.1, 0.3):
            network = shaken(depth, Bounds(condition=2.0, scale=0.5, shift=0.5, gate=0.5), spread=spread)
            for part in network.modules():
                if isinstance(part, torch.nn.LayerNorm):
                    part.eps = arguments.epsilon
            theory = analyse(network, inputs, clip=1.0)
            random, example = ascend(network, inputs, starts=1, steps=0)
            wide = least_spread(network, example)
            given = analyse(network, inputs.model_copy(update={"token_spread": wide}), clip=1.0).sensitivity
            found, example = ascend(network, inputs, starts=arguments.starts, steps=arguments.steps)
            narrow, whole = least_spread(network, example), theory.sensitivity
            row = (random, wide, given, random / given, found, narrow, whole, found / whole)
            blocks = ", ".join(f"{value:.0e}" for value in theory.block_jacobians)
            print(f"{depth:>8} {spread:>8}", " ".join(f"{value:>8.1e}" for value in row), f" {blocks}")
    print()
    print_sizes()


if __name__ == "__main__":
    main()
