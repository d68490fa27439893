"""How many calls of the network a sample needs, and what a user waits for.

    python benchmarks/sampling.py --calls                    scores by number of calls, beside 50: shipped model, homes and ETTh1
    python benchmarks/sampling.py --calls --students A B     the same, and students of it (`tamedit distill homes --out A`)
    python benchmarks/sampling.py --fill [--samples 100]     seconds to fill 10 % gaps of a meter-year (a simulated home); with
                                                             --students also of these, all taking turns
    python benchmarks/sampling.py --growth                   processor time by window length, channels, width, samples
    python benchmarks/sampling.py --starts                   bands by how samples start, and how many they are

The number of calls is judged on the same windows, masks and starting noise, so it changes the solver's error alone. Scores are in
z-units; `off` is the largest change of CRPS, RMSE and (where the hidden cells are one stretch) the CRPS of totals and peaks, in
percent, and of the coverage of the 50 and 90 % bands, in percentage points. `2 plain` is the model itself with the steps of a
student of 2 calls: where distillation begins.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from tamedit.data.loading import load_split
from tamedit.data.reader import read
from tamedit.data.series import Series
from tamedit.data.simulate import simulate
from tamedit.data.split import Split, split_by_time
from tamedit.diffusion.process import Process
from tamedit.diffusion.sample import SamplerConfig, sample
from tamedit.diffusion.starts import Starts
from tamedit.evaluation.scores import score
from tamedit.evaluation.task_table import Layout, chosen_tasks
from tamedit.evaluation.trial import Trial
from tamedit.model.dit import DiffusionTransformer
from tamedit.model.zoo import NetworkConfig
from tamedit.streams import example_keys
from tamedit.tasks.enough import quantiles
from tamedit.tasks.model import Model
from tamedit.training.homes import PLACE
from tamedit.windows.batch import Context

RELATIVE = ("CRPS", "point_RMSE", "path_total_CRPS", "path_peak_CRPS")
BANDS = ("coverage50", "coverage90")
MANY = 50
STARTS: tuple[tuple[Starts, int], ...] = (
    ("antithetic", 100),
    ("antithetic", 40),
    ("stratified", 40),
    ("stratified", 100),
    ("stratified", 400),
)


def one_channel(series: Series) -> Series:
    """Every channel as a meter of its own, under the name that the shipped model knows."""
    stamps = pd.DatetimeIndex(series.times)
    parts = [
        pd.DataFrame({"id": name, "time": stamps, "kwh": column})
        for name, column in zip(series.targets, series.values.T, strict=True)
    ]
    return read(pd.concat(parts), time="time", id="id", targets=["kwh"])


def place(name: str, seed: int) -> Split:
    """Test windows that the shipped model never saw."""
    if name == "homes":
        return split_by_time(simulate(meters=16, hours=24 * 120, seed=seed, start="2023-02-01", variety=0.5))
    whole = load_split(name)[1]
    return Split(one_channel(whole.train), one_channel(whole.validation), one_channel(whole.test))


def arms(model: Model, students: list[Path], numbers: list[int]) -> Iterator[tuple[str, Model, SamplerConfig | None]]:
    """The model with many calls and with these numbers of them; and each student after the model with the student's steps."""
    for number in (MANY, *numbers):
        yield str(number), model, SamplerConfig(steps=number)
    for folder in students:
        student = Model.load(folder, "cpu")
        assert student.spec.process.calls is not None, f"{folder} holds no student"
        spec = student.spec.model_copy(update={"non_negative": model.spec.non_negative})
        number = len(student.spec.process.calls)
        yield f"{number} plain", Model(model.network, spec), None
        yield f"{number} student", Model(student.network, spec), None


def calls(
    places: list[str], windows: int, samples: int, tasks: list[str], numbers: list[int], students: list[Path], seed: int
) -> None:
    for name in places:
        model = Model.load(str(PLACE), "cpu")
        model.spec = model.spec.model_copy(update={"non_negative": name == "homes"})
        split = place(name, seed)
        trial = Trial(model, split, windows)
        layout = Layout(model.spec.network.length, model.spec.examples.period, model.spec.examples.period)
        print(f"{name}: {len(trial.windows)} windows, {samples} samples")
        print("task            calls " + "".join(one[-10:].rjust(12) for one in (*RELATIVE, *BANDS)) + "   off")
        for task in chosen_tasks(tasks, layout)[0]:
            question = task.ask(example_keys(0, f"evaluation {task.name}", 0, trial.numbers), layout).expand(1)
            missing = question.missing.numpy()[:, None]
            many: dict[str, float] = {}
            for label, arm, sampler in arms(model, students, numbers):
                trial.model = arm
                _, drawn, _ = next(trial.guesses(question.observed, samples, 0, sampler))
                counted = np.where(missing, trial.truth[:, None], drawn)
                found = score(counted, trial.truth, question.scored.numpy(), trial.deviation, paths=task.paths)[0]
                known = {key: found[key] for key in (*RELATIVE, *BANDS)}
                many = many or {key: value for key, value in known.items() if value is not None}
                apart = [
                    abs(known[key] - value) / (value if key in RELATIVE else 1.0)  # type: ignore[operator]
                    for key, value in many.items()
                ]
                cells = "".join("           –" if value is None else f"{value:12.4f}" for value in known.values())
                print(f"{task.name:11}{label:>10} {cells} {max(apart):6.2%}", flush=True)


