"""What the ε curve must show, judged by stated rules; and aware against vanilla, pair by pair.

    at most             the mean over seeds of CRPS, as a multiple of that of draws from the same hour, is at most the limit
    between             the mean share of hidden cells within the band lies between the limits
    better than free    the interval over homes of the gain over the free distribution lies above 0, for every seed
    no worse than free  that interval does not lie below 0
    no worse than start the t-interval over seeds of (untuned − run) does not lie below 0; better: it lies above 0

A run has enough seeds with 3. The shipped model and the free distribution have no seeds: one number is enough.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from tamedit.evaluation.baselines import BAR
from tamedit.evaluation.intervals import OverSeeds, over_seeds
from tamedit.evaluation.task_table import NAMES, TWO
from tamedit_paper.claims.verdicts import ENOUGH, ratio
from tamedit_paper.curve.cells import HOUR, curve_cells, private, untuned, without_bounds
from tamedit_paper.curve.gains import HomeGain, home_gain
from tamedit_paper.curve.tables import BANDS, PATH_SCORES, PATH_TASKS, SHORT, free_values, kind, markdown_rows, multiple
from tamedit_paper.grid.cells import Cell
from tamedit_paper.grid.measures import BySeed, Runs, metric, paired

FREE_LIMITS = dict(zip(TWO, (0.90, 0.98), strict=True))
TUNED_LIMITS = dict(zip(TWO, (0.86, 0.955), strict=True))
COVERAGE = dict(zip(BANDS, ((0.47, 0.55), (0.87, 0.93)), strict=True))
DAY_TASKS = tuple(task for task in PATH_TASKS if task != "long_gap")  # one day is hidden, so its total is the day's
BETTER = (
    *((task, "CRPS") for task in NAMES if task != "forecast"),
    *((task, "path_total_CRPS") for task in DAY_TASKS),
)
TOTAL_AND_PEAK = ("path_total_CRPS", "path_peak_CRPS")
MET, MISSED, NOT_YET = "met", "missed", "not run"
LEAST_BETTER = 2  # tasks


@dataclass(frozen=True)
class Target:
    """One thing that the curve must show, the numbers that decide it, and the verdict."""

    said: str
    numbers: str
    verdict: str


def targets(runs: Runs) -> list[Target]:
    """In the order of the page: the free distribution, ε = 8 per home-week, random weights, the whole home."""
    return [*_free(runs), *_tuned(runs), *_scratch(runs), *_whole_home(runs)]


def _free(runs: Runs) -> Iterator[Target]:
    cells = curve_cells()
    for task, limit in FREE_LIMITS.items():
        values = ratio(*(free_values(runs, cells, task, "CRPS", method) for method in (BAR, HOUR)))
        said = f"free distribution, {SHORT[task]}: CRPS at most {limit:g} × draws from the same hour"
        yield _limit(said, values, -1.0, limit, 3, least=1)
    for band, (low, high) in COVERAGE.items():
        for task in TWO:
            values = free_values(runs, cells, task, band, BAR)
            said = (
                f"free distribution, {SHORT[task]}: the {BANDS[band]} band covers {100 * low:.0f} to {100 * high:.0f} %"
            )
            yield _limit(said, values, low, high, 3, least=1)


def _tuned(runs: Runs) -> Iterator[Target]:
    name, short = private("aware", 8.0), "ε = 8 per home-week, from the shipped model"
    for task, limit in TUNED_LIMITS.items():
        said = f"{short}, {SHORT[task]}: CRPS at most {limit:g} × draws from the same hour"
        yield _limit(said, multiple(runs, name, task, HOUR), -1.0, limit, 3)
    for task, score in BETTER:
        found = home_gain(runs, name, task, score)
        what = "CRPS" if score == "CRPS" else "the day's total"
        said = f"{short}, {SHORT[task]}, {what}: better than the free distribution"
        yield _judged(said, found, found is not None and found.is_better)
    yield from _no_worse_than_start(runs, name, short)


def _scratch(runs: Runs) -> Iterator[Target]:
    name, short = private("aware", 8.0, public=""), "ε = 8 per home-week, from random weights"
    gains = {task: home_gain(runs, name, task, "CRPS") for task in NAMES}
    for task, found in gains.items():
        said = f"{short}, {SHORT[task]}: no worse than the free distribution"
        yield _judged(said, found, found is not None and not found.is_worse)
    better = [SHORT[task] for task, found in gains.items() if found is not None and found.is_better]
    said = f"{short}: better than the free distribution in {LEAST_BETTER} tasks or more"
    yield _counted(
        said, better, len(better) >= LEAST_BETTER, _unfinished([g.seeds if g else 0 for g in gains.values()])
    )


def _whole_home(runs: Runs) -> Iterator[Target]:
    name, short = private("aware", 8.0, "series"), "ε = 8 per whole home, from the shipped model"
    yield from _no_worse_than_start(runs, name, short)
    found = {task: ahead_of_start(runs, name, task) for task in NAMES}
    better = [SHORT[task] for task, values in found.items() if len(values) >= ENOUGH and _low(values) > 0]
    said = f"{short}: better than the shipped model in a task or more"
    yield _counted(said, better, bool(better), _unfinished([len(values) for values in found.values()]))


def _no_worse_than_start(runs: Runs, name: str, short: str) -> Iterator[Target]:
    asked = [(task, "CRPS") for task in NAMES] + [(task, score) for task in PATH_TASKS for score in TOTAL_AND_PEAK]
    for task, score in asked:
        values = ahead_of_start(runs, name, task, score)
        what = f", {PATH_SCORES[score]}" if score in PATH_SCORES else ""
        said = f"{short}, {SHORT[task]}{what}: no worse than the shipped model"
        unfinished = _unfinished([len(values)])
        verdict = unfinished or (MISSED if _high(values) < 0 else MET)
        yield Target(said, f"untuned − run: {signed(values)}" if values else "–", verdict)


def ahead_of_start(runs: Runs, name: str, task: str, score: str = "CRPS") -> BySeed:
    """A score of the untuned shipped model minus that of the run, by the run's seeds: there is one shipped model."""
    start = list(runs.values(untuned(), metric(task, score)).values())
    return {seed: start[0] - value for seed, value in runs.values(name, metric(task, score)).items() if start}


