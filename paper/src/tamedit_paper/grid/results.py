"""What is stored of a run: one small JSON file, enough for every table and figure.

    paper/results/laptop/household/aware/sigma=0.05/medium/tanh/seed=0.json

A result counts only for the configuration and the version of the numbers that made it; otherwise the run is due again.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from tamedit.files import write_text
from tamedit.runs.config import RunConfig
from tamedit.runs.recipe import Scale

# Raised whenever the code changes what a run computes. A test trains a small cell and compares its numbers with those
# kept for this version, so that a change does not pass unnoticed.
NUMBERS_VERSION = 1


class Job(BaseModel):
    """One run to make."""

    model_config = ConfigDict(frozen=True)

    cell: str
    scale: Scale
    seed: int

    def place(self, folder: Path, ending: str = "") -> Path:
        """Where this run lives under a folder of results or of work."""
        return folder / self.cell / f"seed={self.seed}{ending}"

    @property
    def command(self) -> str:
        return f"tamedit reproduce {self.cell} --scale {self.scale} --seed {self.seed}"


class Result(BaseModel):
    """The result of one run. Everything but ε was computed without noise: not private."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cell: str
    scale: Scale
    seed: int
    version: int
    config: dict[str, Any]
    evaluation: dict[str, Any]  # windows, samples, and tasks → methods → units → metrics
    gradients: dict[str, Any]  # diagnostics.tails.Summary
    curves: dict[str, list[float]]  # quantiles of the norms and of η, losses by step: what figures draw
    epsilon: dict[str, float | None]  # by unit, of the mechanism; empty without privacy
    delta: float | None = None
    seconds: dict[str, float]  # training, evaluation
    private: bool = False  # of this file

    def number(self, task: str, metric: str, unit: str = "z", method: str = "model") -> float | None:
        """A metric of a method; None if the run has none, or was made before the task or the method was added."""
        return self.evaluation["tasks"].get(task, {}).get(method, {}).get(unit, {}).get(metric)


def agrees(result: Result, config: RunConfig) -> bool:
    """Whether a result was made by this configuration: every field the same, and one that it did not know at its default now.

    The word for the origin of an initial model is ignored: no run computes with it.
    """
    word = {"start": {"origin"}}
    now = config.model_dump(mode="json", exclude=word)
    chosen = config.model_dump(mode="json", exclude=word, exclude_defaults=True)
    return result.version == NUMBERS_VERSION and _same(rounded(result.config), rounded(now), rounded(chosen))


def _same(known: Any, now: Any, chosen: Any) -> bool:
    """Whether `known` says what `now` says; of what it says nothing, nothing may be `chosen` (be other than its default)."""
    if not isinstance(now, dict):
        return bool(known == now)
    chosen = chosen if isinstance(chosen, dict) else {}
    return isinstance(known, dict) and all(
        _same(known[key], value, chosen.get(key)) if key in known else key not in chosen for key, value in now.items()
    )


def save(result: Result, folder: Path) -> Path:
    path = Job(cell=result.cell, scale=result.scale, seed=result.seed).place(folder, ".json")
    write_text(path, json.dumps(rounded(result.model_dump(mode="json")), allow_nan=False) + "\n")
    return path


def load(path: Path) -> Result | None:
    """The result in a file; None if there is none or it cannot be read (then the run is due again)."""
    try:
        return Result.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def load_all(folder: Path, cells: Iterable[str], scale: Scale) -> dict[str, list[Result]]:
    """The results of each cell, by seed; current or not is the caller's question."""
    found: dict[str, list[Result]] = {}
    for name in cells:
        own = [load(path) for path in sorted((folder / name).glob("seed=*.json"))]
        found[name] = sorted((one for one in own if one and one.scale == scale), key=lambda one: one.seed)
    return found


def rounded(value: Any) -> Any:
    """Six significant digits: the file stays small, and reads the same on every machine."""
    if isinstance(value, dict):
        return {key: rounded(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(inner) for inner in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value