def year_with_gaps(share: float = 0.1, seed: int = 0) -> Series:
    """A simulated home's year of hours; gaps of 1 to 24 hours hide a share of it."""
    home, random = simulate(meters=1, hours=24 * 365, seed=77), np.random.default_rng(seed)
    values = home.values.copy()
    while np.isnan(values).mean() < share:
        first = int(random.integers(0, len(values) - 24))
        values[first : first + int(random.integers(1, 25))] = np.nan
    return replace(home, values=values)


def fill(samples: int, repeats: int, students: list[Path]) -> None:
    series, folders = year_with_gaps(), [PLACE, *students]
    models = [Model.load(str(folder), "cpu") for folder in folders]
    for model in models:
        model.impute(series, samples=2)  # warm
    print(f"{samples} samples of {int(np.isnan(series.values).sum())} missing hours")
    for _ in range(repeats):
        for folder, model in zip(folders, models, strict=True):
            wall, cpu = time.perf_counter(), time.process_time()
            model.impute(series, samples=samples)
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            print(f"{Path(str(folder)).name:20} {wall:.1f} s, processor {cpu:.1f} s", flush=True)


def growth(repeats: int) -> None:
    """Processor time of some samples of 2 windows with 10 % gaps, an untrained network; one thing changes at a time."""
    usual = {"length": 168, "channels": 1, "width": 64, "samples": 40}
    base = 0.0
    for changed in (
        {},
        *({"length": value} for value in (84, 336, 672)),
        *({"channels": value} for value in (4, 16)),
        *({"width": value} for value in (32, 128, 256)),
        *({"samples": value} for value in (10, 160)),
    ):
        at = usual | changed
        best = min(_sampling_seconds(**at) for _ in range(repeats))
        base = base or best
        print(
            f"{', '.join(f'{key} {value}' for key, value in at.items()):55} {best:7.2f} s  {best / base:6.2f}",
            flush=True,
        )


def _sampling_seconds(length: int, channels: int, width: int, samples: int, windows: int = 2) -> float:
    torch.manual_seed(0)
    config = NetworkConfig(
        target_channels=channels, covariate_channels=6, length=length, depth=2, width=width, heads=max(width // 16, 1)
    )
    network = DiffusionTransformer(config)
    seen = torch.ones(windows, length, channels)
    seen[:, : length // 10] = 0
    values = torch.randn(windows, length, channels) * seen
    context = Context(
        values, seen, torch.zeros_like(values), torch.randn(windows, length, 6), torch.ones(windows, channels)
    )
    begun = time.process_time()
    sample(network, context, Process(), samples)
    return time.process_time() - begun


def bands(places: list[str], windows: int, tasks: list[str], seed: int) -> None:
    """Coverage and mean width of the 90 and 50 % bands, as `impute` and `forecast` make them of so many samples."""
    for name in places:
        model = Model.load(str(PLACE), "cpu")
        model.spec = model.spec.model_copy(update={"non_negative": name == "homes"})
        trial = Trial(model, place(name, seed), windows)
        layout = Layout(model.spec.network.length, model.spec.examples.period, model.spec.examples.period)
        print(
            f"{name}: {len(trial.windows)} windows\n{'task':12}{'starts':12}{'samples':>8}   in 90 %, width   in 50 %, width"
        )
        for task in chosen_tasks(tasks, layout)[0]:
            question = task.ask(example_keys(0, f"evaluation {task.name}", 0, trial.numbers), layout).expand(1)
            seen, scored = torch.isfinite(trial.values) & question.observed, question.scored.numpy()
            visible = torch.where(seen, trial.values, 0.0)
            for starts, samples in STARTS:
                given = (visible, seen, trial.covariates, trial.numbers, samples, 0)
                drawn = model.draw(*given, SamplerConfig(starts=starts)).numpy().swapaxes(0, 1)
                ends = quantiles(drawn, (0.05, 0.25, 0.75, 0.95), starts == "stratified")
                cells = ""
                for low, high in ((ends[0], ends[3]), (ends[1], ends[2])):
                    inside = (trial.truth >= low) & (trial.truth <= high)
                    cells += f"{inside[scored].mean():10.1%} {(high - low)[scored].mean():8.3f}"
                print(f"{task.name:12}{starts:12}{samples:8} {cells}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("calls", "fill", "growth", "starts"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--places", nargs="+", choices=("homes", "etth1"), default=["homes", "etth1"])
    parser.add_argument("--windows", type=int, default=48)
    parser.add_argument("--samples", type=int)
    parser.add_argument("--numbers", type=int, nargs="*", default=[12, 8, 6, 5, 4, 3, 2])
    parser.add_argument("--tasks", nargs="+", default=["imputation", "forecast", "long_gap"])
    parser.add_argument("--students", type=Path, nargs="+", default=[])
    parser.add_argument("--seed", type=int, default=901, help="of the simulated homes")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.calls:
        asked = arguments.places, arguments.windows, arguments.samples or 40, arguments.tasks, arguments.numbers
        calls(*asked, arguments.students, arguments.seed)
    if arguments.fill:
        fill(arguments.samples or 100, arguments.repeats, arguments.students)
    if arguments.growth:
        growth(arguments.repeats)
    if arguments.starts:
        bands(arguments.places, arguments.windows, arguments.tasks, arguments.seed)