def _limit(said: str, values: BySeed, low: float, high: float, decimals: int, least: int = ENOUGH) -> Target:
    unfinished = _unfinished([len(values)], least)
    if not values:
        return Target(said, "–", unfinished)
    found = over_seeds(list(values.values()))
    around = "" if found.half is None else f" ± {found.half:.{decimals}f}"
    return Target(
        said, f"{found.mean:.{decimals}f}{around}", unfinished or (MET if low <= found.mean <= high else MISSED)
    )


def _judged(said: str, found: HomeGain | None, is_met: bool) -> Target:
    unfinished = _unfinished([found.seeds if found else 0])
    return Target(said, f"gain {found}" if found else "–", unfinished or (MET if is_met else MISSED))


def _counted(said: str, better: Sequence[str], is_met: bool, unfinished: str) -> Target:
    numbers = f"{len(better)}: {'; '.join(better)}" if better else "none"
    return Target(said, "–" if unfinished else numbers, unfinished or (MET if is_met else MISSED))


def _unfinished(seeds: Sequence[int], least: int = ENOUGH) -> str:
    fewest = min(seeds)
    if fewest >= least:
        return ""
    return f"{NOT_YET} with enough seeds ({fewest})" if fewest else NOT_YET


def signed(values: BySeed) -> str:
    """A difference over seeds."""
    found = over_seeds(list(values.values()))
    return f"{found.mean:+.4f}" + ("" if found.half is None else f" ± {found.half:.4f}")


def _interval(values: BySeed) -> OverSeeds:
    return over_seeds(list(values.values()))


def _low(values: BySeed) -> float:
    return _interval(values).low or 0.0


def _high(values: BySeed) -> float:
    return _interval(values).high or 0.0


def target_table(found: Sequence[Target]) -> str:
    return markdown_rows(
        ["target", "found", "verdict"], ([one.said, one.numbers, f"**{one.verdict}**"] for one in found)
    )


def tally(found: Sequence[Target]) -> str:
    """How many targets are met, missed and not run."""
    words = [MET if one.verdict == MET else MISSED if one.verdict == MISSED else NOT_YET for one in found]
    return f"{words.count(MET)} of {len(words)} met, {words.count(MISSED)} missed, {words.count(NOT_YET)} not run."


def contrasts(runs: Runs) -> list[str]:
    """One sentence per pair of an aware and a vanilla run: vanilla − aware over seeds, above 0 where aware is better."""
    names = curve_cells()
    pairs = [(name, without_bounds(name)) for name in names if Cell.parse(name).is_bounded]
    return [_contrast(runs, name, partner) for name, partner in pairs if partner in names]


def _contrast(runs: Runs, name: str, partner: str) -> str:
    beginning, budget, _ = kind(Cell.parse(name))
    said = f"ε = {budget}, from {beginning}"
    differences = {
        task: paired(runs.values(partner, metric(task, "CRPS")), runs.values(name, metric(task, "CRPS")))
        for task in NAMES
    }
    fewest = min(len(values) for values in differences.values())
    if not fewest:
        return f"{said}: not run."
    parts = [f"{SHORT[task]} {signed(values)}{_word(values)}" for task, values in differences.items()]
    level = fmean(fmean(runs.values(partner, metric(task, "CRPS")).values()) for task in NAMES)
    return f"{said}, vanilla − aware in CRPS, {fewest} seeds: {'; '.join(parts)}. (CRPS is about {level:.2f}.)"


def _word(values: BySeed) -> str:
    if len(values) < ENOUGH:
        return ""
    return " (aware is better)" if _low(values) > 0 else " (aware is worse)" if _high(values) < 0 else ""
