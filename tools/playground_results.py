"""Writes `src/tamedit/serve/stored.json`: what the ε slider of the playground shows of the measured runs in `paper/results`.

    python tools/playground_results.py

For each ε and unit of the runs that begin from the shipped model (arm `aware`), and for each task: CRPS over that of the free
distribution, in z-units on the same test windows. The mean over seeds, the lowest and the highest seed.
"""

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "paper" / "results" / "laptop" / "ideal"
OUT = ROOT / "src" / "tamedit" / "serve" / "stored.json"
HERE = "medium/tanh/free/public=homes"
TASKS = ("imputation", "forecast", "cold_start_24", "cold_start_48", "long_gap")
RUNS = {"week": "aware/epsilon=*/unit=week", "series": "aware/epsilon=*/unit=series"}
SOURCE = (
    "Measured on 254 real homes (ideal, scale laptop): runs that begin from the shipped model, tuned on its training part "
    "and scored on windows of its test part; made by python tools/playground_results.py from paper/results."
)


def row(epsilon: float | None, tuned: bool, files: list[Path]) -> dict[str, Any]:
    """One setting: its seeds together."""
    ratios: dict[str, list[float]] = defaultdict(list)
    for file in files:
        tasks = json.loads(file.read_text(encoding="utf-8"))["evaluation"]["tasks"]
        for task in TASKS:
            own, free = (tasks[task][method]["z"]["CRPS"] for method in ("model", "free_distribution"))
            ratios[task].append(own / free)
    digits = {task: sorted(round(one, 5) for one in values) for task, values in ratios.items()}
    return {
        "epsilon": epsilon,
        "tuned": tuned,
        "seeds": len(files),
        "ratio": {task: round(sum(ratios[task]) / len(files), 5) for task in TASKS},
        "low": {task: values[0] for task, values in digits.items()},
        "high": {task: values[-1] for task, values in digits.items()},
    }


def stored() -> dict[str, Any]:
    """Everything that the file says."""
    untuned = row(None, False, sorted(RESULTS.glob(f"untuned/{HERE}/seed=*.json")))
    without = row(None, True, sorted(RESULTS.glob(f"non-dp/{HERE}/seed=*.json")))
    units: dict[str, Any] = {}
    for unit, pattern in RUNS.items():
        rows = []
        for folder in RESULTS.glob(f"{pattern}/{HERE}"):
            found = re.search(r"epsilon=([\d.]+)/", str(folder))
            assert found is not None
            rows.append(row(float(found[1]), True, sorted(folder.glob("seed=*.json"))))
        units[unit] = [untuned, *sorted(rows, key=lambda one: one["epsilon"]), without]
    return {"source": SOURCE, "units": units}


def text() -> str:
    return json.dumps(stored(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    OUT.write_text(text(), encoding="utf-8")
    print(f"wrote {OUT.relative_to(ROOT)}")
