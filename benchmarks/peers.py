"""Filling gaps side by side with what a user would pick instead: same windows, same masks, same cores.

    python benchmarks/peers.py ideal|etth1 [--steps 300] [--windows 24] [--samples 20] [--methods …]

    ours       size mini, trained here for so many steps
    shipped    the shipped model, not tuned, one channel at a time
    free       the free distribution: the kernel baseline, kernels around the window's own readings, without training
    csdi       PyPOTS' CSDI, 4 layers of 64 channels, 8 heads, 50 diffusion steps (its paper's)
    saits      PyPOTS' SAITS, 2 layers of width 128: points, whose CRPS is their MAE

`ideal`: 24 training homes learn, 8 other training homes are filled; its test homes are not touched. `etth1`: its usual split.
Gaps of 1 to 24 hours hide a tenth of each window. The peers train for the processor time that `ours` took (or `--seconds`),
one batch of 32 windows after the other, so the scores are those of equal cost. `year`: seconds to fill a year of hours with 100
samples, extrapolated from the windows and samples that were drawn. `MB`: growth of the resident set. CRPS and MAE in z-units.
Every method runs in a process of its own.

PyPOTS is not a dependency: without it (`pip install pypots`, best in an environment of its own) its methods are left out.
"""

import argparse
import importlib.util
import json
import time
from collections.abc import Callable

import numpy as np
import torch
from _measure import high_water_mark, in_fresh_process
from torch import Tensor

from tamedit.data.loading import load_split
from tamedit.data.series import Series
from tamedit.data.split import Split
from tamedit.evaluation.baselines import distribution_draws, own_units
from tamedit.evaluation.scores import score
from tamedit.evaluation.trial import Trial
from tamedit.tasks.fit import fit
from tamedit.tasks.model import Model
from tamedit.training.homes import PLACE

METHODS = ("ours", "shipped", "free", "csdi", "saits")
LENGTH, PERIOD, YEAR, HIDDEN = 168, 24, 8760, 0.1
BATCH = 32  # windows of a pass of the peers
FEWEST_SAMPLES = 4  # two for each half, by which the scores correct for their number
Drawn = Tensor  # (B, S, L, K), in the data's units


def split_of(name: str) -> Split:
    whole = load_split(name)[1]
    if name != "ideal":
        return whole
    homes = np.arange(len(whole.train.meters))[::6][:32]
    first, last = homes[::4], np.setdiff1d(homes, homes[::4])  # 8 homes to fill, 24 to learn from
    return Split(_homes(whole.train, last), _homes(whole.train, first), _homes(whole.train, first))


