"""Can the black-box audit see anything at all? The same audit of a run as it is, and of one whose noise is left out.

    python benchmarks/black_box_power.py

Two simulated homes and three planted ones; both runs state the same small ε. The sabotaged run clips and averages like the other
but adds no noise, so its true ε is infinite. A lower bound of 0 says something only if the sabotaged run is caught.
"""

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import torch

from tamedit.data.simulate import simulate
from tamedit.privacy.audit import Finding
from tamedit.privacy.entries import read
from tamedit.privacy.noise import GaussianNoise
from tamedit.runs.config import Speed
from tamedit.runs.request import TrainRequest
from tamedit.training import planted
from tamedit.training.requested import prepare

STUDY, DAYS = "2023-01-01/2023-02-01", 31
STATED = 0.5  # ε
EXAMPLES = 60  # about as many as there are; a noisy count at so small an ε would say less


def audited(folder: Path, *, homes: int, steps: int, size: str, learning_rate: float, noise: bool) -> Finding:
    """The black-box audit of one run, with its noise or without."""
    asked = TrainRequest.flat(
        out=folder,
        scale="smoke",
        steps=steps,
        size=size,
        batch_size=24,
        epsilon=STATED,
        examples=EXAMPLES,
        unit="day",
        window=24,
        bounds="off",
        typical_level=0.35,
        typical_scale=0.35,
        study=STUDY,
    )
    made = prepare(planted.plant(simulate(meters=2, hours=24 * DAYS, seed=0), homes, seed=0), asked)
    made, canaries = planted.hidden(made, homes)
    training = made.config.training.model_copy(update={"learning_rate": learning_rate})
    made = replace(made, config=made.config.model_copy(update={"training": training}))
    with patch.object(GaussianNoise, "add_", GaussianNoise.add_ if noise else lambda self, sums, step: None):
        made.train(speed=Speed(threads=1))
    return planted.black_box(made, canaries, read(folder), confidence=0.95)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--homes", type=int, default=3)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--size", default="mini")
    parser.add_argument("--learning-rate", type=float, default=4e-3)
    chosen = vars(parser.parse_args())
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        for name, noise in (("no noise", False), ("noise of the plan", True)):
            started = time.process_time()
            found = audited(Path(place) / name, noise=noise, **chosen)
            print(
                f"{name}: {found}; {'CAUGHT' if found.broken else 'not refuted'}, {time.process_time() - started:.0f} s"
            )


if __name__ == "__main__":
    main()
