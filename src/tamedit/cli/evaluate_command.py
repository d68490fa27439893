"""`tamedit evaluate`: a run's model on its test split, next to training-free baselines."""

import json
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from tamedit.cli import options
from tamedit.cli.progress import RunProgress
from tamedit.errors import UserError
from tamedit.evaluation.labels import LABELS
from tamedit.formatting import best, print_table, score

GUESSES = {
    "linear_interpolation": "line",
    "seasonal_naive": "naive",
    "seasonal_mean": "mean",
    "free_fill": "fill",
    "seasonal_draws": "hour",
    "free_distribution": "free",
}
BAR = "free_distribution"
PERCENT = {"point_MAPE", "MAPE_left_out", "WAPE", "coverage50", "coverage90"}


COLUMNS = {
    "CRPS": "CRPS",
    "point_RMSE": "RMSE",
    "path_total_CRPS": "total",
    "path_peak_CRPS": "peak",
    "coverage50": "in 50 %",
    "coverage90": "in 90 %",
}
NOT_DRAWN = "this guess draws no intervals or paths, or there was nothing to score"
COMPARED = {"CRPS": "CRPS", "path_total_CRPS": "total", "path_peak_CRPS": "peak"}


def show(evaluation: Any) -> None:
    """A short block for each task: the model, the free distribution and the best other free guess, and who is better."""
    for task in evaluation.tasks:
        scores = {"model": evaluation.of(task, "model").z, BAR: evaluation.of(task, BAR).z}
        others = {
            method: one for method, one in evaluation.free(task).items() if method != BAR and one.crps is not None
        }
        if others:
            chosen = min(others, key=lambda method: others[method].crps)
            scores[chosen] = others[chosen]
        shown = {name: head for name, head in COLUMNS.items() if any(one[name] is not None for one in scores.values())}
        cells = [
            [LABELS[method], *(_cell(name, one[name], [other[name] for other in scores.values()]) for name in shown)]
            for method, one in scores.items()
        ]
        title = f"{_what(evaluation, task)}, {evaluation.windows} test windows, z-units"
        print_table(title, ("method", *shown.values()), cells, nothing=NOT_DRAWN)
        for sentence in verdicts(evaluation, task):
            typer.echo(sentence)
        typer.echo()
    for task, reason in evaluation.left_out.items():
        typer.echo(f"{task} is left out: {reason}.")
    typer.echo(_meaning(evaluation))


def verdicts(evaluation: Any, task: str) -> list[str]:
    """Whether the model beats the free distribution: cell by cell, and where there are paths, in the total and the peak."""
    said = []
    for name, short in COMPARED.items():
        found, bar = evaluation.gain_over_bar(task, name), evaluation.of(task, BAR).z[name]
        if found is None:
            continue
        share = f" by {abs(found.difference) / bar:.1%}" if bar else ""
        than = f"the {LABELS[BAR]}"
        words = {
            "better": f"the model beats {than}{share}, gain {found}",
            "worse": f"the model is worse than {than}{share}, gain {found}",
            "undecided": f"no sure difference from {than}, gain {found}",
            "unknown": f"too few windows to say whether the model beats {than}, gain {found}",
        }
        said.append(f"{short}: {words[found.outcome]}.")
    hardest = evaluation.smallest_gain(task, "CRPS")
    if hardest is not None and hardest[0] != BAR:
        said.append(f"A free guess that is harder to beat here: {LABELS[hardest[0]]}, gain in CRPS {hardest[1]}.")
    return said


def _meaning(evaluation: Any) -> str:
    from tamedit.evaluation.intervals import FEWEST

    drawn = "meters" if evaluation.by_meter else "windows: for these meters, not for others"
    sure = f"with its 95 % interval (paired bootstrap of the {drawn})"
    if not evaluation.resamples:
        sure = f"without an interval, which takes resamples of {FEWEST} or more windows that do not overlap"
    return (
        "Small numbers are better. total, peak: CRPS of the mean and of the maximum of the hidden stretch.\n"
        f"gain: the free guess's number minus the model's, {sure}."
    )


def show_all(evaluation: Any) -> None:
    """Every metric, one line each: the model's with its interval, the free distribution's, the best free guess's."""
    from tamedit.evaluation.metrics import METRICS

    heads = ("metric", "model", "95 % interval", "free dis-\ntribution", "best free\nguess")
    for task in evaluation.tasks:
        rows = {row.method: row for row in evaluation.rows if row.task == task}
        for unit, name in (("z", "z-units"), ("original", "the data's units")):
            scores = {method: getattr(row, unit) for method, row in rows.items()}
            cells = []
            for metric in METRICS.values():
                shown = partial(score, as_percent=metric.name in PERCENT)
                own, ends = scores["model"][metric.name], scores["model"].intervals[metric.name]
                free = {method: one[metric.name] for method, one in scores.items() if method in GUESSES}
                known = {method: value for method, value in free.items() if value is not None}
                chosen = None
                if known and metric.best != "neither":
                    chosen = (min if metric.best == "least" else max)(known, key=lambda method: known[method])
                interval = None if ends is None else " … ".join(shown(end) for end in ends)
                guess = None if chosen is None else f"{shown(known[chosen])} {GUESSES[chosen]}"
                bar = scores[BAR][metric.name]
                if own is not None or bar is not None or known:
                    cells.append([metric.name, shown(own), interval, shown(bar), guess])
            print_table(
                f"{_what(evaluation, task)}, {evaluation.windows} test windows, {name}", heads, cells, nothing=NOT_DRAWN
            )


