"""How good the model is: pictures of test windows, scores beside free guesses, and the honesty of its intervals."""

from dataclasses import dataclass
from functools import partial

from tamedit.evaluation.evaluate import Evaluation
from tamedit.evaluation.labels import LABELS
from tamedit.evaluation.reliability import Curve
from tamedit.evaluation.scores import Scores
from tamedit.figures.plots import bands
from tamedit.figures.report_figures import TASKS, embedded, reliability_figure
from tamedit.formatting import counted, percent, significant, whole_percent
from tamedit.report.findings import Findings
from tamedit.report.page import Html, data, figure, head, join, listed, paragraph, table, tag

ERRORS = {"rmse": ("RMSE", "point_RMSE"), "mae": ("MAE", "point_MAE"), "crps": ("CRPS", "CRPS")}
COVERAGES = {"coverage50": "50", "coverage90": "90"}
SHARP = (0.5, 0.8, 0.9)  # levels of the table


@dataclass(frozen=True)
class Verdict:
    """The model's CRPS against the best guess that costs nothing."""

    headline: str
    detail: str
    sentence: str


def verdict(evaluation: Evaluation, task: str) -> Verdict | None:
    """None where nothing can be scored."""
    own, found = evaluation.of(task, "model").z, evaluation.smallest_gain(task, "CRPS")
    if own.crps is None or found is None:
        return None
    best, ahead = found
    bar = evaluation.free(task)[best].crps or 0.0
    if bar == 0:
        return Verdict(
            "no better" if own.crps else "equal", f"than {LABELS[best]}, which is exact", "A free guess is exact here."
        )
    change = own.crps / bar - 1
    word = "better" if change < 0 else "worse"
    headline = f"{whole_percent(abs(change))} {word}" if abs(change) >= 0.005 else "the same"
    than = "as" if headline == "the same" else "than"
    detail = f"{than} the best free guess ({LABELS[best]}), by CRPS"
    if ahead.low is None or ahead.high is None:
        sure = "One window is too few to say how sure that is."
    else:
        drawn = "meters" if evaluation.by_meter else "windows"
        ends = f"from {significant(ahead.low)} to {significant(ahead.high)}"
        settled = "" if ahead.low > 0 or ahead.high < 0 else ", so these alone do not settle which is better"
        sure = f"Over resampled {drawn} the difference of the two lies {ends} (95 %, paired){settled}."
    sentence = (
        f"By CRPS the model ({significant(own.crps)} z-units) is {headline} {than} the best free guess, {LABELS[best]} "
        f"({significant(bar)} z-units). {sure}"
    )
    return Verdict(headline, detail, sentence)


def pictures_section(found: Findings) -> Html:
    """Gap fills and forecast fans, with the truth and the free fill."""
    hidden = {
        "imputation": "A random 10 to 50 % of the steps were hidden",
        "forecast": f"The last {counted(found.evaluation.horizon, 'step')} were hidden",
    }
    pieces: list[Html | None] = [
        paragraph(
            "Windows from the test part, which the model never learned from. They are spread evenly over it and were not "
            "chosen by how good they look; they are among the windows that the scores below count."
        )
    ]
    for task, said in hidden.items():
        panels = found.bands.get(task, [])
        pieces.append(tag("h3", TASKS[task].capitalize()))
        if not panels:
            pieces.append(paragraph("No reading was both hidden and known, so there is nothing to show."))
            continue
        pieces.append(
            figure(
                embedded(partial(bands, panels)),
                f"{TASKS[task].capitalize()} in {counted(len(panels), 'test window')}: observed readings, the model's "
                "median with 50 and 90 % bands, the hidden truth, and the free fill.",
                f"{said}. Orange dots: the hidden truth. Blue: the model's median, with the middle 50 and 90 % of "
                f"{found.evaluation.samples} samples. Grey dashes: the free fill. Vertical axis: the data's own units.",
            )
        )
    return join(pieces)


def scores_section(found: Findings) -> Html:
    """A table for each task and unit."""
    evaluation = found.evaluation
    together = f" ({evaluation.block} neighbours at a time, since they overlap)" if evaluation.block > 1 else ""
    together = " (all windows of a meter together)" if evaluation.by_meter else together
    pieces: list[Html | None] = [
        paragraph(
            f"{counted(evaluation.windows, 'test window')}, {evaluation.samples} samples each; every method sees the same "
            "windows with the same steps hidden. Small numbers are better. Below each number stands its 95 % interval, from "
            f"resampling the windows{together}."
        ),
        listed(
            [
                "RMSE: root of the mean squared error of the samples' mean. Large errors weigh more.",
                "MAE: mean absolute error of the samples' median.",
                "CRPS: like MAE, but for all samples together, so it rewards honest spread. Of a single guess it is the MAE.",
                "z-units: errors divided by the channel's standard deviation over the training part; an RMSE of 1 is about "
                "as bad as always guessing the mean.",
                "Free fill: straight lines in short gaps, the mean of the same place in the season (the same hour) in long "
                "ones and ahead. Seasonal naive: the last known value of the same place. None of the free guesses needs "
                "training or spends privacy.",
                "Marked as best: the smallest number of a column, and those that round to the same.",
            ]
        ),
    ]
    for task, name in TASKS.items():
        said = verdict(evaluation, task)
        title = f"{name.capitalize()}, " + (
            "10 to 50 % of the steps hidden"
            if task == "imputation"
            else f"last {counted(evaluation.horizon, 'step')} hidden"
        )
        pieces += [
            tag("h3", title),
            paragraph("Nothing could be scored." if said is None else said.sentence),
            _scores(evaluation, task, "z"),
            _scores(evaluation, task, "original"),
        ]
    return join(pieces)