def _homes(series: Series, numbers: np.ndarray, hours: int = 24 * 84) -> Series:
    """Twelve weeks from the middle of some homes."""
    picked = np.zeros(len(series.meters), dtype=bool)
    picked[numbers] = True
    middle = np.where(picked, series.lengths // 2, 0)
    return series.between(middle, np.minimum(middle + np.where(picked, hours, 0), series.lengths))


class Question:
    """Test windows with gaps."""

    def __init__(self, model: Model, split: Split, windows: int) -> None:
        self.trial = Trial(model, split, windows)
        self.values, random = self.trial.values, np.random.default_rng(0)
        hidden = np.zeros(self.values.shape[:2], dtype=bool)
        for row in hidden:
            while row.mean() < HIDDEN:
                begin = int(random.integers(0, LENGTH))
                row[begin : begin + int(random.integers(1, 25))] = True
        self.hidden = torch.from_numpy(hidden)[..., None].expand_as(self.values)
        self.observed = torch.isfinite(self.values) & ~self.hidden
        self.visible = torch.where(self.observed, self.values, 0.0)

    def by_model(self, model: Model, samples: int) -> Drawn:
        channels = len(model.spec.targets)
        apart = channels == self.values.shape[2]
        if not apart and channels != 1:
            raise ValueError("a model of one channel, or of all")
        parts = range(1) if apart else range(self.values.shape[2])
        drawn = [
            model.draw(
                self.visible if apart else self.visible[..., part : part + 1],
                self.observed if apart else self.observed[..., part : part + 1],
                self.trial.covariates,
                self.trial.numbers + 10_000 * part,
                samples,
                0,
                None,
            )
            for part in parts
        ]
        return torch.cat(drawn, dim=-1)


def train_windows(split: Split) -> np.ndarray:
    """Complete windows of the training part, a day apart; standardised by `scale_of`."""
    first, last = split.train.offsets[:-1], split.train.offsets[1:]
    starts = np.concatenate([np.arange(low, high - LENGTH + 1, PERIOD) for low, high in zip(first, last, strict=True)])
    return np.asarray(split.train.values[starts[:, None] + np.arange(LENGTH)])


def batch_rows(order: np.ndarray, turn: int) -> np.ndarray:
    """The training windows of one pass: one batch, so that training ends at most one batch after its time is over."""
    return np.take(order, np.arange(BATCH) + BATCH * turn, mode="wrap")


def train_for(seconds: float, one_pass: Callable[[], None]) -> float:
    """Passes of one batch each until so much processor time is used; how much it was."""
    begun = time.process_time()
    while time.process_time() - begun < seconds:
        one_pass()
    return time.process_time() - begun


def ours(split: Split, steps: int) -> tuple[Model, float]:
    """Trained by `fit`, with the validation at its end."""
    begun = time.process_time()
    model = fit(split.train, size="mini", window=LENGTH, period=PERIOD, steps=steps)
    return model, time.process_time() - begun


def pypots(name: str, split: Split, question: Question, seconds: float, samples: int) -> tuple[Drawn, float, float]:
    """Draws, seconds of training, seconds of filling."""
    from pypots.imputation import CSDI, SAITS

    learned = train_windows(split)
    mean, spread = np.nanmean(learned, (0, 1)), np.nanstd(learned, (0, 1)) + 1e-8
    shared = {
        "n_steps": LENGTH,
        "n_features": learned.shape[2],
        "batch_size": BATCH,
        "epochs": 1,
        "device": "cpu",
        "verbose": False,
    }
    if name == "csdi":
        sizes = {"n_layers": 4, "n_heads": 8, "n_channels": 64, "d_time_embedding": 128}
        model = CSDI(**sizes, d_feature_embedding=16, d_diffusion_embedding=128, **shared)
    else:
        model = SAITS(n_layers=2, d_model=128, n_heads=4, d_k=32, d_v=32, d_ffn=256, **shared)
    scaled, order = (learned - mean) / spread, np.random.default_rng(0).permutation(len(learned))
    turn = iter(range(10**9))

    def one_pass() -> None:
        model.fit({"X": scaled[batch_rows(order, next(turn))]})

    trained = train_for(seconds, one_pass)
    given = np.where(question.observed.numpy(), (question.values.numpy() - mean) / spread, np.nan)
    begun = time.process_time()
    more = {"n_sampling_times": samples} if name == "csdi" else {}
    filled = np.asarray(model.predict({"X": given}, **more)["imputation"])
    filled = filled if filled.ndim == 4 else filled[:, None]
    return torch.from_numpy(filled * spread + mean).float(), trained, time.process_time() - begun


def measure(options: argparse.Namespace) -> dict[str, float | None]:
    """One method, in this process."""
    torch.set_num_threads(options.threads)
    split, name = split_of(options.data), options.method
    loose = {"non_negative": options.data == "ideal"}
    shipped = Model.load(str(PLACE), "cpu")
    reader = shipped.spec.model_copy(update=loose | {"targets": split.train.targets})
    shipped.spec = reader
    question = Question(shipped, split, options.windows)
    shipped.spec = reader.model_copy(update={"targets": ("kwh",)})
    before, trained = high_water_mark(), 0.0
    if name in ("csdi", "saits"):
        drawn, trained, spent = pypots(name, split, question, options.seconds or 60.0, options.samples)
    else:
        model = shipped
        if name == "ours":
            model, trained = ours(split, options.steps)
        begun = time.process_time()
        if name == "free":
            units = own_units(shipped.scaling).units(question.visible, question.observed)
            drawn = distribution_draws(question.visible, question.observed, units, PERIOD, options.samples, 0)
        else:
            drawn = question.by_model(model, options.samples)
        spent = time.process_time() - begun
    drawn = drawn.clamp_min(0) if options.data == "ideal" else drawn
    points = name == "saits"
    found = score(
        drawn.numpy(),
        question.trial.truth,
        question.hidden.numpy(),
        question.trial.deviation,
        probabilistic=not points,
        independent_halves=name in ("free", "shipped", "ours"),
    )[0]
    each = spent / len(drawn) / drawn.shape[1]
    return {
        "CRPS": found.crps,
        "MAE": found.mae,
        "in 90 %": found.coverage90,
        "training": trained,
        "year": each * YEAR / LENGTH * (1 if points else 100),
        "MB": (high_water_mark() - before) / 1e6,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", choices=("ideal", "etth1"))
    parser.add_argument("--steps", type=int, default=300, help="of our training")
    parser.add_argument("--seconds", type=float, help="processor time of the peers' training (as long as ours)")
    parser.add_argument("--windows", type=int, default=24)
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--method", choices=METHODS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.samples < FEWEST_SAMPLES:
        parser.error(f"--samples {options.samples} is too few to score; give at least {FEWEST_SAMPLES}.")
    if options.method:
        print(json.dumps(measure(options)))
        return
    there = importlib.util.find_spec("pypots") is not None
    print(f"{options.data}, {options.windows} windows, {options.samples} samples, {options.steps} steps")
    print(f"{'':8}{'CRPS':>8}{'MAE':>8}{'in 90 %':>9}{'training':>10}{'year':>9}{'MB':>7}")
    for name in options.methods:
        if name in ("csdi", "saits") and not there:
            print(f"{name}: PyPOTS is not installed")
            continue
        asked = {key: getattr(options, key) for key in ("steps", "seconds", "windows", "samples", "threads")}
        pairs = [part for key, value in asked.items() if value is not None for part in (f"--{key}", str(value))]
        row = in_fresh_process(__file__, [options.data, "--method", name, *pairs])
        if name == "ours" and options.seconds is None:
            options.seconds = row["training"]
        cells = [f"{row[key]:.3f}" if row[key] is not None else "–" for key in ("CRPS", "MAE", "in 90 %")]
        cells += [f"{row['training']:.0f} s", f"{row['year']:.0f} s", f"{row['MB']:.0f}"]
        print(
            f"{name:8}" + "".join(cell.rjust(size) for cell, size in zip(cells, (8, 8, 9, 10, 9, 7), strict=True)),
            flush=True,
        )


if __name__ == "__main__":
    main()
