"""`tamedit evaluate RUN RUN …`: the means over seeds, with Student's t intervals."""

from typing import Any

import typer

from tamedit.cli.evaluate_command import PERCENT, shown
from tamedit.evaluation.labels import LABELS

SHORT = {
    "point_RMSE": "RMSE",
    "point_MAE": "MAE",
    "CRPS": "CRPS",
    "coverage50": "in 50 %",
    "coverage90": "in 90 %",
}
UNITS = {"z": "z-units", "original": "the data's units"}


def show_seeds(combined: dict[str, Any], everything: bool) -> None:
    """A table a task: methods down and metrics across; with `everything`, all metrics down and methods across."""
    seeds = ", ".join(str(seed) for seed in combined["seeds"])
    for task, methods in combined["tasks"].items():
        hidden = {
            "imputation": ": random 10–50 % hidden",
            "forecast": f": last {combined.get('forecast_horizon')} steps hidden",
        }
        what = f"{task}{hidden.get(task, '')}, {combined['windows']} test windows"
        if "protocol" in combined:
            _print(f"protocol {combined['protocol']}, {what}", _rows(methods, {name: name for name in _first(methods)}))
        elif everything:
            for unit, name in UNITS.items():
                scores = {method: own[unit] for method, own in methods.items()}
                _print(f"{what}, {name}", _turned(scores))
        else:
            _print(f"{what}, {UNITS['z']}", _rows({method: own["z"] for method, own in methods.items()}, SHORT))
    typer.echo(f"mean ± half of the 95 % interval (Student's t) over {len(combined['seeds'])} seeds: {seeds}")


def _rows(methods: dict[str, Any], metrics: dict[str, str]) -> list[list[str]]:
    """Heads, then a line a method."""
    lines = [[LABELS[method], *(spread(name, own[name]) for name in metrics)] for method, own in methods.items()]
    return [["method", *metrics.values()], *lines]


def _turned(scores: dict[str, Any]) -> list[list[str]]:
    """Heads, then a line a metric, those without a number left out."""
    from tamedit.evaluation.metrics import METRICS

    kept = [name for name in METRICS if any(own[name] is not None for own in scores.values())]
    heads = ["metric", *(LABELS[method].replace(" ", "\n", 1) for method in scores)]
    return [heads, *([name, *(spread(name, own[name]) for own in scores.values())] for name in kept)]


def _first(methods: dict[str, Any]) -> list[str]:
    return list(next(iter(methods.values())))


def spread(name: str, value: dict[str, Any] | None) -> str:
    """mean ± half; the mean alone where all seeds agree."""
    if value is None:
        return "–"
    mean, half = value["mean"], value["half"]
    same = half <= 1e-9 * abs(mean)
    if same:
        return shown(name, mean)
    if name in PERCENT:
        return f"{100 * mean:.1f} ± {100 * half:.1f} %"
    return f"{shown(name, mean)} ± {half:{'.4f' if half >= 1e-4 else '.1e'}}"


def _print(title: str, lines: list[list[str]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title)
    for at, head in enumerate(lines[0]):
        table.add_column(head, justify="right" if at else "left", no_wrap=at == 0)
    for line in lines[1:]:
        table.add_row(*line)
    Console().print(table)
