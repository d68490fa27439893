"""Makes the model of simulated homes that ships with the package: `python tools/homes_model.py --out runs/homes`.

One thread, so that the result is the same to the bit on the same machine and version of torch. Ctrl-C stops it, `--resume`
continues it. Copy `model.safetensors` and `model.json` to `src/tamedit/shipped/homes/` to ship it.
"""

import argparse
import sys
import time
from pathlib import Path

from tamedit.runs.config import Speed
from tamedit.training.homes import STEPS, train_homes

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", type=Path, required=True)
parser.add_argument("--steps", type=int, default=STEPS)
parser.add_argument("--resume", action="store_true")
arguments = parser.parse_args()
begun = time.monotonic()


def progress(step: int, steps: int, numbers: dict[str, float]) -> None:
    if step % 100 == 0:
        print(
            f"{step}/{steps} loss {numbers['loss']:.4f} {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True
        )


finished = train_homes(
    arguments.out, steps=arguments.steps, speed=Speed(threads=1), resume=arguments.resume, progress=progress
)
print(f"wrote {arguments.out}" if finished else "stopped; continue with --resume")
