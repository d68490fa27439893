"""The free distribution: its constants, its scores without any training, and what it costs.

    python benchmarks/free_distribution.py --choose          one constant at a time: simulated homes, training rows of ETT
    python benchmarks/free_distribution.py --score etth1 household ideal      test windows
    python benchmarks/free_distribution.py --cost mini --batch 96    its share of a training step

CRPS is given as a multiple of that of draws from the same hour, same windows and same hidden cells as `tamedit evaluate`:
imputation (10 to 50 % hidden) / a season ahead, then the share of cells in the 50 and 90 % bands. One thread is enough.
"""

import argparse
from dataclasses import replace

import numpy as np
import torch
from _measure import ratio, take_turns

from tamedit.data.loading import load_split
from tamedit.data.scaling import Scaling, fit_scaling
from tamedit.data.series import Series
from tamedit.data.simulate import simulate
from tamedit.data.sources import source
from tamedit.evaluation.baselines import BASELINES, distribution_draws, own_units, seasonal_draws
from tamedit.evaluation.scores import Scores, score
from tamedit.evaluation.trial import pick_windows, standard_deviation
from tamedit.streams import example_keys
from tamedit.windows.free_distribution import DEFAULT, Constants
from tamedit.windows.masks import draw_masks, task_config

Place = tuple[Series, Series, int, int, bool]  # windows are cut from the first; z-units by the second; L, period, x ≥ 0
SAMPLES = 40


def public(name: str) -> Place:
    """Data that constants may be chosen on: no test part of anything."""
    if name.startswith("homes"):
        homes = simulate(meters=24, hours=24 * 120, seed=int(name[5:]), start="2023-02-01", variety=0.5)
        return homes, homes, 168, 24, True
    train = load_split(name)[1].train
    return train, train, *((192, 96) if name == "ettm1" else (96, 24)), False


def test_part(name: str) -> Place:
    _, split = load_split(name)
    facts = source(name)
    return split.test, split.train, facts.window, 96 if name == "ettm1" else 24, facts.non_negative


