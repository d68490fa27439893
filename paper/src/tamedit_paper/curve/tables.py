"""The tables of the ε curve: every run with its unit beside what is free, shares kept, targets, aware against vanilla."""

from collections.abc import Iterable, Sequence

from tamedit.evaluation.intervals import over_seeds
from tamedit.evaluation.labels import LABELS
from tamedit.privacy.units import Unit
from tamedit_paper.claims.verdicts import Check
from tamedit_paper.curve.cells import FORMS, FREE, HARDER, TASKS, arm_of, kept, without_privacy
from tamedit_paper.curve.targets import KINDS, METRICS, NO_GAIN, WORDS, Asked, Contrast, kind_text
from tamedit_paper.grid.cells import Cell, Public
from tamedit_paper.grid.measures import BySeed, Runs, metric
from tamedit_paper.tables import numbers
from tamedit_paper.tables.layout import NONE, Column, Row, Table, baselines, row, utility
from tamedit_paper.tables.render import NOT_RUN, ONE_SEED

OWNED: dict[Unit, str] = {
    "window": "per window",
    "record": "per reading",
    "day": "per home-day",
    "week": "per home-week",
    "series": "per whole home",
}
BESIDE: tuple[Unit, ...] = ("window", "record", "series")
BEGINNINGS: dict[Public, str] = {
    "": "random weights",
    "simulated": "public model",
    "household": "public household",
}
LEADS = ("arm", "form", "begins from", "ε, unit", "ε of the same run per window / per reading / per whole home")
SAME_BAR = 0.01  # relative: free baselines of two runs that differ by more did not see the same windows


def run_table(cells: Sequence[str], runs: Runs, caption: str) -> Table:
    """One row per cell, and the free baselines of the same windows below."""
    columns = (
        *(column for task in TASKS for column in utility(task, *METRICS.values(), group=task, short=True)),
        *(
            Column(f"{task} coverage90", "90 % band covers", metric(task, "coverage90"), task, None, "neither", True)
            for task in TASKS
        ),
    )
    rows = (_row(name, runs, columns) for name in cells)
    return Table("utility", caption, LEADS, columns, (*rows, *baselines(len(LEADS))))


def _row(name: str, runs: Runs, columns: tuple[Column, ...]) -> Row:
    """Aware and vanilla of the same kind compete. The public model is one model for all seeds, and competes with nobody."""
    cell = Cell.parse(name)
    beside = _beside(cell, runs.epsilon(name))
    contest = "/".join([*kind(cell, runs), cell.source]) if cell.arm != "untuned" else ""
    return row(name, (arm_of(name), *kind(cell, runs), beside), name, columns, contest=contest)


def kind(cell: Cell, runs: Runs) -> tuple[str, str, str]:
    """Form, beginning and budget of a cell."""
    return FORMS[cell.anchor], BEGINNINGS[cell.public], budget(cell, runs)


def budget(cell: Cell, runs: Runs) -> str:
    """ε and whom it protects."""
    if cell.arm == "untuned":
        return "0, no private data used"
    if cell.epsilon is not None:
        return f"{cell.epsilon:g} {OWNED[cell.unit]}"
    if cell.sigma is None:
        return "∞, no unit protected"
    known = runs.epsilon(cell.name)
    if cell.unit not in known:
        return f"{OWNED[cell.unit]}, σ = {cell.sigma:g}"
    return f"{numbers.epsilon(known[cell.unit])} {OWNED[cell.unit]}, σ = {cell.sigma:g}"


def _beside(cell: Cell, known: dict[str, float | None]) -> str:
    if not cell.is_private or not known:
        return NONE
    return " / ".join(numbers.epsilon(known[unit]) if unit in known else NONE for unit in BESIDE)


def other_bars(cells: Iterable[str], runs: Runs) -> list[str]:
    """Cells whose free baseline is not that of the first cell: their numbers are not to be compared with the others'."""
    there = [name for name in cells if runs.of(name)]
    found = []
    for name in there:
        bars = [
            list(runs.values(one, metric(task, "CRPS", FREE)).values()) for task in TASKS for one in (there[0], name)
        ]
        pairs = [(first[0], value) for first, own in (bars[:2], bars[2:]) if first for value in own]
        if any(abs(value - first) > SAME_BAR * abs(first) for first, value in pairs):
            found.append(name)
    return found


def markdown_rows(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join([*lines, *("| " + " | ".join(one) + " |" for one in rows)]) + "\n"


def share_table(cells: Iterable[str], runs: Runs) -> str:
    """The share of the non-private CRPS gain that a run keeps; of the public model, what it has without private data."""
    rows = []
    for name in cells:
        cell = Cell.parse(name)
        if cell.arm == "non-dp":
            continue
        shares = [_share_text(kept(runs, name, task, bar)) for bar in (FREE, HARDER) for task in TASKS]
        seeds = len(runs.of(name).keys() & runs.of(without_privacy(name)).keys())
        rows.append([arm_of(name), *kind(cell, runs), *shares, str(seeds)])
    heads = [
        *LEADS[:-1],
        *(f"{task}: kept over<br>{LABELS[bar]} ↑" for bar in (FREE, HARDER) for task in TASKS),
        "seeds",
    ]
    return markdown_rows(heads, rows)


def _share_text(values: BySeed | None) -> str:
    if not values:
        return NO_GAIN if values is None else NOT_RUN
    found = over_seeds(list(values.values()))
    mean = f"{100 * found.mean:.0f}"
    return f"{mean} % {ONE_SEED}" if found.half is None else f"{mean} ± {100 * found.half:.0f} %"


def target_table(asked: Sequence[Asked]) -> str:
    """One row per target, one column per kind of run; the verdict and the outcomes of its comparisons."""
    rows = []
    for one in asked:
        answers = [one.answers[kind] for kind in KINDS]
        shown = [f"**{answer.verdict}**" + _counted(answer.verdict, answer.count) for answer in answers]
        rows.append([f"({one.letter}) {one.said}", *shown])
    return markdown_rows(["target", *(kind_text(*kind) for kind in KINDS)], rows)


def _counted(verdict: str, count: str) -> str:
    return f"<br>{count}" if verdict in ("missed", "open") or "seeds" in verdict else ""


def contrast_table(found: Sequence[Contrast], runs: Runs) -> str:
    """vanilla − aware with its interval, in words."""
    rows = []
    for one in found:
        cell = Cell.parse(one.cell)
        shown = [_difference(check) for check in one.checks]
        rows.append([cell.source, *kind(cell, runs), f"**{one.verdict}**", *shown])
    heads = [f"{task}:<br>{shown}" for task in TASKS for shown in METRICS]
    return markdown_rows(["data", *LEADS[1:-1], "aware is", *heads], rows)


def _difference(check: Check) -> str:
    if not check.values:
        return NOT_RUN
    found = over_seeds(list(check.values.values()))
    around = f" {ONE_SEED}" if found.half is None else f" ± {found.half:.4f}"
    word = "" if check.outcome == "few seeds" else f"<br>{WORDS[check.outcome]}"
    return f"{found.mean:+.4f}{around}{word}"


def tally(found: Sequence[Contrast]) -> str:
    """How aware did against vanilla on every data set, in one sentence each."""
    sentences = []
    for source in dict.fromkeys(one.source for one in found):
        words = [one.verdict.partition(" (")[0] for one in found if one.source == source]
        counts = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(sorted(words)))
        sentences.append(f"- `{source}`, {len(words)} pairs: {counts}.")
    return "\n".join(sentences) + "\n"
