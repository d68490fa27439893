"""`tamedit evaluate RUN RUN …`: the means over seeds, with Student's t intervals."""

from typing import Any

import typer

from tamedit.cli.evaluate_command import PERCENT
from tamedit.evaluation.labels import LABELS
from tamedit.formatting import print_table, score

SHORT = {
    "CRPS": "CRPS",
    "point_RMSE": "RMSE",
    "path_total_CRPS": "total",
    "path_peak_CRPS": "peak",
    "coverage90": "in 90 %",
}
UNITS = {"z": "z-units", "original": "the data's units"}


def show_seeds(combined: dict[str, Any], everything: bool) -> None:
    """One table per task: methods down and metrics across; with `everything`, all metrics down and methods across."""
    seeds = ", ".join(str(seed) for seed in combined["seeds"])
    for task, methods in combined["tasks"].items():
        hidden = combined.get("task_words", {}).get(task)
        what = f"{task}{f': {hidden}' if hidden else ''}, {combined['windows']} test windows"
        if everything:
            for unit, name in UNITS.items():
                scores = {method: own[unit] for method, own in methods.items()}
                print_table(f"{what}, {name}", *_turned(scores))
        else:
            print_table(f"{what}, {UNITS['z']}", *_rows({method: own["z"] for method, own in methods.items()}, SHORT))
    for task, reason in combined.get("left_out", {}).items():
        typer.echo(f"{task} is left out: {reason}.")
    typer.echo(f"mean ± half of the 95 % interval (Student's t) over {len(combined['seeds'])} seeds: {seeds}")


def _rows(methods: dict[str, Any], metrics: dict[str, str]) -> tuple[list[str], list[list[str]]]:
    """Heads, and a line for each method; a metric that no method has is left out."""
    kept = {name: head for name, head in metrics.items() if any(own.get(name) for own in methods.values())}
    lines = [[LABELS[method], *(spread(name, own[name]) for name in kept)] for method, own in methods.items()]
    return ["method", *kept.values()], lines


def _turned(scores: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Heads, and a line for each metric, those without a number left out."""
    from tamedit.evaluation.metrics import METRICS

    kept = [name for name in METRICS if any(own[name] is not None for own in scores.values())]
    heads = ["metric", *(LABELS[method].replace(" ", "\n", 1) for method in scores)]
    return heads, [[name, *(spread(name, own[name]) for own in scores.values())] for name in kept]


def spread(name: str, value: dict[str, Any] | None) -> str:
    """mean ± half; the mean alone where all seeds agree."""
    if value is None:
        return score(None)
    mean, half = value["mean"], value["half"]
    return score(mean, None if half <= 1e-9 * abs(mean) else half, as_percent=name in PERCENT)
