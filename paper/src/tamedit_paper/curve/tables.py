"""The tables of the ε curve: CRPS, whole paths, gains over the free distribution, coverage, and the share that is kept."""

from collections.abc import Iterable, Sequence

from tamedit.evaluation.baselines import BAR
from tamedit.evaluation.intervals import over_seeds
from tamedit.evaluation.labels import LABELS
from tamedit.evaluation.task_table import NAMES, TASKS, TWO
from tamedit_paper.claims.verdicts import ratio
from tamedit_paper.curve.cells import BEGINNINGS, HOUR, OWNED, Group, arm_of, groups, kept
from tamedit_paper.curve.gains import HomeGain, home_gain
from tamedit_paper.grid.cells import Cell
from tamedit_paper.grid.measures import BySeed, Runs, metric
from tamedit_paper.tables import numbers
from tamedit_paper.tables.layout import NONE
from tamedit_paper.tables.render import NOT_RUN, ONE_SEED

SHORT = {
    "imputation": "gap filling",
    "forecast": "forecast",
    "cold_start_24": "cold start, 1 day known",
    "cold_start_48": "cold start, 2 days known",
    "long_gap": "long gap",
}
PATH_TASKS = tuple(name for name in NAMES if TASKS[name].paths)
PATH_SCORES = {
    "path_total_CRPS": "total",
    "path_peak_CRPS": "peak",
    "path_energy": "energy score",
    "path_variogram": "variogram score",
}
GAINS = (
    *((task, "CRPS", SHORT[task]) for task in NAMES),
    *((task, "path_total_CRPS", f"{SHORT[task]}:<br>total") for task in PATH_TASKS),
)
BANDS = {"coverage50": "50 %", "coverage90": "90 %"}
NO_GAIN = "no gain to keep"
SAME_BAR = 0.01  # relative: free distributions of two runs that differ by more did not see the same windows


def budget(cell: Cell) -> str:
    """ε and its unit."""
    if cell.arm == "untuned":
        return "none used (untuned)"
    return "∞" if cell.epsilon is None else f"{cell.epsilon:g} {OWNED[cell.unit]}"


def kind(cell: Cell) -> tuple[str, str, str]:
    """Beginning, ε with its unit, and arm."""
    return BEGINNINGS[cell.public], budget(cell), arm_of(cell.name)


LEADS = ("begins from", "ε", "arm")


def over(values: BySeed, decimals: int = 4, percent: bool = False) -> str:
    """Mean ± half-width of the 95 % t-interval over seeds."""
    if not values:
        return NOT_RUN
    factor, ending = (100.0, " %") if percent else (1.0, "")
    found = over_seeds(list(values.values()))
    mean = f"{factor * found.mean:.{decimals}f}"
    if found.half is None:
        return f"{mean}{ending} {ONE_SEED}"
    return f"{mean} ± {factor * found.half:.{decimals}f}{ending}"


def free_values(runs: Runs, cells: Iterable[str], task: str, name: str, method: str) -> BySeed:
    """A free guess: the first run that has scored it says it, for all see the same windows."""
    found = (runs.values(cell, metric(task, name, method)) for cell in cells)
    first = next((own for own in found if own), {})
    return dict(list(first.items())[:1])


def crps_table(group: Group, runs: Runs) -> str:
    """CRPS of all tasks, and as a multiple of draws from the same hour; what is free stands below."""
    rows = []
    for name in group.cells:
        cell = Cell.parse(name)
        scores = [over(runs.values(name, metric(task, "CRPS"))) for task in NAMES]
        multiples = [over(multiple(runs, name, task, HOUR), 3) for task in TWO]
        rows.append([*kind(cell), *scores, *multiples, _beside(cell, runs), str(runs.seeds(name))])
    for method in (BAR, HOUR):
        values = {task: free_values(runs, group.cells, task, "CRPS", method) for task in NAMES}
        scores = [_single(values[task]) for task in NAMES]
        bars = {task: free_values(runs, group.cells, task, "CRPS", HOUR) for task in TWO}
        multiples = [_single(ratio(values[task], bars[task]), 3) for task in TWO]
        label = f"**{LABELS[method]}**" if method == BAR else LABELS[method]
        rows.append([label, *["free"] * 2, *scores, *multiples, NONE, NONE])
    heads = [
        *(f"{SHORT[task]} ↓" for task in NAMES),
        *(f"{SHORT[task]}, × same hour" for task in TWO),
        "the same run: ε per reading / per whole home",
        "seeds",
    ]
    return markdown_rows([*LEADS, *heads], rows)


