"""How much faster a training step is than at an earlier revision of this repository.

    python benchmarks/against.py [REVISION] [--size mini] [--arms nonprivate ours_aware] [--repeats 9] [--allocator default|keep]

Each revision lies in a work tree of its own and runs in a process of its own, one thread each; the two take turns, step by step,
by processor time. The arms are those of `benchmarks/dp_step.py` in that revision, and two more, with masks of training:

    training           the step without privacy as `tamedit train` takes it: the order of the batch, its parts, the allocator
    training_private   the private one, with bounds

Both revisions get the same network and batch; preparing it is not counted. `losses` is the largest relative difference of the
losses of the batch before the first step. The revision by default is the last one before the work on the step began.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median, quantiles
from typing import Any

ROOT = Path(__file__).parents[1]
BEFORE = "70a23d1"


class Revision:
    """A process that takes one step of an arm whenever it is asked."""

    def __init__(self, tree: Path, options: argparse.Namespace, arm: str) -> None:
        environment = os.environ | {"PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, str(tree / "benchmarks" / "against.py"), "--answer", arm]
        command += ["--size", options.size, "--allocator", options.allocator]
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.losses: list[float] = json.loads(self._line())

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def step(self) -> float:
        assert self.process.stdin is not None
        self.process.stdin.write("step\n")
        self.process.stdin.flush()
        return float(self._line())

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def training_rows(size: str) -> tuple[Any, Any, Any]:
    """Windows with masks of training, their diffusion times and their noise."""
    import dp_step
    import numpy as np

    from tamedit.streams import example_keys
    from tamedit.windows.masks import MaskConfig, draw_masks

    windows, _, time, noise = dp_step.rows(dp_step.BATCH.get(size, 96))
    keys = example_keys(0, "masks", 0, np.arange(len(windows)))
    seen = draw_masks(keys, dp_step.LENGTH, MaskConfig())[..., None].float()
    values = windows.context.values + windows.residual
    context = replace(windows.context, values=values * seen, observed=seen)
    return replace(windows, context=context, residual=values * (1 - seen), hidden=1 - seen), time, noise


def training_losses(module: Any, rows: tuple[Any, Any, Any]) -> Any:
    from tamedit.diffusion.loss import denoising_loss
    from tamedit.diffusion.process import Process

    return denoising_loss(module, *rows, Process())


def training(arm: str, size: str) -> Callable[[], None]:
    """A step as this revision's trainer takes it; the oldest ones had no order and no parts."""
    import dp_step

    rows = training_rows(size)
    count, part = len(rows[1]), len(rows[1])
    try:
        from tamedit.training.source import PART as part
        from tamedit.training.source import by_work
    except ImportError:
        pass
    else:
        rows = by_work(rows)
    private = arm == "training_private"
    module = dp_step.network(size, dp_step.AWARE if private else dp_step.Bounds())
    adam = dp_step.optimiser(module)
    if private:
        engine = dp_step.Engine(module, clip=dp_step.CLIP)

        def step() -> None:
            dp_step.finish(module, adam, engine(training_losses, rows, units=count).sums, count)

        return step
    if part < count:
        dp_step.keep_freed_memory()

    def plain() -> None:
        module.zero_grad(set_to_none=False)
        for first in range(0, count, part):
            own = slice(first, first + part)
            (training_losses(module, (rows[0][own], rows[1][own], rows[2][own])).sum() / count).backward()
        adam.step()

    return plain


def answer(arm: str, size: str, allocator: str) -> None:
    """The child: the losses, then the seconds of a step for every line that comes."""
    import dp_step
    import torch

    torch.set_num_threads(1)
    if allocator == "keep":
        dp_step.keep_freed_memory()
    as_trained = arm.startswith("training")
    batch: Any = training_rows(size) if as_trained else dp_step.rows(dp_step.BATCH.get(size, 96))
    with torch.no_grad():
        module = dp_step.network(size, dp_step.Bounds())
        losses = (training_losses if as_trained else dp_step.losses)(module, batch)
    print(json.dumps(losses.tolist()), flush=True)
    step = training(arm, size) if as_trained else dp_step.ARMS[arm](size, batch)
    for _ in sys.stdin:
        begun = time.process_time()
        step()
        print(time.process_time() - begun, flush=True)


def compare(old: Path, options: argparse.Namespace) -> None:
    print(
        f"size {options.size}, allocator {options.allocator}, {options.revision} / now, {options.repeats} turns",
        flush=True,
    )
    for arm in options.arms:
        pair = [Revision(old, options, arm), Revision(ROOT, options, arm)]
        apart = max(abs(one - two) / abs(one) for one, two in zip(*(each.losses for each in pair), strict=True))
        turns = [[each.step() for each in pair] for _ in range(options.repeats + 2)][2:]  # two to warm up
        ratios = [before / now for before, now in turns]
        low, _, high = quantiles(ratios, n=4)
        seconds = [median(turn[number] for turn in turns) for number in (0, 1)]
        print(
            f"{arm:14} {median(ratios):5.2f} ({low:.2f}-{high:.2f})  {seconds[0]:.3f} s -> {seconds[1]:.3f} s  "
            f"losses {apart:.0e}",
            flush=True,
        )
        for each in pair:
            each.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision", nargs="?", default=BEFORE)
    parser.add_argument("--size", default="mini")
    parser.add_argument("--arms", nargs="+", default=["nonprivate", "ours_aware", "training", "training_private"])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--allocator", choices=("default", "keep"), default="default")
    parser.add_argument("--answer", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.answer:
        answer(options.answer, options.size, options.allocator)
        return
    git = ["git", "-C", str(ROOT), "worktree"]
    with tempfile.TemporaryDirectory() as folder:
        old = Path(folder) / "old"
        subprocess.run([*git, "add", "--detach", str(old), options.revision], check=True, capture_output=True)
        try:
            (old / "benchmarks" / "against.py").write_text(Path(__file__).read_text())
            compare(old, options)
        finally:
            subprocess.run([*git, "remove", "--force", str(old)], check=True)


if __name__ == "__main__":
    main()
