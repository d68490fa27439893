"""Seconds and peak memory to read a CSV of many rows: 500 meters at half hours, and one meter at seconds.

    python benchmarks/reading.py [--rows 10000000]

The file is written first, without TameDiT. Every reading is a process of its own, whose peak of memory Linux reports (VmHWM:
unlike `getrusage`, it does not begin with the memory of the process that started this one).
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

CASES = {"panel": (500, 30 * 60), "one meter": (1, 1)}  # meters, seconds between rows


def write(path: Path, rows: int, meters: int, seconds: int) -> None:
    """`meter,time,kwh` in blocks of meters, three decimals."""
    generator, each = np.random.default_rng(0), rows // meters
    stamps = np.datetime64("2015-01-01T00:00:00") + np.arange(each) * np.timedelta64(seconds, "s")
    texts = np.char.replace(np.datetime_as_string(stamps), "T", " ")
    with open(path, "w", encoding="utf-8") as file:
        file.write("meter,time,kwh\n")
        for meter in range(meters):
            values = generator.gamma(0.5, 0.6, each).round(3)
            pairs = zip(texts.tolist(), values.tolist(), strict=True)
            file.writelines(f"home_{meter:04d},{text},{value}\n" for text, value in pairs)


def measure(path: Path) -> dict[str, float]:
    """Read the file once in this process."""
    from tamedit.data.reader import read

    started = time.perf_counter()
    series = read(path)
    seconds = time.perf_counter() - started
    return {
        "rows": len(series),
        "meters": len(series.meters),
        "seconds": round(seconds, 1),
        "peak_gb": round(peak_kilobytes() / 1e6, 2),
    }


def peak_kilobytes() -> int:
    """The most memory that this process has held so far."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    assert found is not None, "this benchmark needs Linux"
    return int(found[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--read", type=Path, help="measure one file in this process")
    asked = parser.parse_args()
    if asked.read is not None:
        print(json.dumps(measure(asked.read)))
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, (meters, seconds) in CASES.items():
            path = Path(folder) / "readings.csv"
            write(path, asked.rows, meters, seconds)
            command = [sys.executable, __file__, "--read", str(path)]
            found = subprocess.run(command, capture_output=True, text=True, check=True)
            print(f"{name}: {path.stat().st_size / 1e6:.0f} MB, {found.stdout.strip()}", flush=True)


if __name__ == "__main__":
    main()