def _what(evaluation: Any, task: str) -> str:
    return f"{task}: {evaluation.words[task]}"


def _cell(name: str, value: float | None, column: list[float | None]) -> Any:
    if name in PERCENT:
        return None if value is None else f"{value:.0%}"
    least = min((one for one in column if one is not None), default=None)
    return best(score(value)) if value is not None and value == least else score(value)


def evaluate(
    runs: Annotated[
        list[Path],
        typer.Argument(help="Folder made by `tamedit train`. Several runs that differ only in the seed are combined."),
    ],
    data: options.MovedData = None,
    tasks: Annotated[
        str | None,
        typer.Option(
            "--tasks",
            help="Tasks, comma separated: imputation, forecast, cold_start_24, cold_start_48, long_gap (all if not given).",
        ),
    ] = None,
    samples: Annotated[int, typer.Option("--samples", help="Samples per window.", min=4)] = 20,
    horizon: Annotated[
        str | None,
        typer.Option(
            "--horizon", help="What the task forecast hides: steps (24) or a duration (24h); one season if not given."
        ),
    ] = None,
    windows: Annotated[int, typer.Option("--windows", help="Test windows at most.", min=1)] = 128,
    generation: Annotated[
        bool,
        typer.Option(
            "--generation", help="Measure homes that the model generates, against the test homes, instead of tasks."
        ),
    ] = False,
    homes: Annotated[int, typer.Option("--homes", help="Homes to generate, with --generation.", min=2)] = 50,
    days: Annotated[int, typer.Option("--days", help="Days of every home, at most, with --generation.", min=14)] = 84,
    redraw: Annotated[
        bool | None,
        typer.Option("--redraw/--no-redraw", help="With --generation: the network draws every day of a home anew."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Show every metric, in both units.")] = False,
    protocol: Annotated[str | None, typer.Option("--protocol", hidden=True)] = None,
    resamples: Annotated[int, typer.Option("--resamples", help="Bootstrap resamples of the windows.", min=0)] = 1000,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    as_json: options.AsJson = False,
) -> None:
    """Score a model on its test split at five tasks, next to training-free baselines.

    Gap filling, forecasts, cold starts and long gaps: CRPS, RMSE, the CRPS of totals and peaks, and the coverage of intervals.
    """
    from tamedit.evaluation.seeds import over_runs, seeds_of

    if protocol is not None:
        raise UserError(f"--protocol is now a separate command: tamedit peers {runs[0]} {protocol}.")
    if generation:
        from tamedit.cli.fidelity_command import measure_generation

        if len(runs) > 1:
            raise UserError("--generation measures one run; name one folder.")
        measure_generation(runs[0], data, device, homes=homes, days=days, redraw=redraw, seed=seed, as_json=as_json)
        return
    shared: dict[str, Any] = {
        **({} if tasks is None else {"tasks": [name.strip() for name in tasks.split(",")]}),
        "samples": samples,
        "horizon": horizon,
        "windows": windows,
        "seed": seed,
        "resamples": resamples,
    }
    if len(runs) == 1:
        result = score_run(runs[0], data, device, shared, quiet=as_json)
        if as_json:
            typer.echo(json.dumps({"run": str(runs[0]), **result.to_dict()}, allow_nan=False))
            return
        (show_all if everything else show)(result)
    else:
        from tamedit.cli.seeds_table import show_seeds

        seeds = seeds_of(runs)
        if not as_json:
            shared["resamples"] = 0  # the table's intervals are those of the seeds
        results = {str(run): score_run(run, data, device, shared, quiet=as_json).to_dict() for run in runs}
        combined = over_runs(results, seeds)
        if as_json:
            typer.echo(json.dumps(combined, allow_nan=False))
            return
        show_seeds(combined, everything)
    from tamedit.evaluation.evaluate import NOTE

    typer.echo(NOTE)


def score_run(run: Path, data: str | None, device: str, shared: dict[str, Any], *, quiet: bool) -> Any:
    """The scores of one run's model on its test split, or on that of other data."""
    from tamedit.data.loading import load_split
    from tamedit.evaluation.evaluate import evaluate as score_all
    from tamedit.runs.folder import load_run
    from tamedit.tasks.model import Model

    model = Model.load(run, device)
    config, facts = load_run(run)
    _, split = load_split(data or config.source, study=facts.study_for(data), **facts.reading)
    with RunProgress(quiet=quiet, counted="window") as progress:
        return score_all(model, split, **shared, progress=progress)
