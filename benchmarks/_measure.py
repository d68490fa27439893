"""Side by side: arms take turns in one process, and every claim is the median of ratios within a turn, with quartiles.

Drift (another program, a hotter processor) hits all arms of a turn alike and cancels in their ratio. Where the cores
are shared, run one thread and `clock="cpu"`: waiting for other programs is not counted.

Peak memory is the growth of the resident set. Each arm runs alone in a fresh process, which reads VmHWM (the high-water
mark that the kernel keeps) before the model is built and after the last step.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles

CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}


def take_turns(arms: dict[str, Callable[[], None]], turns: int, warm_up: int, clock: str) -> dict[str, list[float]]:
    """Seconds of every arm in every turn; the order rotates, so that no arm always follows the same one."""
    now, names = CLOCKS[clock], list(arms)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(-warm_up, turns):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            start = now()
            arms[name]()
            if turn >= 0:
                seconds[name].append(now() - start)
    return seconds


def ratio(seconds: dict[str, list[float]], arm: str, to: str) -> dict[str, float]:
    """The median over turns of arm / to, its quartiles, and the ratio of the least disturbed turns (`best`)."""
    each = [one / other for one, other in zip(seconds[arm], seconds[to], strict=True)]
    low, _, high = quantiles(each, n=4) if len(each) > 1 else (each[0], each[0], each[0])
    return {"median": median(each), "low": low, "high": high, "best": min(seconds[arm]) / min(seconds[to])}


def high_water_mark() -> int:
    """Bytes: the most that this process ever had resident."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/self/status has no VmHWM: peak memory is measured on Linux only")


def in_fresh_process(script: str, arguments: list[str]) -> dict[str, float]:
    """The JSON object that a fresh interpreter prints last."""
    done = subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer


def show(result: dict) -> None:
    """The answer of a benchmark as a table."""
    print(", ".join(f"{key} {result[key]}" for key in ("size", "batch", "allocator", "threads", "clock", "repeats")))
    print(f"{'arm':14} {'time':>6} {'quartiles':>12} {'best':>6} {'seconds':>8} {'memory':>7} {'MB':>6}")
    for name, arm in result["arms"].items():
        low, high = arm["time_quartiles"]
        memory = f"{arm['memory']:7.2f} {arm['megabytes']:6}" if arm["memory"] else ""
        print(
            f"{name:14} {arm['time']:6.2f} {low:7.2f}-{high:.2f} {arm['time_best']:6.2f} {arm['seconds']:8.3f} {memory}"
        )
    if "aware_over_vanilla" in result:
        print(f"aware / vanilla {result['aware_over_vanilla']:.3f}, best {result['aware_over_vanilla_best']:.3f}")