def multiple(runs: Runs, name: str, task: str, method: str) -> BySeed:
    """CRPS of a run over that of a free guess, by seed."""
    return ratio(runs.values(name, metric(task, "CRPS")), runs.values(name, metric(task, "CRPS", method)))


def _single(values: BySeed, decimals: int = 4) -> str:
    return f"{next(iter(values.values())):.{decimals}f}" if values else NOT_RUN


def _beside(cell: Cell, runs: Runs) -> str:
    known = runs.epsilon(cell.name)
    if not cell.is_private or not known:
        return NONE
    return " / ".join(numbers.epsilon(known[unit]) if unit in known else NONE for unit in ("record", "series"))


def path_table(runs: Runs, task: str) -> str:
    """Scores of whole stretches at one task."""
    rows = [
        [*kind(Cell.parse(name)), *(over(runs.values(name, metric(task, score))) for score in PATH_SCORES)]
        for name in shown_cells()
    ]
    for method in (BAR, HOUR):
        values = [free_values(runs, shown_cells(), task, score, method) for score in PATH_SCORES]
        rows.append([LABELS[method], *["free"] * 2, *map(_single, values)])
    return markdown_rows([*LEADS, *(f"{said} ↓" for said in PATH_SCORES.values())], rows)


def shown_cells() -> list[str]:
    """Every cell once, in the order of the groups."""
    return list(dict.fromkeys(name for group in groups() for name in group.cells))


def gain_table(runs: Runs) -> str:
    """The gain over the free distribution with its interval over homes; bold where it is above 0 for every seed."""
    rows = []
    for name in shown_cells():
        found = [home_gain(runs, name, task, score) for task, score, _ in GAINS]
        rows.append([*kind(Cell.parse(name)), *map(_gain_text, found)])
    return markdown_rows([*LEADS, *(said for *_, said in GAINS)], rows)


def _gain_text(found: HomeGain | None) -> str:
    if found is None:
        return NOT_RUN
    return f"**{found}**" if found.is_better else f"{found} (worse)" if found.is_worse else str(found)


def coverage_table(runs: Runs) -> str:
    """How many of the hidden cells lie within the 50 and the 90 % band."""
    rows = []
    for name in shown_cells():
        own = [[runs.values(name, metric(task, band)) for band in BANDS] for task in NAMES]
        rows.append([*kind(Cell.parse(name)), *(" / ".join(map(_percent, pair)) for pair in own)])
    free = [[free_values(runs, shown_cells(), task, band, BAR) for band in BANDS] for task in NAMES]
    rows.append([LABELS[BAR], "free", "free", *(" / ".join(map(_percent, pair)) for pair in free)])
    return markdown_rows([*LEADS, *(SHORT[task] for task in NAMES)], rows)


def _percent(values: BySeed) -> str:
    return f"{100 * over_seeds(list(values.values())).mean:.1f} %" if values else NOT_RUN


def share_table(runs: Runs) -> str:
    """The share of the non-private CRPS gain over the free distribution that a run keeps."""
    rows = []
    for name in shown_cells():
        cell = Cell.parse(name)
        if cell.arm != "non-dp":
            rows.append([*kind(cell), *(_share(kept(runs, name, task)) for task in NAMES)])
    return markdown_rows([*LEADS, *(SHORT[task] for task in NAMES)], rows)


def _share(values: BySeed | None) -> str:
    return NO_GAIN if values is None else over(values, 0, percent=True)


def other_bars(cells: Iterable[str], runs: Runs) -> list[str]:
    """Cells whose free distribution is not that of the first cell: their numbers are not to be compared with the others'."""
    there = [name for name in cells if runs.of(name)]

    def differs(name: str, task: str) -> bool:
        first = list(free_values(runs, there, task, "CRPS", BAR).values())
        own = runs.values(name, metric(task, "CRPS", BAR)).values()
        return any(abs(value - first[0]) > SAME_BAR * abs(first[0]) for value in own)

    return [name for name in there if any(differs(name, task) for task in NAMES)]


def markdown_rows(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join([*lines, *("| " + " | ".join(one) + " |" for one in rows)]) + "\n"
