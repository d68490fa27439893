"""How good the model is at each task: its scores beside free guesses, and the honesty of its intervals."""

from collections.abc import Callable
from dataclasses import dataclass

from tamedit.evaluation.baselines import BAR
from tamedit.evaluation.evaluate import Evaluation
from tamedit.evaluation.gains import Gain
from tamedit.evaluation.labels import LABELS
from tamedit.evaluation.reliability import Curve
from tamedit.evaluation.task_table import TASKS
from tamedit.formatting import percent, significant, whole_percent
from tamedit.report.findings import Findings

ERRORS = {"rmse": "point_RMSE", "mae": "point_MAE", "crps": "CRPS"}  # by name, the name of the interval
PATH_ERRORS = {name: name for name in ("path_total_CRPS", "path_peak_CRPS", "path_energy", "path_variogram")}
GLANCE = ("CRPS", "path_total_CRPS", "path_peak_CRPS")  # what is compared with the free distribution first
COVERAGES = ("coverage50", "coverage90")
LEVELS = (0.5, 0.8, 0.9)  # rows of the table of intervals


@dataclass(frozen=True)
class Cell:
    """A number as people read it, with all of its digits for programs."""

    value: float
    shown: str
    ends: tuple[str, ...] = ()  # of its 95 % interval
    best: bool = False


@dataclass(frozen=True)
class Verdict:
    """The model's CRPS against that of the best guess that costs nothing."""

    own: float
    free: float
    guess: str
    gain: Gain

    @property
    def headline(self) -> str:
        """12 % better, or what else is the case; a difference whose interval contains 0 is none to speak of."""
        if self.free == 0:
            return "no better" if self.own else "equal"
        if self.gain.outcome == "unknown":
            return "too few windows to say"
        if self.gain.outcome == "undecided":
            return "not surely different"
        change = self.own / self.free - 1
        if abs(change) < 0.005:
            return "the same"
        return f"{whole_percent(abs(change))} {'better' if change < 0 else 'worse'}"

    @property
    def than(self) -> str:
        """The word after the headline."""
        words = {"equal": "to", "the same": "as", "not surely different": "from", "too few windows to say": "against"}
        return words.get(self.headline, "than")


@dataclass(frozen=True)
class Against:
    """One number of the model against that of the free distribution."""

    share: float | None  # of the free distribution's number; above 0: the model is better
    gain: Gain

    @property
    def words(self) -> str:
        """12.3 % better; "no sure difference" where the interval contains 0, "too few to say" where there is none."""
        if self.gain.outcome == "undecided":
            return "no sure difference"
        if self.gain.outcome == "unknown":
            return "too few to say"
        side = "better" if self.gain.difference > 0 else "worse"
        return side if self.share is None else f"{percent(abs(self.share))} % {side}"


@dataclass(frozen=True)
class Task:
    """One task on the page."""

    key: str
    name: str
    words: str  # what is hidden
    paths: bool
    against: dict[str, Against | None]  # by metric, of GLANCE
    verdict: Verdict | None  # None: nothing can be scored
    tables: dict[str, dict[str, list[Cell | None]]]  # by unit, then by method
    path_tables: dict[str, dict[str, list[Cell | None]]]  # the same for path scores; empty where there are no paths
    model: Curve
    free: Curve

    @property
    def widest(self) -> tuple[float, float | None]:
        """The widest level, and how much of the truth the model's intervals hold there."""
        return self.model.levels[-1], self.model.coverage[-1]

    @property
    def inside(self) -> tuple[float, float] | None:
        """Between which shares the truth lies inside the widest intervals: 95 % sure where windows were resampled."""
        share, ends = self.model.at(self.model.levels[-1])
        return None if share is None else ends or (share, share)

    @property
    def judgement(self) -> str:
        return judged(self.name, self.model)


def tasks(found: Findings) -> list[Task]:
    """Every task that was asked."""
    scored, units = found.evaluation, ("z", "original")
    return [
        Task(
            key=key,
            name=TASKS[key].label,
            words=scored.words[key],
            paths=TASKS[key].paths,
            against={name: _against(scored, key, name) for name in GLANCE},
            verdict=_verdict(scored, key),
            tables={unit: _scores(scored, key, unit, ERRORS, COVERAGES if unit == "z" else ()) for unit in units},
            path_tables={unit: _scores(scored, key, unit, PATH_ERRORS) for unit in units if TASKS[key].paths},
            model=found.curves[key, "model"],
            free=found.curves[key, BAR],
        )
        for key in scored.tasks
    ]


def levels(shown: list[Task]) -> tuple[list[float], list[tuple[str, str, list[Cell | None]]]]:
    """Nominal levels; and coverage at each of them by task and method: of the model and of the free distribution."""
    able = shown[0].model.levels
    chosen = [one for one in LEVELS if one in able] or list(able[-1:])
    rows = [
        (task.name, LABELS[method], [_cell(*curve.at(level), percent) for level in chosen])
        for task in shown
        for method, curve in (("model", task.model), (BAR, task.free))
    ]
    return chosen, rows


def _against(evaluation: Evaluation, task: str, metric: str) -> Against | None:
    found, bar = evaluation.gain_over_bar(task, metric), evaluation.of(task, BAR).z[metric]
    return None if found is None else Against(found.difference / bar if bar else None, found)


def _verdict(evaluation: Evaluation, task: str) -> Verdict | None:
    own, found = evaluation.of(task, "model").z.crps, evaluation.smallest_gain(task, "CRPS")
    if own is None or found is None:
        return None
    return Verdict(own, evaluation.free(task)[found[0]].crps or 0.0, LABELS[found[0]], found[1])


def _scores(
    evaluation: Evaluation, task: str, unit: str, errors: dict[str, str], coverages: tuple[str, ...] = ()
) -> dict[str, list[Cell | None]]:
    """Errors and coverages by method."""
    scores = {LABELS[row.method]: getattr(row, unit) for row in evaluation.rows if row.task == task}
    least = {
        name: min((one[name] for one in scores.values() if one[name] is not None), default=None) for name in errors
    }
    return {
        method: [
            *(_cell(own[name], own.intervals[full], significant, least[name]) for name, full in errors.items()),
            *(_cell(own[name], own.intervals[name], percent) for name in coverages),
        ]
        for method, own in scores.items()
    }


def _cell(
    value: float | None, ends: tuple[float, float] | None, shown: Callable[[float], str], least: float | None = None
) -> Cell | None:
    if value is None:
        return None
    best = least is not None and shown(value) == shown(least)
    return Cell(float(value), shown(value), tuple(shown(end) for end in ends or ()), best)


def judged(name: str, curve: Curve) -> str:
    """What may be said of the widest interval, no more."""
    level = curve.levels[-1]
    share, ends = curve.at(level)
    if share is None:
        return f"{name.capitalize()}: nothing could be checked."
    said = f"{name.capitalize()}: the {whole_percent(level)} intervals hold {percent(share)} % of the truth"
    if ends is None:
        return f"{said}; these windows are too few to say more."
    said += f" (95 % interval {percent(ends[0])} to {percent(ends[1])} %): "
    if ends[1] < level:
        return said + "too narrow, so do not rely on them."
    if ends[0] > level:
        return said + "too wide, so they are cautious."
    return said + "in line with what they promise, as far as these windows can tell."
