"""Seconds that the accountant computes after start-up: `python benchmarks/accountant.py`.

Each row is a question of `tamedit account`, `calibrate` or `plan` asked of an empty cache, in CPU seconds of one process.
`above` is how far the answer of `account` lies above that on a grid four times as fine (--fine): what the coarser grid costs.
The last rows are ε in the progress bar of a run that releases statistics and trains: all of its updates, from an empty cache.
"""

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from tamedit.cli.account import of_plan
from tamedit.cli.calibrate import _target, trade_off
from tamedit.privacy import accountant, losses
from tamedit.privacy.accountant import Mechanism
from tamedit.runs.proposal import propose
from tamedit.training.private.gradients import steps_between_updates

STEPS, DELTA = 20_000, 1e-5
CASES = [
    (rate, noise, k, neighbour)
    for rate, noise in ((0.01, 1.0), (0.144, 3.0))
    for k in (1, 7, 50)
    for neighbour in ("removal", "replacement")
]


def cold(question: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of a question with empty caches, and its answer."""
    for cached in (losses.single, losses.discretisation, losses.spread, losses.loss, losses.binomial_mixture):
        cached.cache_clear()
    begun = time.process_time()
    answer = question()
    return time.process_time() - begun, answer


def row(rate: float, noise: float, k: int, neighbour: Any, fine: bool) -> dict[str, Any]:
    numbers: dict[str, Any] = {"sampling_rate": rate, "steps": STEPS, "delta": DELTA, "contributions": k}
    numbers |= {"neighbour": neighbour}
    seconds, spent = cold(lambda: of_plan(noise_multiplier=noise * max(1, k / 2), **numbers))
    epsilon = spent["epsilon"]["pld"]
    target, found = cold(lambda: _target(8.0, **numbers))
    table, _ = cold(lambda: trade_off(**numbers))
    answer = {"rate": rate, "k": k, "neighbour": neighbour, "account": seconds, "epsilon": epsilon}
    answer |= {"calibrate": target, "noise": found["noise_multiplier"], "trade-off": table}
    if fine:
        usual, losses.EXCESS = losses.EXCESS, losses.EXCESS / 16
        work = [Mechanism(rate, noise * max(1, k / 2), STEPS)]
        answer["above"] = epsilon / accountant.epsilon(work, DELTA, k, neighbour, with_rdp=False).value - 1
        losses.EXCESS = usual
    return answer


def bar(steps: int, k: int, neighbour: Any, step_seconds: float) -> dict[str, Any]:
    """What ε in the progress bar of a run costs: released statistics and training together, as often as training asks."""
    noise, statistics = max(1.0, k / 2), [Mechanism(1.0, 20.0 * k), Mechanism(1.0, 30.0 * k, 2)]

    def run() -> int:
        between = steps_between_updates(steps)
        for done in (asked := [*range(1, steps, between), steps]):
            accountant.epsilon([Mechanism(0.01, noise, done), *statistics], DELTA, k, neighbour, with_rdp=False)
        return len(asked)

    seconds, updates = cold(run)
    answer = {"progress bar": seconds, "updates": updates, "steps": steps, "k": k, "neighbour": neighbour}
    return answer | {"ms per step": 1e3 * seconds / steps, "share of training": seconds / steps / step_seconds}


def shown(answer: dict[str, Any]) -> None:
    print(json.dumps({key: round(value, 5) if isinstance(value, float) else value for key, value in answer.items()}))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fine", action="store_true", help="Compare with half the interval.")
    parser.add_argument("--step-seconds", type=float, default=0.2, help="What a training step takes, for the share.")
    options = parser.parse_args()
    cold(lambda: propose(1000, 8.0, contributions=2, neighbour="replacement"))  # imports
    cold(lambda: of_plan(0.5, 5.0, 10, 1e-3, 2, "removal"))
    for case in CASES:
        shown(row(*case, options.fine))
    for neighbour in ("removal", "replacement"):
        for k in (1, 7, 50):
            seconds, _ = cold(partial(propose, 100_000, 8.0, contributions=k, neighbour=neighbour))
            shown({"plan": seconds, "k": k, "neighbour": neighbour})
    for steps in (500, 2_000, STEPS):
        for k, neighbour in ((1, "removal"), (50, "replacement")):
            shown(bar(steps, k, neighbour, options.step_seconds))


if __name__ == "__main__":
    main()
