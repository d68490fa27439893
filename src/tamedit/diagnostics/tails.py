"""Numbers that sum up gradients: tails, clipping, step times (the paper's sections 3.5 and 4.3, appendices D and F).

    S_total, S_cond, S_other    p95 and p99 of ‖g‖, ‖g_cond‖, ‖g_other‖ over all recorded steps and examples
    ρ_emp, ρ_cond               S_total and S_cond of a run, divided by the baseline's (DP-vanilla)
    p_clip                      the share of examples with ‖g‖ > C
    η                           min(1, C / ‖g‖): mean, p10, p50, p90, p99
    Hill's tail index           k / Σ_{i ≤ k} log(x_(i) / x_(k+1)), x_(1) ≥ x_(2) ≥ …; a Pareto tail P(X > x) ~ x^−a has index a

ρ describes what was measured. It is not a bound.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tamedit.diagnostics.gradient_record import NORMS, Norm, Record

TAIL_SHARE = 0.05  # of the examples: what Hill's estimator calls the tail
FEWEST = 10  # examples in a tail


@dataclass(frozen=True)
class Tail:
    """One norm over all recorded examples; `hill` is None where the tail has too few of them."""

    p50: float
    p95: float
    p99: float
    largest: float
    hill: float | None


@dataclass(frozen=True)
class Clipping:
    """How often and how hard a run clips."""

    p_clip: float
    mean: float
    p10: float
    p50: float
    p90: float
    p99: float


@dataclass(frozen=True)
class StepTime:
    """Seconds of a step: gradient, optimiser and moving average; without validation, checkpoints and recording."""

    mean: float
    p50: float
    p90: float


@dataclass(frozen=True)
class Summary:
    """Everything about one run; None where nothing was recorded."""

    steps: int
    examples: int
    not_finite: int  # examples that counted as zero; left out of the norms
    norms: dict[Norm, Tail] | None
    clipping: Clipping | None
    time: StepTime | None
    parts: dict[str, dict[str, float]]  # p99 by part of the network, then cond or other

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def hill(values: np.ndarray, share: float = TAIL_SHARE) -> float | None:
    """The tail index of positive values from their largest `share`; small means heavy. None if the tail is too thin."""
    values = values[values > 0]
    count = int(len(values) * share)
    if count < FEWEST:
        return None
    largest = np.partition(values, len(values) - count - 1)[len(values) - count - 1 :]
    excess = float(np.log(largest[1:] / largest[0]).sum())
    return count / excess if excess > 0 else None


def tail(values: np.ndarray) -> Tail:
    p50, p95, p99 = np.quantile(values, (0.5, 0.95, 0.99)).tolist()
    return Tail(p50, p95, p99, float(values.max()), hill(values))


def clipping(norms: np.ndarray, factors: np.ndarray, clip: float) -> Clipping:
    """`norms` of the finite gradients, `factors` of all."""
    p10, p50, p90, p99 = np.quantile(factors, (0.1, 0.5, 0.9, 0.99)).tolist()
    return Clipping(float((norms > clip).mean()), float(factors.mean()), p10, p50, p90, p99)


def step_time(seconds: np.ndarray) -> StepTime:
    p50, p90 = np.quantile(seconds, (0.5, 0.9)).tolist()
    return StepTime(float(seconds.mean()), p50, p90)


def summarise(record: Record) -> Summary:
    """The numbers of one run."""
    seen = {which: record.norms(which) for which in NORMS}
    some = all(len(values) > 0 for values in seen.values())
    clips = some and record.clip is not None
    parts: dict[str, dict[str, float]] = {}
    for column, (part, path) in enumerate(record.parts if some else ()):
        parts.setdefault(part, {})[path] = float(np.quantile(record.part_norms(column), 0.99))
    seconds = np.asarray(record.times["seconds"], dtype=np.float64)
    return Summary(
        steps=len(np.unique(record.rows["step"])),
        examples=len(record.rows),
        not_finite=len(record.rows) - len(seen["total"]),
        norms={which: tail(values) for which, values in seen.items()} if some else None,
        clipping=clipping(seen["total"], record.factors(), record.clip or 1.0) if clips else None,
        time=step_time(seconds) if len(seconds) else None,
        parts=parts,
    )


def reductions(run: Summary, baseline: Summary) -> dict[str, dict[str, float]] | None:
    """ρ_emp and ρ_cond at p95 and p99: the run's S over the baseline's; below 1 the run's tails are lighter."""
    if run.norms is None or baseline.norms is None:
        return None
    named: dict[str, Norm] = {"emp": "total", "cond": "cond"}
    return {
        name: {
            "p95": _ratio(run.norms[which].p95, baseline.norms[which].p95),
            "p99": _ratio(run.norms[which].p99, baseline.norms[which].p99),
        }
        for name, which in named.items()
    }


def slowdown(run: Summary, plain: Summary) -> dict[str, float] | None:
    """Step time over the Non-DP run's: of means, as in the paper, and of medians, which a busy machine disturbs less."""
    if run.time is None or plain.time is None:
        return None
    return {"mean": _ratio(run.time.mean, plain.time.mean), "p50": _ratio(run.time.p50, plain.time.p50)}


def _ratio(one: float, other: float) -> float:
    return one / other if other else float("nan")
