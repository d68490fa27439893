"""Trains and scores the laptop-size models and writes paper/docs/results.md: `python paper/benchmarks/laptop_results.py`.

For every source and seed: `tamedit train SOURCE --scale laptop --seed S --threads 1 --out runs/…` (one thread: the same
numbers on any number of cores), then `tamedit evaluate … --json`. A result of today's form under paper/results/laptop/ is not
computed again, so the command can be stopped and continued. `--table-only` computes nothing: until they are computed, it shows
results of the earlier form and says so.
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
import time
from pathlib import Path

from tamedit.evaluation.baselines import BAR
from tamedit.files import write_text

PAPER = Path(__file__).parent.parent
METHODS = {
    "model": "**TameDiT**, not private",
    BAR: "free distribution, no training",
    "free_probabilistic": "free fill + Gaussian",
    "seasonal_draws": "draws from the same hour",
    "free_fill": "free fill",
    "linear_interpolation": "linear interpolation",
    "seasonal_mean": "seasonal mean",
    "seasonal_naive": "seasonal naive",
}
EARLIER = {  # RMSE and CRPS of three seeds of the earlier form, which had a line with a Gaussian around it as its anchor
    "etth1": {"imputation": (0.280, 0.140), "forecast": (0.494, 0.251)},
    "household": {"imputation": (0.537, 0.265), "forecast": (0.650, 0.327)},
}
OLD_FORM = (
    " These runs are of an earlier form of the model, before the free distribution was its\nanchor; "
    "the command without `--table-only` computes them anew."
)
OLD_WINDOWS = {
    "household": " They are also from when windows started at one hour of the day:\nsince they start at every hour, CRPS of one "
    "seed is 8 to 11 % lower."
}
T95 = {2: 12.71, 3: 4.303, 4: 3.182, 5: 2.776}  # Student's t, 97.5 %, by number of seeds


def compute(source: str, seed: int) -> dict:
    """The evaluation of one run, from the disk if it is there."""
    place = PAPER / "results" / "laptop" / f"{source}-seed{seed}.json"
    if not arguments.table_only and not (place.exists() and of_today(json.loads(place.read_text(encoding="utf-8")))):
        run = PAPER.parent / "runs" / "laptop" / f"{source}-seed{seed}"
        tamedit = [sys.executable, "-m", "tamedit"]
        train = [
            *tamedit,
            "train",
            source,
            "--scale",
            "laptop",
            "--seed",
            str(seed),
            "--out",
            str(run),
            "--threads",
            "1",
        ]
        begun = time.monotonic()
        subprocess.run([*train, *(["--resume"] if (run / "run.json").exists() else [])], check=True)
        seconds = time.monotonic() - begun
        scored = subprocess.run([*tamedit, "evaluate", str(run), "--json"], check=True, capture_output=True, text=True)
        result = json.loads(scored.stdout) | {"run": run.name, "source": source, "seed": seed, "train_seconds": seconds}
        write_text(place, json.dumps(result, indent=2) + "\n")
    return json.loads(place.read_text(encoding="utf-8"))


def of_today(result: dict) -> bool:
    """Whether a result has the free distribution beside it."""
    return all(BAR in methods for methods in result["tasks"].values())


def shown(values: list[float], digits: int = 3) -> str:
    """Mean ± half a 95 % interval over seeds."""
    mean = statistics.mean(values)
    if len(values) < 2 or max(values) == min(values):
        return f"{mean:.{digits}f}"
    half = T95[len(values)] * statistics.stdev(values) / math.sqrt(len(values))
    return f"{mean:.{digits}f} ± {half:.{digits}f}"


def table(results: list[dict], task: str) -> str:
    """One task of one source: every method, mean over seeds."""
    lines = ["| method | RMSE | MAE | CRPS | in 50 % band | in 90 % band |", "|---|---|---|---|---|---|"]
    for method, label in METHODS.items():
        if method not in results[0]["tasks"][task]:
            continue
        scores = [result["tasks"][task][method]["z"] for result in results]
        cells = [shown([score[name] for score in scores]) for name in ("rmse", "mae", "crps")]
        bands = [
            "–" if scores[0][name] is None else f"{statistics.mean(score[name] for score in scores):.0%}"
            for name in ("coverage50", "coverage90")
        ]
        lines.append(f"| {label} | " + " | ".join([*cells, *bands]) + " |")
    return "\n".join(lines)


def verdict(results: list[dict]) -> str:
    """The ratios that decide, worst seed first."""
    lines = []
    for task in ("imputation", "forecast"):
        scores = [result["tasks"][task] for result in results]
        points = ("linear_interpolation", "seasonal_naive", "seasonal_mean", "free_fill", "seasonal_draws", BAR)
        free = [one for one in points if one in scores[0]]
        best = [min(score[name]["z"]["rmse"] for name in free) for score in scores]
        line = [score["linear_interpolation"]["z"]["rmse"] for score in scores]
        own = [score["model"]["z"]["rmse"] for score in scores]
        distributions = [one for one in (BAR, "free_probabilistic", "seasonal_draws") if one in scores[0]]
        bars = [min(score[name]["z"]["crps"] for name in distributions) for score in scores]
        crps = [score["model"]["z"]["crps"] / bar for score, bar in zip(scores, bars, strict=True)]
        pairs = list(zip(own, best, line, strict=True))
        lines.append(
            f"- {task}: RMSE {max(a / c for a, _, c in pairs):.3f}× linear interpolation's and "
            f"{max(a / b for a, b, _ in pairs):.3f}× the best free baseline's; CRPS {max(crps):.3f}× the best free "
            f"baseline's (the worst of {len(own)} seeds)."
        )
    return "\n".join(lines)


def compared(source: str, results: list[dict]) -> str:
    """Against the free distribution, on the same windows, and against the earlier form."""
    if not all(map(of_today, results)):
        return ""
    lines = []
    for task, earlier in EARLIER[source].items():
        for metric, place, before in zip(("point_RMSE", "CRPS"), ("rmse", "crps"), earlier, strict=True):
            gains = [result["gains"][task][BAR][metric] for result in results]
            mean = statistics.mean(one["difference"] for one in gains)
            ends = min(one["low"] for one in gains), max(one["high"] for one in gains)
            own = statistics.mean(result["tasks"][task]["model"]["z"][place] for result in results)
            word = "better" if own < before else "as good" if own == before else "worse"
            lines.append(
                f"- {task}, {place.upper()}: gain over the free distribution {mean:+.4f} [{ends[0]:+.4f}, {ends[1]:+.4f}]; "
                f"{own:.3f}, the earlier form {before:.3f}: {word}."
            )
    return "\n" + "\n".join(lines) + "\n"


def page(by_source: dict[str, list[dict]]) -> str:
    """paper/docs/results.md."""
    parts = [
        "# Results without privacy, at laptop size\n\n"
        "`python paper/benchmarks/laptop_results.py` writes this page from `paper/results/laptop/`.\n\n"
        "- All numbers are for the test split, in z-units: errors divided by each channel's standard deviation over the\n"
        "  training split. They are computed per channel and then averaged.\n"
        "- Imputation: a random 10–50 % of the steps are hidden. Forecast: the last day of a window is hidden.\n"
        "- The model draws 20 samples per window. RMSE is the error of their mean, MAE the error of their median.\n"
        "- ± is half a 95 % interval over seeds.\n"
        "- The baselines need no training. They see the same windows and the same masks, and use only the window's own\n"
        "  observed cells. *Free fill + Gaussian* puts a Gaussian around the free fill, with the window's own standard\n"
        "  deviation. *Draws from the same hour* draws from the window's own observed cells of the same hour and of the two\n"
        "  neighbouring hours.\n"
        "- The [free distribution](../../docs/metrics.md#the-free-distribution) is the bar, and where training begins.\n"
        "  A gain is its score less the model's, on the same windows: the mean over seeds, and the lowest and highest\n"
        "  end of the seeds' 95 % intervals over resampled windows.\n"
    ]
    for source, results in by_source.items():
        windows, seeds = results[0]["windows"], len(results)
        remark = "" if all(map(of_today, results)) else OLD_FORM + OLD_WINDOWS.get(source, "")
        parts.append(
            f"## {source}\n\n{seeds} seeds, {windows} test windows.{remark}\n\n{verdict(results)}\n{compared(source, results)}"
        )
        parts += [f"### {task}\n\n{table(results, task)}\n" for task in ("imputation", "forecast")]
    return "\n".join(parts)


parser = argparse.ArgumentParser()
parser.add_argument("--sources", nargs="+", default=["etth1", "household"])
parser.add_argument("--seeds", type=int, default=3)
parser.add_argument("--table-only", action="store_true")
arguments = parser.parse_args()
found: dict[str, list[dict]] = {}
for name in arguments.sources:
    for number in range(arguments.seeds):
        if not arguments.table_only or (PAPER / "results" / "laptop" / f"{name}-seed{number}.json").exists():
            found.setdefault(name, []).append(compute(name, number))
write_text(PAPER / "docs" / "results.md", page(found))
print(f"wrote {PAPER / 'docs' / 'results.md'}")
