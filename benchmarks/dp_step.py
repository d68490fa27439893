"""What a private training step costs: one step of each arm against a straightforward non-private step.

    python benchmarks/dp_step.py --size mini|small|paper [--json] [--allocator default|keep] [--threads N] [--clock wall|cpu]

Every arm does a whole step (forward, backward, clipping and Gaussian noise where private, AdamW) on the same network
and batch, from the same parameters. `nonprivate` is the straightforward step: the whole batch at once, the gradients of
`backward()` (those of the blocks' linear layers by oneDNN, as everywhere in the package). `ours_vanilla` and `ours_aware`
are our engine without and with bounds. The peers clip as their manuals say: `opacus_hooks` (per-example gradients by
hooks), `opacus_ghost` (ghost clipping, two backward passes), `torch_func` (vmap of grad). Allocator `keep` tells glibc
to keep freed memory, for all arms of the process alike.
"""

import argparse
import json
import warnings
from collections.abc import Callable

import torch
from _measure import high_water_mark, in_fresh_process, ratio, show, take_turns
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from tamedit.model.bounds import Bounds
from tamedit.model.dit import DiffusionTransformer
from tamedit.model.zoo import SIZES, NetworkConfig
from tamedit.privacy.engine import Engine
from tamedit.privacy.engine.workspace import keep_freed_memory
from tamedit.privacy.noise import GaussianNoise
from tamedit.windows.batch import Batch, Context

LENGTH, TARGETS, COVARIATES, CLIP, NOISE = 168, 1, 6, 1.0, 0.6
BATCH = {"mini": 96, "small": 96, "paper": 48}
AWARE = Bounds(condition=8.0, scale=1.0, shift=1.0, gate=1.0)
Rows = tuple[Batch, Tensor, Tensor, Tensor]  # windows, noised residual, diffusion step, target
Step = Callable[[], None]


def network(size: str, bounds: Bounds) -> DiffusionTransformer:
    torch.manual_seed(0)
    shape = {"target_channels": TARGETS, "covariate_channels": COVARIATES, "length": LENGTH}
    module = DiffusionTransformer(NetworkConfig.model_validate(shape | SIZES[size] | {"bounds": (bounds,)}))
    with torch.no_grad():
        for parameter in module.parameters():  # away from the zeros of the start, so that all gradients flow
            parameter.add_(0.02 * torch.randn_like(parameter))
    return module


def rows(count: int) -> Rows:
    torch.manual_seed(1)
    seen = (torch.rand(count, LENGTH, TARGETS) > 0.3).float()
    values = torch.randn(count, LENGTH, TARGETS)
    known = torch.randn(count, LENGTH, COVARIATES)
    context = Context(values * seen, seen, torch.zeros_like(values), known, torch.ones(count, TARGETS))
    batch = Batch(context, values * (1 - seen), 1 - seen)
    return batch, torch.randn_like(values), torch.randint(0, 1000, (count,)), torch.randn_like(values)


def losses(module: nn.Module, batch: Rows) -> Tensor:
    """Mean squared error over the hidden cells of each example."""
    windows, noised, time, target = batch
    error = (module(noised, time, windows.context) - target).square() * windows.hidden
    return error.sum((1, 2)) / windows.hidden.sum((1, 2)).clamp_min(1)


