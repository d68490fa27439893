"""Runs that differ only in their seed, combined into one result: mean and Student's t interval of every metric.

The interval describes another training run on the same data: seeds change the start, the order of examples, masks and noise.
Test windows and hidden cells are the same for all runs, so the free baselines hardly move.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tamedit.errors import UserError
from tamedit.evaluation.intervals import LEVEL, combine
from tamedit.runs.folder import load_run

SINGLE = ("tasks", "gains", "bootstrap")  # what belongs to each run by itself


def changed(one: Mapping[str, Any], other: Mapping[str, Any], before: str = "") -> list[str]:
    """The settings in which two trees differ, such as "training.steps"; what one of them lacks counts as None."""
    names = []
    for key in sorted(one.keys() | other.keys()):
        first, second = one.get(key), other.get(key)
        if isinstance(first, Mapping) and isinstance(second, Mapping):
            names += changed(first, second, f"{before}{key}.")
        elif first != second:
            names.append(before + key)
    return names


def seeds_of(runs: Sequence[Path]) -> tuple[int, ...]:
    """The seeds of runs that differ in nothing else; a sentence that names what differs for any others."""
    told = []
    for run in runs:
        config, facts = load_run(run)
        told.append(
            (config.seed, {**config.model_dump(mode="json", exclude={"seed"}), **facts.model_dump(mode="json")})
        )
    seeds: dict[int, Path] = {}
    for run, (seed, own) in zip(runs, told, strict=True):
        different = changed(told[0][1], own)
        if different:
            raise UserError(
                f"{run} and {runs[0]} differ in more than the seed ({', '.join(different)}), so they are not seeds of one "
                "experiment; name runs that were trained with the same choices except `seed`."
            )
        if seed in seeds:
            raise UserError(
                f"{run} and {seeds[seed]} have the same seed, {seed}, so they are not independent; train with another `seed`."
            )
        seeds[seed] = run
    return tuple(seeds)


def over_runs(results: Mapping[str, Mapping[str, Any]], seeds: Sequence[int], level: float = LEVEL) -> dict[str, Any]:
    """Results of `tamedit evaluate` by run, as one: every metric as {mean, half, low, high, seeds}."""
    first = next(iter(results.values()))
    return {
        "runs": list(results),
        "seeds": list(seeds),
        "tasks": combine([result["tasks"] for result in results.values()], level),
        "interval": {"kind": "Student's t over seeds", "level": level},
        **{key: value for key, value in first.items() if key not in SINGLE},
        "results": [{"run": run, **result} for run, result in results.items()],
    }