def scores(place: Place, constants: Constants, most: int, seed: int = 0) -> dict[str, tuple[Scores, Scores]]:
    """By task: of the free distribution and of draws from the same hour."""
    series, train, length, period, non_negative = place
    windows = pick_windows(series, length, most)
    numbers = np.arange(len(windows), dtype=np.int64)
    values, _ = windows.gather(numbers)
    deviation, scaling = standard_deviation(train.values), own_units(fit_scaling("instance", train))
    found = {}
    ahead = min(period, 3 * length // 4)
    for task, masks in (("imputation", task_config("random")), ("forecast", task_config("block", ahead))):
        mask = draw_masks(example_keys(seed, f"evaluation {task}", 0, numbers), length, masks)[..., None].expand(
            values.shape
        )
        observed = torch.isfinite(values) & mask
        visible = torch.where(observed, values, 0.0)
        units, fill = scaling.units(visible, observed), BASELINES["free_fill"](visible, observed, period)
        free = distribution_draws(visible, observed, units, period, SAMPLES, seed, constants)
        hour = seasonal_draws(visible, observed, fill, period, SAMPLES, seed)
        free = free.clamp_min(0) if non_negative else free
        free_z, hour_z = (score(one.numpy(), values.numpy(), ~mask.numpy(), deviation)[0] for one in (free, hour))
        found[task] = (free_z, hour_z)
    return found


def row(name: str, places: list[Place], constants: Constants, windows: int) -> None:
    print(name[:58].ljust(60), end="")
    ratios = []
    for place in places:
        both = scores(place, constants, windows)
        for free, hour in both.values():
            ratios.append((free.crps or np.nan) / (hour.crps or np.nan))
            print(f"{ratios[-1]:.3f} ({free.coverage50 or 0:.0%}, {free.coverage90 or 0:.0%})", end="  ")
    print(f"mean {np.mean(ratios):.4f}", flush=True)


def choose(windows: int) -> None:
    names = ("homes5", "homes6", "etth1", "ettm1")
    places = [public(name) for name in names]
    print("imputation / ahead of", ", ".join(names), "(training rows of ETT)")
    row("as it is", places, DEFAULT, windows)
    steeper, flat = ((5, 1, 2, 1), (5, 0.5, 1, 2), (5, 0.01, 0.01, 1)), ((1, 1, 1, 1), (1, 1, 1, 1), (1, 0.01, 0.01, 1))
    for changed in (
        *({"hours": value} for value in (1.0, 1.2, 2.0)),
        *({"days": value} for value in (3.0, 8.0)),
        *({"steps": value} for value in (1.0, 3.0)),
        *({"kernel": value} for value in (0.15, 0.5)),
        *({"widths": value} for value in ((0.003, 0.1), (0.05, 0.05), (0.01, 0.2))),
        *({"broad": value} for value in (0.003, 0.03)),
        *({"memory": value} for value in ((200.0, 5.0), (200.0, 20.0), (30.0, 10.0))),
        *({"gaps": value} for value in ((0, 3, 9), (0, 0, 0))),
        *({"reach": value} for value in ((1, 3), (2, 6))),
        *({"prior": value} for value in (steeper, flat)),
        *({"strength": value} for value in (2.0, 15.0)),
        *({"rounds": value} for value in (4, 15)),
        *({"sharpen": value} for value in ((1.0, 1.0, 1.0), (1.15, 1.1, 1.05), (1.35, 1.3, 1.25))),
        *(
            {"prior": tuple(tuple(1e-6 if k == out else p for k, p in enumerate(one)) for one in DEFAULT.prior)}
            for out in range(4)
        ),
    ):
        row(str(changed), places, replace(DEFAULT, **changed), windows)  # type: ignore[arg-type]


def cost(size: str, batch: int, channels: int, turns: int) -> None:
    """CPU time of F_t of a batch with 168 steps, as a share of loss, backward and AdamW without it."""
    from tamedit.diffusion.loss import denoising_loss, draw_noise
    from tamedit.diffusion.process import Process
    from tamedit.model.dit import DiffusionTransformer
    from tamedit.model.zoo import SIZES, NetworkConfig
    from tamedit.windows.examples import ANCHOR_FEATURES, ExampleConfig, build_batch
    from tamedit.windows.free_distribution import free_distribution
    from tamedit.windows.masks import MaskConfig

    shape = {
        "target_channels": channels,
        "covariate_channels": 6,
        "anchor_features": ANCHOR_FEATURES["free"],
        "length": 168,
    }
    network, process = DiffusionTransformer(NetworkConfig.model_validate(shape | SIZES[size])), Process()
    optimizer = torch.optim.AdamW(network.parameters(), foreach=True)
    numbers = np.arange(batch, dtype=np.int64)
    homes = simulate(meters=batch * channels, hours=168)
    values = torch.from_numpy(homes.values).view(batch, channels, 168).transpose(1, 2).contiguous()
    mask = draw_masks(example_keys(0, "masks", 0, numbers), 168, MaskConfig())
    one, none = (1.0,) * channels, (0.0,) * channels
    scaling = Scaling("instance", none, one, none, none, "none")
    examples = build_batch(values, mask, torch.zeros(batch, 168, 6), scaling, ExampleConfig())
    observed = torch.isfinite(values) & mask[..., None]

    def step() -> None:
        time, noise = draw_noise(example_keys(0, "diffusion", 0, numbers), examples, process)
        optimizer.zero_grad()
        denoising_loss(network, examples, time, noise, process).mean().backward()
        optimizer.step()

    arms = {
        "free": lambda: _discard(free_distribution(values, observed, 24, *scaling.units(values, observed))),
        "step": step,
    }
    seconds = take_turns(arms, turns, warm_up=1, clock="cpu")
    share = ratio(seconds, "free", "step")
    each = min(seconds["free"]) / batch / channels
    print(
        f"size {size}, batch {batch}, {channels} channels, {torch.get_num_threads()} threads: {share['median']:.1%} of a step "
        f"(quartiles {share['low']:.1%} to {share['high']:.1%}, best {share['best']:.1%}), {1e3 * each:.2f} ms a channel"
    )


def _discard(_: object) -> None:
    """Nothing is kept."""


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--score", nargs="+", default=[])
    parser.add_argument("--cost", choices=("mini", "paper"))
    parser.add_argument("--windows", type=int, default=96)
    parser.add_argument("--batch", type=int, default=96)
    parser.add_argument("--channels", type=int, default=1)
    parser.add_argument("--turns", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.choose:
        choose(arguments.windows)
    for name in arguments.score:
        row(f"{name}, {arguments.windows} test windows", [test_part(name)], DEFAULT, arguments.windows)
    if arguments.cost:
        cost(arguments.cost, arguments.batch, arguments.channels, arguments.turns)