def _scores(evaluation: Evaluation, task: str, unit: str) -> Html:
    rows = [row for row in evaluation.rows if row.task == task]
    scores: list[tuple[str, Scores]] = [(row.method, row.z if unit == "z" else row.original) for row in rows]
    columns = {name: [one[name] for _, one in scores] for name in ERRORS}
    least = {name: min((one for one in column if one is not None), default=None) for name, column in columns.items()}
    said = "z-units" if unit == "z" else "the data's units"
    heads: list[Html | str] = ["Method", *(head(short, said) for short, _ in ERRORS.values())]
    body: list[list[Html | str | None]] = []
    for method, own in scores:
        cells: list[Html | str | None] = [LABELS[method]]
        for name, (_, full) in ERRORS.items():
            cells.append(_score(own[name], own.intervals[full], significant(own[name]) == significant(least[name])))
        if unit == "z":
            cells += [_share(own[name], own.intervals[name]) for name in COVERAGES]
        body.append(cells)
    if unit == "z":
        heads += [head(f"Inside the {level} % interval", f"% of cells; ideal: {level}") for level in COVERAGES.values()]
    return table(f"{TASKS[task].capitalize()}, {said}; means over channels", heads, body, own=0)


def _score(value: float | None, ends: tuple[float, float] | None, best: bool) -> Html | None:
    if value is None:
        return None
    number = data(value, significant(value))
    mark = tag("span", "best", class_="best") if best else None
    said = tag("strong", number) if best else number
    return join([mark, said, _range(*(significant(end) for end in ends)) if ends else None])


def _share(value: float | None, ends: tuple[float, float] | None) -> Html | None:
    if value is None:
        return None
    return join([data(value, percent(value)), _range(*(percent(end) for end in ends)) if ends else None])


def _range(low: str, high: str) -> Html:
    return tag("span", f"{low} to {high}", class_="range")


def coverage_said(curves: dict[tuple[str, str], Curve]) -> tuple[str, str]:
    """The card: coverage of the widest level, both tasks."""
    both = [curves[task, "model"] for task in TASKS]
    level = both[0].levels[-1]
    shares = [curve.at(level)[0] for curve in both]
    said = " / ".join(f"{percent(share, 0)} %" for share in shares)
    return said, f"gap filling / forecast; {whole_percent(level)} intervals, so {whole_percent(level)} is ideal"


def calibration_section(found: Findings) -> Html:
    """Nominal against observed, as a picture, a table and words."""
    curves = found.curves
    panels = [(name, curves[task, "model"], curves[task, "free_probabilistic"]) for task, name in TASKS.items()]
    levels = [level for level in SHARP if level in panels[0][1].levels] or [panels[0][1].levels[-1]]
    rows: list[list[Html | str | None]] = []
    for level in levels:
        cells = [_share(*curve.at(level)) for _, model, free in panels for curve in (model, free)]
        rows.append([whole_percent(level), *cells])
    heads = [
        "Nominal level",
        *(f"{name}: {who} (% of cells)" for name in TASKS.values() for who in ("this model", "free fill + Gaussian")),
    ]
    return join(
        [
            paragraph(
                "A 90 % interval should hold the truth nine times out of ten. On the dotted diagonal intervals keep their word; "
                "below it they are too narrow, and the truth surprises more often than they say; above it they are too wide."
            ),
            figure(
                embedded(partial(reliability_figure, panels)),
                "Reliability: nominal level of central intervals against the share of hidden cells inside, with the ideal "
                "diagonal. " + " ".join(_spoken(name, model) for name, model, _ in panels),
                "Reliability of central intervals. Shaded: 95 % interval, from resampling the windows.",
            ),
            listed(judged(name, model) for name, model, _ in panels),
            table("Share of the truth inside, in per cent, with its 95 % interval", heads, rows),
            paragraph(
                "This is an average over all hidden cells, channels and windows. An average can be right while nights are too "
                "wide and peaks too narrow, so a good curve is necessary and not sufficient. It is measured on this test part; "
                "other data may differ. Levels that so few samples cannot show are left out.",
                class_="note",
            ),
        ]
    )


def _spoken(name: str, curve: Curve) -> str:
    level = curve.levels[-1]
    return f"{name.capitalize()}: {percent(curve.at(level)[0], 0)} % inside at {whole_percent(level)}."


def judged(name: str, curve: Curve) -> str:
    """What may be said of the widest interval, no more."""
    level = curve.levels[-1]
    share, ends = curve.at(level)
    if share is None:
        return f"{name.capitalize()}: nothing could be checked."
    said = f"{name.capitalize()}: the {whole_percent(level)} intervals hold {percent(share)} % of the truth"
    if ends is None:
        return f"{said}; one window is too few to say more."
    said += f" (95 % interval {percent(ends[0])} to {percent(ends[1])} %): "
    if ends[1] < level:
        return said + "too narrow, so do not take them at their word."
    if ends[0] > level:
        return said + "too wide, so they are cautious."
    return said + "in line with what they promise, as far as these windows can tell."
