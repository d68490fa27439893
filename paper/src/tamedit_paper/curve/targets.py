"""What the ε curve must show, judged by stated rules; and aware against vanilla, pair by pair.

Every comparison has one number per seed, d_s, and I is its 95 % t-interval over seeds (`verdicts.Check`).

    (a) free        d = best free baseline − run > 0, for RMSE and CRPS of both tasks. The free baselines see the same windows
                    with every seed and do not vary, so I above 0 says that the two intervals do not touch
    (b), (c) kept   d = share of the non-private CRPS gain over the free fill with a Gaussian that is kept (`utility.kept`), above
                    60 % and 35 %, both tasks; (b′), (c′) the same over draws from the same hour, which are harder to beat
    (d) coverage    d = share of hidden cells within the 90 % band, between 85 % and 95 %, both tasks

    met             I lies where the target says, for every comparison
    missed          I lies outside for at least one
    open            neither: I reaches across a border
    not yet run     a run is missing, or has fewer than 3 seeds

    (e) contrast    d = vanilla − aware for RMSE and CRPS of both tasks; aware is *better* where I lies above 0, *worse* where
                    it lies below, *not told apart* where it holds 0
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from tamedit.choices import Anchor
from tamedit.evaluation.labels import LABELS
from tamedit_paper.claims.utility import ahead
from tamedit_paper.claims.verdicts import Check, Claim, Outcome, less
from tamedit_paper.curve.cells import (
    ARMS,
    EPSILONS,
    FORMS,
    FREE,
    HARDER,
    TASKS,
    BoundArm,
    kept,
    private,
    without_bounds,
)
from tamedit_paper.grid.cells import Cell
from tamedit_paper.grid.measures import BASELINES, Runs, metric

METRICS = {"RMSE": "point_RMSE", "CRPS": "CRPS"}
KEPT = {8.0: 0.6, 3.0: 0.35}  # ε → the share of the non-private gain that must survive
COVERAGE = (0.85, 0.95)
NO_GAIN = "no gain to keep"
WORDS: dict[Outcome, str] = {
    "holds": "better",
    "opposite": "worse",
    "open": "not told apart",
    "few seeds": "few seeds",
    "missing": "not yet run",
}


@dataclass(frozen=True)
class Target(Claim):
    """Something that the issue asks for. `pointless`: why the question cannot be asked of these runs."""

    pointless: str = ""

    @property
    def verdict(self) -> str:
        if self.pointless or self.unfinished:
            return self.pointless or self.unfinished
        outcomes = {check.outcome for check in self.checks}
        return "met" if outcomes == {"holds"} else "missed" if "opposite" in outcomes else "open"


@dataclass(frozen=True)
class Asked:
    """One row of targets: what is asked, and the answer of every kind of run (arm, form)."""

    letter: str
    said: str
    answers: dict[tuple[BoundArm, Anchor], Target]


KINDS: tuple[tuple[BoundArm, Anchor], ...] = tuple((arm, anchor) for anchor in FORMS for arm in ARMS)


def kind_text(arm: BoundArm, anchor: Anchor) -> str:
    return f"{arm}, {'anchored' if anchor == 'free' else 'the paper’s form'}"


def targets(runs: Runs, source: str) -> list[Asked]:
    """Every target for runs that begin from the public model, unit home-week."""
    asked: list[tuple[str, str, float, Callable[[Runs, str, str, float], Target]]] = [
        *((("a", f"better than every free baseline, ε = {epsilon:g}", epsilon, _free)) for epsilon in EPSILONS),
        *(
            (letter + mark, _kept_text(epsilon, bar), epsilon, partial(_kept, bar=bar))
            for mark, bar in (("", FREE), ("′", HARDER))
            for letter, epsilon in zip("bc", KEPT, strict=True)
        ),
        *((("d", f"90 % bands cover 85–95 %, ε = {epsilon:g}", epsilon, _coverage)) for epsilon in EPSILONS),
    ]
    return [
        Asked(
            letter,
            said,
            {
                kind: judge(runs, f"({letter}) {said}: {kind_text(*kind)}", _cell(source, kind, epsilon), epsilon)
                for kind in KINDS
            },
        )
        for letter, said, epsilon, judge in asked
    ]


def _cell(source: str, kind: tuple[BoundArm, Anchor], epsilon: float) -> str:
    arm, anchor = kind
    return private(source, arm, epsilon, anchor=anchor)


def _kept_text(epsilon: float, bar: str) -> str:
    share = f"at least {100 * KEPT[epsilon]:.0f} % of the non-private CRPS gain"
    return f"{share} over {LABELS[bar]} kept, ε = {epsilon:g}"


def _free(runs: Runs, title: str, cell: str, epsilon: float) -> Target:
    checks = tuple(
        Check(f"{task} {shown}, best free − run", ahead(runs, cell, task, name, BASELINES))
        for task in TASKS
        for shown, name in METRICS.items()
    )
    return Target(title, cell, "every interval above 0", checks)


def _kept(runs: Runs, title: str, cell: str, epsilon: float, bar: str) -> Target:
    shares = {task: kept(runs, cell, task, bar) for task in TASKS}
    lost = [task for task, own in shares.items() if own is None]
    checks = tuple(Check(f"{task} CRPS, share kept", own or {}, low=KEPT[epsilon]) for task, own in shares.items())
    pointless = f"{NO_GAIN} ({', '.join(lost)})" if lost else ""
    return Target(title, cell, f"every interval above {KEPT[epsilon]:g}", checks, pointless=pointless)


def _coverage(runs: Runs, title: str, cell: str, epsilon: float) -> Target:
    checks = tuple(
        Check(f"{task}, share within the band", runs.values(cell, metric(task, "coverage90")), *COVERAGE)
        for task in TASKS
    )
    return Target(title, cell, "every interval within 0.85 and 0.95", checks)


@dataclass(frozen=True)
class Contrast:
    """An aware run beside its vanilla partner; every check is vanilla − aware."""

    cell: str  # the aware one
    checks: tuple[Check, ...]

    @property
    def source(self) -> str:
        return Cell.parse(self.cell).source

    @property
    def verdict(self) -> str:
        """Of all metrics: better (or worse) in some and worse (or better) in none."""
        unfinished = Claim("", "", "", self.checks).unfinished
        if unfinished:
            return unfinished
        outcomes = [check.outcome for check in self.checks]
        better, worse = outcomes.count("holds"), outcomes.count("opposite")
        if better and worse:
            return f"mixed ({better} better, {worse} worse of {len(outcomes)})"
        if better or worse:
            return f"{'better' if better else 'worse'} ({better or worse} of {len(outcomes)})"
        return WORDS["open"]


def contrasts(runs: Runs, cells: Iterable[str]) -> Iterator[Contrast]:
    """Every aware cell whose vanilla partner is among the cells as well, in their order; public models are no pair."""
    names = list(cells)
    for name in names:
        cell, partner = Cell.parse(name), without_bounds(name)
        if cell.tightness == "off" or cell.arm == "untuned" or partner not in names:
            continue
        checks = tuple(
            less(f"{task} {shown}, vanilla − aware", runs, name, partner, metric(task, key))
            for task in TASKS
            for shown, key in METRICS.items()
        )
        yield Contrast(name, checks)
