"""Results made by hand, with numbers that a test knows."""

from collections.abc import Mapping, Sequence
from typing import Any

from tamedit.evaluation.baselines import BAR
from tamedit.evaluation.metrics import METRICS
from tamedit_paper.grid.cells import Cell
from tamedit_paper.grid.measures import BASELINES, Runs
from tamedit_paper.grid.recipes import effort_of, is_panel, network_of, training_of
from tamedit_paper.grid.results import NUMBERS_VERSION, Result

QUANTILES = [0.0, 0.25, 0.5, 0.9, 0.99, 0.999]


def result(
    cell: str,
    seed: int = 0,
    *,
    model: Mapping[str, float] | None = None,
    free: Mapping[str, float] | None = None,
    gains: Mapping[str, tuple[float, float, float]] | None = None,
    norms: Mapping[str, float] | None = None,
    clipping: Mapping[str, float] | None = None,
    loss: float = 0.2,
    seconds: float = 0.1,
    version: int = NUMBERS_VERSION,
) -> Result:
    """A result whose numbers are all 1 but for those named: `model={"forecast point_RMSE": 2.0}`, `norms={"cond": 3.0}`.

    Of the free baselines one alone: `free={"seasonal_mean forecast CRPS": 0.5}`. Panels have all five tasks, and the gains over
    the free distribution that are given: `gains={"forecast CRPS": (0.1, 0.05, 0.2)}`, difference, low and high.
    """
    parsed = Cell.parse(cell)
    effort = effort_of(parsed, "laptop")

    def scores(task: str, own: Mapping[str, float], method: str = "model") -> dict[str, Any]:
        both = {name: own.get(f"{method} {task} {name}", own.get(f"{task} {name}", 1.0)) for name in METRICS}
        return {"z": both, "original": both}

    methods = (*BASELINES, BAR) if is_panel(parsed.source) else BASELINES
    tasks = {
        task: {"model": scores(task, model or {}), **{method: scores(task, free or {}, method) for method in methods}}
        for task in effort.tasks
    }
    compared: dict[str, Any] = {task: {BAR: {}} for task in effort.tasks}
    for key, ends in (gains or {}).items():
        task, name = key.split()
        compared[task][BAR][name] = dict(zip(("difference", "low", "high"), ends, strict=True))
    tails = {which: (norms or {}).get(which, 1.0) for which in ("total", "cond", "other")}
    private = parsed.is_private
    statistics = {name: (clipping or {}).get(name, 0.5) for name in ("p_clip", "mean", "p10", "p50", "p90", "p99")}
    return Result(
        cell=cell,
        scale="laptop",
        seed=seed,
        version=version,
        config={
            "network": network_of(parsed, "laptop"),
            "training": training_of(parsed, "laptop"),
            "privacy": {"clip": parsed.clip, "noise_multiplier": parsed.sigma or 1.0} if private else None,
        },
        evaluation={"windows": effort.windows, "samples": effort.samples, "tasks": tasks, "gains": compared},
        gradients={
            "norms": {which: {"p95": value / 2, "p99": value} for which, value in tails.items()},
            "clipping": statistics if private else None,
            "time": {"mean": seconds, "p50": seconds, "p90": seconds},
        },
        curves={
            "quantiles": QUANTILES,
            **{which: [value * share for share in QUANTILES] for which, value in tails.items()},
            "factor": QUANTILES if private else [],
            "loss_steps": [10.0, 20.0, 30.0, 40.0],
            "losses": [1.0, 0.5, 0.4, loss],
        },
        epsilon={"window": 1876.24, "record": 26635.0} if private else {},
        delta=1e-5 if private else None,
        seconds={"training": 1.0, "evaluation": 1.0},
    )


def runs(numbers: Mapping[str, Sequence[float]], name: str = "forecast point_RMSE") -> Runs:
    """Runs of which only one metric matters: for each cell its value by seed."""
    made = {
        cell: [result(cell, seed, model={name: value}) for seed, value in enumerate(values)]
        for cell, values in numbers.items()
    }
    return Runs(made)
