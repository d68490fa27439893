"""Recipes for private tuning, on simulated homes that differ from those of the model that they start from.

Recipes are chosen here, on series that are nobody's, and not on the homes that results are reported for. 200 simulated homes of a
region with other appliances, another climate and other hours stand for the private panel, 54 more for the test. The score is the
denoising loss on the test homes, with the same masks and noise for every recipe, less that of the untuned model: below 0, tuning
helped. Standard errors are over homes.

    python benchmarks/private_recipe.py                                 # the table: every recipe at ε = 8 per home-week
    python benchmarks/private_recipe.py --epsilon 1 --unit series       # at another budget
    python benchmarks/private_recipe.py --only "all 0.001" "C 0.1" normalised --steps 90 --batch 1024
"""

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from tamedit.choices import Tuning
from tamedit.data.calendar import network_covariates
from tamedit.data.simulate import Region, simulate
from tamedit.data.split import Split, draw_meters, split_by_meter
from tamedit.model.dit import DiffusionTransformer
from tamedit.privacy.entries import read as read_ledger
from tamedit.privacy.settings import Privacy
from tamedit.runs.config import RunConfig, Speed
from tamedit.runs.recipe import make_config
from tamedit.tasks.model import Model
from tamedit.training.homes import homes_start
from tamedit.training.public import FACTS
from tamedit.training.run import train
from tamedit.training.source import example_losses
from tamedit.windows.cut import cut
from tamedit.windows.examples import Examples

REGIONS = {
    "cold": Region(standby=1.5, habits=2.0, appliances=0.6, heated=0.4, warmer=-3, later=1.0),
    "warm": Region(standby=0.7, habits=0.6, appliances=1.5, heated=0.0, warmer=5, later=-1.0),
}


@dataclass(frozen=True)
class Recipe:
    """What is trained, the learning rate, and how gradients are clipped; and how often the command's steps and batch."""

    tuning: Tuning
    rate: float
    clip: float = 1.0
    clipping: Literal["flat", "automatic"] = "flat"
    steps: int = 1
    batch: int = 1


RECIPES = {
    "all 0.001": Recipe("all", 1e-3),
    "all 0.0003": Recipe("all", 3e-4),
    "all 0.0001": Recipe("all", 1e-4),
    "modulation 0.0003": Recipe("modulation", 3e-4),
    "head 0.001": Recipe("head", 1e-3),
    "head 0.003": Recipe("head", 3e-3),
    "low_rank 0.001": Recipe("low_rank", 1e-3),
    "C 0.3": Recipe("all", 1e-3, clip=0.3),
    "C 0.1": Recipe("all", 1e-3, clip=0.1),
    "C 0.1, rate 0.0003": Recipe("all", 3e-4, clip=0.1),
    "normalised": Recipe(
        "all", 1e-3, clipping="automatic"
    ),  # C / (norm + 0.01): every gradient gets nearly the length C
    "batch x 4": Recipe("all", 1e-3, batch=4),
    "steps x 4": Recipe("all", 1e-3, steps=4),
}


def fleet(region: str, count: int) -> Split:
    homes = simulate(meters=count + 54, hours=17 * 168, seed=77, region=REGIONS[region])
    return split_by_meter(homes, draw_meters(homes, 54), validation_share=0.15)


def test_losses(model: Model, config: RunConfig, split: Split, looks: int) -> np.ndarray:
    """The mean loss of every test home."""
    windows = cut(network_covariates(split.test, config.calendar), config.window, 84)
    examples = Examples(windows, config.masks, model.scaling, config.examples, seed=1)
    network, numbers = model.network, np.arange(len(windows))
    losses = np.zeros(len(windows))
    with torch.no_grad():
        for step in range(looks):
            for first in range(0, len(numbers), 256):
                part = numbers[first : first + 256]
                found = example_losses(network, examples, part, step, config.process, torch.device("cpu"))
                losses[part] += found.double().numpy() / looks
    meters = windows.meter_of()
    return np.array([losses[meters == meter].mean() for meter in np.unique(meters)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=tuple(RECIPES), nargs="+", default=tuple(RECIPES), help="some recipes")
    parser.add_argument("--region", default="cold", choices=tuple(REGIONS))
    parser.add_argument("--homes", type=int, default=200, help="for training")
    parser.add_argument("--epsilon", type=float, default=8.0)
    parser.add_argument("--unit", default="week")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--looks", type=int, default=6, help="draws of masks, times and noise per test window")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    split = fleet(chosen.region, chosen.homes)
    print(f"{chosen.region} region, ε = {chosen.epsilon:g} per {chosen.unit}, {chosen.steps} steps of {chosen.batch}")
    before = None
    for name in chosen.only:
        recipe = RECIPES[name]
        steps, batch = chosen.steps * recipe.steps, chosen.batch * recipe.batch
        initial = homes_start(split.train, tuning=recipe.tuning)
        options = {"draws": chosen.draws, "clip": recipe.clip, "clipping": recipe.clipping}
        privacy = Privacy(epsilon=chosen.epsilon, unit=chosen.unit, test_only=True, **options)
        config = make_config(
            split.train, "simulated", window=168, privacy=privacy, seed=chosen.seed, start=initial.start
        )
        optimiser = {"steps": steps, "batch_size": batch, "learning_rate": recipe.rate, "ema": 0.9}
        optimiser |= {"warmup": max(steps // 12, 1), "decay": "constant"}
        config = config.model_copy(update={"training": config.training.model_copy(update=optimiser)})
        with tempfile.TemporaryDirectory() as folder:
            train(split, config, Path(folder), facts=FACTS, speed=Speed(threads=1), initial=initial)
            model, plan = Model.load(folder, "cpu"), read_ledger(Path(folder)).segments[-1].plan
        if before is None:
            untuned = DiffusionTransformer(config.network)
            untuned.load_state_dict(initial.weights)
            before = test_losses(Model(untuned.eval(), model.spec), config, split, chosen.looks)
            print(f"untuned {before.mean():.4f}")
        gain = test_losses(model, config, split, chosen.looks) - before
        error = gain.std(ddof=1) / np.sqrt(len(gain))
        worse = np.mean(gain > 0)
        ratio = plan.steps**0.5 * plan.divisor / plan.noise_multiplier
        regime = f"√T B / σ = {ratio:.0f}, C = {plan.clip:g}"
        said = f"{gain.mean():+.4f} ± {error:.4f}, worse in {worse:.0%} of the homes, {regime}"
        print(f"{name:18} {said}", flush=True)


if __name__ == "__main__":
    main()