def optimiser(module: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(module.parameters(), lr=1e-6, weight_decay=2e-5)  # small: the arms stay comparable


def nonprivate(size: str, batch: Rows) -> Step:
    module = network(size, Bounds())
    adam = optimiser(module)

    def step() -> None:
        adam.zero_grad()
        losses(module, batch).mean().backward()
        adam.step()

    return step


def finish(module: nn.Module, adam: torch.optim.Optimizer, sums: dict[str, Tensor], count: int) -> None:
    GaussianNoise(NOISE * CLIP).add_(sums)
    for name, parameter in module.named_parameters():
        parameter.grad = sums[name].div_(count)
    adam.step()


def ours(size: str, batch: Rows, bounds: Bounds) -> Step:
    module = network(size, bounds)
    adam, count = optimiser(module), len(batch[0])
    engine = Engine(module, clip=CLIP, keep_memory=False)  # --allocator decides for the whole process

    def step() -> None:
        adam.zero_grad()
        finish(module, adam, engine(losses, batch, units=count).sums, count)

    return step


def opacus_hooks(size: str, batch: Rows) -> Step:
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    module = GradSampleModule(network(size, Bounds()))
    adam = DPOptimizer(optimiser(module), noise_multiplier=NOISE, max_grad_norm=CLIP, expected_batch_size=len(batch[0]))

    def step() -> None:
        adam.zero_grad()
        losses(module, batch).mean().backward()
        adam.step()

    return step


def opacus_ghost(size: str, batch: Rows) -> Step:
    from opacus.grad_sample import GradSampleModuleFastGradientClipping

    module = GradSampleModuleFastGradientClipping(network(size, Bounds()), max_grad_norm=CLIP, use_ghost_clipping=True)
    inner, count = module._module, len(batch[0])
    adam = optimiser(inner)

    def step() -> None:  # the two passes of Opacus' own DPTensorFastGradientClipping
        adam.zero_grad()
        each = losses(module, batch)
        each.mean().backward(retain_graph=True)
        adam.zero_grad()
        factors = module.get_clipping_coef()
        module.disable_hooks()
        (factors * each).sum().backward()
        module.enable_hooks()
        finish(inner, adam, {name: value.grad for name, value in inner.named_parameters()}, count)

    return step


def torch_func(size: str, batch: Rows) -> Step:
    module, (windows, noised, time, target) = network(size, Bounds()), batch
    adam, seen, count = optimiser(module), windows.context, len(windows)
    columns = (noised, time, target, windows.hidden, seen.values, seen.observed, seen.anchor, seen.covariates)

    def loss(parameters: dict[str, Tensor], *one: Tensor) -> Tensor:
        noised, time, target, hidden, values, observed, anchor, known = (value[None] for value in one)
        context = Context(values, observed, anchor, known, torch.ones(1, TARGETS))
        error = torch.func.functional_call(module, parameters, (noised, time, context)) - target
        return (error.square() * hidden).sum() / hidden.sum().clamp_min(1)

    per_example = torch.func.vmap(torch.func.grad(loss), in_dims=(None, *(0 for _ in columns)))

    def step() -> None:
        adam.zero_grad()
        parameters = {name: value.detach() for name, value in module.named_parameters()}
        with sdpa_kernel(SDPBackend.MATH):  # the fused kernel has no batching rule
            gradients = per_example(parameters, *columns)
        norms = torch.stack([value.flatten(1).norm(dim=1) for value in gradients.values()]).norm(dim=0)
        factors = (CLIP / (norms + 1e-6)).clamp_max(1.0)
        sums = {name: torch.einsum("u,u...->...", factors, value) for name, value in gradients.items()}
        finish(module, adam, sums, count)

    return step


ARMS: dict[str, Callable[[str, Rows], Step]] = {
    "nonprivate": nonprivate,
    "ours_vanilla": lambda size, batch: ours(size, batch, Bounds()),
    "ours_aware": lambda size, batch: ours(size, batch, AWARE),
    "opacus_hooks": opacus_hooks,
    "opacus_ghost": opacus_ghost,
    "torch_func": torch_func,
}


def set_up(options: argparse.Namespace) -> None:
    warnings.filterwarnings("ignore")
    torch.set_num_threads(options.threads)
    if options.allocator == "keep":
        keep_freed_memory()


def memory_of(options: argparse.Namespace) -> float:
    """Runs in a process of its own: the growth of the high-water mark over a few steps of one arm."""
    before = high_water_mark()
    step = ARMS[options.memory_of](options.size, rows(options.batch))
    for _ in range(2):  # the second step also holds the optimiser's state
        step()
    return float(high_water_mark() - before)


def measure(options: argparse.Namespace) -> dict[str, object]:
    batch = rows(options.batch)
    arms = {name: build(options.size, batch) for name, build in ARMS.items() if name in options.arms}
    seconds = take_turns(arms, options.repeats, options.warm_up, options.clock)
    peak = {}
    for name in arms if options.memory else ():
        shared = ["--size", options.size, "--batch", str(options.batch), "--threads", str(options.threads)]
        arguments = [*shared, "--allocator", options.allocator, "--memory-of", name]
        peak[name] = in_fresh_process(__file__, arguments)["bytes"]
    result: dict[str, object] = {
        key: getattr(options, key) for key in ("size", "batch", "allocator", "threads", "clock", "repeats")
    }
    ratios = {name: ratio(seconds, name, "nonprivate") for name in arms}
    result["arms"] = {
        name: {
            "time": round(each["median"], 3),
            "time_quartiles": [round(each["low"], 3), round(each["high"], 3)],
            "time_best": round(each["best"], 3),
            "seconds": round(min(seconds[name]), 4),
            "memory": round(peak[name] / peak["nonprivate"], 3) if peak else None,
            "megabytes": round(peak[name] / 1e6) if peak else None,
        }
        for name, each in ratios.items()
    }
    if {"ours_aware", "ours_vanilla"} <= set(arms):
        pair = ratio(seconds, "ours_aware", "ours_vanilla")
        result["aware_over_vanilla"], result["aware_over_vanilla_best"] = (
            round(pair["median"], 3),
            round(pair["best"], 3),
        )
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=list(BATCH), default="small")
    parser.add_argument("--batch", type=int, help="examples a step (96 at sizes mini and small, 48 at size paper)")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--warm-up", type=int, default=2, help="turns that are not counted")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall", help="cpu: use it with --threads 1")
    parser.add_argument("--allocator", choices=["default", "keep"], default="default")
    parser.add_argument("--arms", nargs="+", choices=list(ARMS), default=list(ARMS))
    parser.add_argument("--no-memory", dest="memory", action="store_false", help="measure time only")
    parser.add_argument("--memory-of", choices=list(ARMS), help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    options.batch = options.batch or BATCH[options.size]
    set_up(options)
    if options.memory_of:
        print(json.dumps({"bytes": memory_of(options)}))
        return
    result = measure(options)
    if options.json:
        print(json.dumps(result, indent=2))
    else:
        show(result)


if __name__ == "__main__":
    main()
