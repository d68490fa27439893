"""What the record of gradients costs a private step: `python benchmarks/diagnostics_cost.py [--size paper] [--json]`.

The same step (engine, noise, AdamW) with and without the recorder, taking turns in one process. `whole` is the ratio
of the two; where other programs disturb the steps by more than the recorder costs, `share` says it better: the recorder's
own seconds (rows, flushes to disk with every step) over the median step's.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from statistics import median

import torch
from _measure import ratio, take_turns
from dp_step import AWARE, BATCH, CLIP, Step, finish, losses, network, optimiser, rows

from tamedit.privacy.engine import Engine
from tamedit.training.recorder import GRADIENTS, Recorder, path_of


def step_of(size: str, batch: int, recorder: Recorder | None, own: list[float], clock: str) -> Step:
    module, data, count = network(size, AWARE), rows(batch), [0]
    adam = optimiser(module)
    engine = Engine(module, clip=CLIP, groups=path_of)
    now = time.process_time if clock == "cpu" else time.perf_counter

    def step() -> None:
        adam.zero_grad()
        result = engine(losses, data, units=batch)
        finish(module, adam, result.sums, batch)
        if recorder is not None:
            started = now()
            recorder.examples(count[0], result)
            count[0] += 1
            recorder.step(count[0], 1.0)
            recorder.flush()  # with every step; in training every few seconds
            own.append(now() - started)

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=list(BATCH), default="paper")
    parser.add_argument("--batch", type=int)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall", help="cpu: use it with --threads 1")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    batch = options.batch or BATCH[options.size]
    own: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        names = [name for name, _ in network(options.size, AWARE).named_parameters()]
        recorder = Recorder(Path(folder), names, every=1, clip=CLIP, clipping="flat")
        recorder.rewind(0)
        arms = {
            "without": step_of(options.size, batch, None, own, options.clock),
            "with": step_of(options.size, batch, recorder, own, options.clock),
        }
        seconds = take_turns(arms, options.repeats, 2, options.clock)
    found = {
        "size": options.size,
        "batch": batch,
        "whole": {key: round(value, 4) for key, value in ratio(seconds, "with", "without").items()},
        "share": round(median(own) / median(seconds["without"]), 6),
        "step_seconds": round(median(seconds["without"]), 4),
        "recorder_seconds": round(median(own), 6),
        "bytes_an_example": recorder.rows[GRADIENTS].itemsize,
    }
    if options.json:
        print(json.dumps(found, indent=2))
        return
    whole = found["whole"]
    print(
        f"size {options.size}, batch {batch}, {options.repeats} turns, {options.threads} threads, {options.clock} clock"
    )
    print(f"step with recorder / without: {whole['median']:.3f} ({whole['low']:.3f} to {whole['high']:.3f})")
    print(f"the recorder's own time: {found['share']:.4%} of a step; {found['bytes_an_example']} bytes an example")


if __name__ == "__main__":
    main()
