"""In which order a private run first touches the rooms of the house (the folders of `src/tamedit`).

    python benchmarks/rooms.py                 # trains at scale smoke on a few simulated homes and prints the order
    python benchmarks/rooms.py --functions     # counts every function instead of every file

A file is touched when one of its functions is first called; what importing it does is not counted. A change of room is a first
touch in another room than the first touch before it. Data should flow through the rooms in one pass, so few changes are good.
"""

import argparse
import sys
import tempfile
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType

import tamedit
import tamedit.training.requested  # before anything is counted
from tamedit.cli.main import app
from tamedit.data.simulate import simulate

ROOT = Path(tamedit.__file__).parent


def first_calls(arguments: list[str]) -> list[tuple[Path, str]]:
    """(file, function) of every function in a room in the order of its first call while the command runs."""
    seen: set[CodeType] = set()
    calls: list[tuple[Path, str]] = []

    def watch(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or code in seen:
            return
        seen.add(code)
        path = Path(code.co_filename)
        if path.is_relative_to(ROOT) and path.parent != ROOT and code.co_flags & CO_OPTIMIZED:  # no class body
            calls.append((path.relative_to(ROOT), code.co_qualname))

    sys.setprofile(watch)
    try:
        app(arguments, standalone_mode=False)
    finally:
        sys.setprofile(None)
    return calls


def stays(calls: list[tuple[Path, str]], by_function: bool) -> list[tuple[str, list[str]]]:
    """First touches joined to stays in a room."""
    found: list[tuple[str, list[str]]] = []
    seen: set[Path] = set()
    for path, function in calls:
        if path in seen and not by_function:
            continue
        seen.add(path)
        if not found or found[-1][0] != path.parts[0]:
            found.append((path.parts[0], []))
        found[-1][1].append(function if by_function else str(path.relative_to(path.parts[0]).with_suffix("")))
    return found


def found_stays(by_function: bool = False) -> list[tuple[str, list[str]]]:
    """The stays of a small private run."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "homes.csv"
        simulate(meters=4, hours=2016, seed=0).frame().to_csv(table, index=False)
        run = ["train", str(table), "--out", f"{folder}/run", "--scale", "smoke", "--steps", "3", "--epsilon", "8"]
        return stays(first_calls([*run, "--json"]), by_function)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--functions", action="store_true", help="count functions instead of files")
    found = found_stays(parser.parse_args().functions)
    for room, touched in found:
        print(f"{room:10s} {', '.join(touched)}")
    print(f"{len(found) - 1} changes of room")


if __name__ == "__main__":
    main()
