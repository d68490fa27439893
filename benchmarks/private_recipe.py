"""Recipes for private training on a fleet of simulated homes, from a model of one public household or from random weights.

Recipes for private training are chosen here, on series that are nobody's, and not on the homes that results are reported for.
254 simulated homes of 17 weeks stand for the private panel (54 of them for test), N = 2,800 home-weeks for training.

    tamedit train household --steps 800 --threads 1 --out runs/household
    python benchmarks/private_recipe.py runs/household --steps 60 --batch 512 --learning-rate 1e-3
    python benchmarks/private_recipe.py runs/household --tune low_rank --rank 8 --learning-rate 2e-3
    python benchmarks/private_recipe.py --steps 120 --decay cosine --learning-rate 3e-3        # random weights
"""

import argparse
import tempfile
from pathlib import Path

import torch

from tamedit.data.simulate import simulate
from tamedit.data.split import draw_meters, split_by_meter
from tamedit.diagnostics.gradient_record import read_record
from tamedit.diagnostics.tails import summarise
from tamedit.evaluation.evaluate import Evaluation, evaluate
from tamedit.model.zoo import SIZES
from tamedit.privacy.settings import Privacy
from tamedit.runs.config import RunConfig, Speed
from tamedit.runs.recipe import make_config
from tamedit.runs.start import load_initial_run
from tamedit.tasks.model import Model
from tamedit.training.public import FACTS
from tamedit.training.run import train


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("init", type=Path, nargs="?", help="a run on public data; random weights without it")
    parser.add_argument("--size", default="mini", choices=tuple(SIZES), help="of a network with random weights")
    parser.add_argument("--decay", default="constant", choices=("constant", "cosine"))
    parser.add_argument("--epsilon", type=float, default=8.0)
    parser.add_argument("--unit", default="week")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--ema", type=float, default=0.9)
    parser.add_argument("--tune", default="all", choices=("all", "modulation", "low_rank"))
    parser.add_argument("--rank", type=int, default=4)
    parser.add_argument("--crop", type=int, default=144, help="rows that training takes of a week, from anywhere in it")
    parser.add_argument("--windows", type=int, default=48)
    parser.add_argument("--samples", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()

    torch.set_num_threads(1)
    homes = simulate(meters=254, hours=17 * 168, seed=77)
    split = split_by_meter(homes, draw_meters(homes, 54), validation_share=0.15)
    initial = None
    if chosen.init is not None:
        initial = load_initial_run(chosen.init, tuning=chosen.tune, rank=chosen.rank, public=True, private=True)
    privacy = Privacy(epsilon=chosen.epsilon, unit=chosen.unit, draws=chosen.draws, test_only=True)
    begins = {"size": chosen.size} if initial is None else {"start": initial.start}
    config = make_config(homes, "simulated", window=168, privacy=privacy, seed=chosen.seed, **begins)
    optimiser = {
        "steps": chosen.steps,
        "batch_size": chosen.batch,
        "learning_rate": chosen.learning_rate,
        "ema": chosen.ema,
        "warmup": max(chosen.steps // 12, 1),
        "decay": chosen.decay,
    }
    plain = config.model_dump()
    config = RunConfig.model_validate(plain | {"training": plain["training"] | optimiser, "crop": chosen.crop})
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        train(split, config, run, facts=FACTS, speed=Speed(threads=1), initial=initial)
        seen = summarise(read_record(run))
        few = {"windows": chosen.windows, "samples": chosen.samples, "resamples": 0}
        scores = evaluate(Model.load(run, "cpu"), split, tasks=("imputation", "forecast"), **few)
    for task in ("imputation", "forecast"):
        print(line(scores, task))
    assert seen.clipping is not None
    assert seen.norms is not None
    print(
        f"clipped {seen.clipping.p_clip:.2f}, ‖g‖ p50 {seen.norms['total'].p50:.2f}, p99 {seen.norms['total'].p99:.2f}"
    )


def line(scores: Evaluation, task: str) -> str:
    """RMSE and CRPS beside the best that costs nothing."""
    own, free = scores.of(task, "model").z, scores.free(task)
    best = min(guess.rmse for guess in free.values() if guess.rmse is not None)
    bar = min(guess.crps for guess in free.values() if guess.crps is not None)
    return f"{task:10}  RMSE {own.rmse:.4f} (free {best:.4f})  CRPS {own.crps:.4f} (free {bar:.4f})"


if __name__ == "__main__":
    main()
