"""Seconds and peak memory of a fleet: `python benchmarks/fleet.py --meters 100 1000 10000`.

For each size a Parquet file is made: so many meters (500 simulated ones, again and again) × a year of hours, long, a row group
for every 50 meters, 1 % of the readings missing at random. Then each command runs in a fresh process:

    plan      read, lay on the grid of the study, cut, count
    train     the same, the noisy count, level, scale and population released with noise, `--steps` private steps of 64 home-weeks
    impute    the missing cells of the first `--filled` meters, 20 samples
    generate  as many homes as there are meters, one week each

Peak memory is the largest resident set of the process (pages of files that it maps included), as the kernel counts it. Everything
lies in a temporary folder (TMPDIR says where), which is deleted.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tamedit.data.simulate import simulate

HOURS, PIECE, DISTINCT = 8760, 50, 500
STUDY = ["--study", "2023-01-01/2024-01-01"]
PRIVATE = ["--epsilon", "8", "--unit", "week", *STUDY]
TRAIN = ["--batch-size", "64", "--lower", "0", "--upper", "10", "--population", "--seed", "0"]


def make(path: Path, meters: int) -> None:
    """A file of so many meters, never more than DISTINCT of them in memory; beyond that they live the same lives again."""
    series = simulate(min(DISTINCT, meters), HOURS, seed=0, variety=0.5)
    times, load = pa.array(series.times.to_numpy()), series.values[:, 0]
    writer = None
    for first in range(0, meters, DISTINCT):
        count = min(DISTINCT, meters - first)
        codes = np.repeat(np.arange(count, dtype=np.int32), HOURS)
        names = [f"meter_{number:06}" for number in range(first, first + count)]
        hidden = np.random.default_rng(first).random(len(codes)) < 0.01
        table = pa.table(
            {
                "meter": pa.DictionaryArray.from_arrays(codes, names).cast(pa.string()),
                "time": times[: len(codes)],
                "kwh": pa.array(load[: len(codes)], mask=hidden),
            }
        )
        writer = writer or pq.ParquetWriter(path, table.schema, use_dictionary=["meter"])
        writer.write_table(table, row_group_size=PIECE * HOURS)
    assert writer is not None
    writer.close()


def measured(*command: str) -> dict[str, float]:
    """Wall seconds, CPU seconds and peak memory of one command in a fresh process."""
    begun = time.perf_counter()
    process = os.posix_spawn(sys.executable, [sys.executable, "-m", "tamedit", *command], os.environ)
    _, status, used = os.wait4(process, 0)
    if status:
        raise RuntimeError(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    seconds = time.perf_counter() - begun
    return {
        "seconds": round(seconds, 1),
        "cpu": round(used.ru_utime + used.ru_stime, 1),
        "GB": round(used.ru_maxrss / 2**20, 2),
    }


def stages(folder: Path, meters: int, filled: int, steps: int, wanted: list[str]) -> None:
    """Run the wanted stages on one fleet and print a line for each."""
    file, run = folder / "fleet.parquet", folder / "run"
    begun = time.perf_counter()
    make(file, meters)
    size = {"meters": meters, "million readings": round(meters * HOURS / 1e6, 2)}
    print(json.dumps({**size, "stage": "make", "seconds": round(time.perf_counter() - begun, 1)}), flush=True)
    commands = {
        "plan": ["plan", str(file), *PRIVATE, "--json"],
        "train": ["train", str(file), *PRIVATE, *TRAIN, "--steps", str(steps), "--out", str(run)],
    }
    if "impute" in wanted:
        make(folder / "gaps.parquet", filled)
        commands["impute"] = [
            "impute",
            str(run),
            str(folder / "gaps.parquet"),
            "--samples",
            "20",
            "--out",
            str(folder / "f.parquet"),
        ]
    commands["generate"] = [
        "generate",
        str(run),
        "--homes",
        str(meters),
        "--days",
        "7",
        "--out",
        str(folder / "homes.parquet"),
    ]
    for stage, command in commands.items():
        if stage in wanted:
            more = {"impute": {"filled meters": filled}, "train": {"steps": steps}}.get(stage, {})
            print(json.dumps({**size, **more, "stage": stage, **measured(*command)}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--meters", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--filled", type=int, default=10, help="Meters whose gaps are filled.")
    parser.add_argument("--steps", type=int, default=100, help="Private steps of the stage train.")
    parser.add_argument("--stages", default="plan,train,impute,generate")
    given = parser.parse_args()
    for meters in given.meters:
        with tempfile.TemporaryDirectory() as folder:
            stages(Path(folder), meters, given.filled, given.steps, given.stages.split(","))


if __name__ == "__main__":
    main()
