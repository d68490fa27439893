"""PyPOTS' way of working: windows in dictionaries, `fit` and `impute`. PyPOTS itself is not needed.

    imputer = TameImputer(scale="laptop")
    imputer.fit({"X": X_train}, {"X": X_val})                 (N, L, K), NaN means missing
    filled = imputer.impute({"X": X_test})                    (N, L, K), medians; observed values stay
    paths = imputer.predict({"X": X_test}, n_sampling_times=20)["imputation"]    (N, 20, L, K), as CSDI's

These windows have no dates and may overlap, so no unit of privacy can be found in them, and `fit` trains without privacy. For a
guarantee train on the series (`tamedit.fit`) and give that model: `TameImputer(model="release/")`. It may know the calendar: then
give the stamp of every window's first row as `start`, {"X": X, "start": stamps}.
"""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tamedit.adapters.panel import drawn, panel
from tamedit.data.loading import IN_MEMORY
from tamedit.data.reader import read
from tamedit.data.reading.grid import step_of
from tamedit.data.split import Split
from tamedit.diffusion.sample import SamplerConfig
from tamedit.errors import UserError
from tamedit.runs.recipe import make_config
from tamedit.tasks.model import Model, load
from tamedit.training.run import train

VALIDATION = 0.15  # of the windows, the last ones, where no validation set is given
FIRST = pd.Timestamp("2000-01-01")  # of windows without stamps


class TameImputer:
    """An imputer with PyPOTS' methods. `model`: a trained one, or None for `fit` to train it with the choices `training`."""

    def __init__(
        self,
        model: Model | str | Path | None = None,
        samples: int = 100,
        seed: int = 0,
        sampler: SamplerConfig | None = None,
        **training: Any,
    ) -> None:
        self.model = model if model is None or isinstance(model, Model) else load(model)
        self.samples, self.seed, self.sampler, self.training = samples, seed, sampler, training
        if "privacy" in training:
            raise UserError(
                "Windows in a dictionary have no unit of privacy; train on the series with `tamedit.fit`, and give that model."
            )

    def fit(
        self, train_set: dict[str, Any] | str, val_set: dict[str, Any] | str | None = None, file_type: str = "hdf5"
    ) -> None:
        """Train on whole windows, without privacy."""
        if self.model is not None:
            raise UserError("This imputer has a trained model already; leave `fit` out, or leave `model` out.")
        windows = _windows(train_set)
        if val_set is None:
            kept = max(1, round(len(windows) * (1 - VALIDATION)))
            windows, validation = windows[:kept], windows[min(kept, len(windows) - 1) :]
        else:
            validation = _windows(val_set)
        series, checked = read(windows), read(validation)
        chosen = {"scale": "laptop", "seed": self.seed, **self.training}
        config = make_config(series, IN_MEMORY, window=windows.shape[1], **chosen)
        with tempfile.TemporaryDirectory() as folder:
            train(Split(series, checked, checked), config, Path(folder) / "run")
            self.model = load(Path(folder) / "run")
            self.model.folder = None  # it is gone

    def predict(
        self, test_set: dict[str, Any] | str, file_type: str = "hdf5", n_sampling_times: int | None = None
    ) -> dict[str, np.ndarray]:
        """{"imputation": paths of every window (N, S, L, K)}, all equal where a value was observed."""
        if self.model is None:
            raise UserError("This imputer has no model yet; call `fit`, or give `model`.")
        windows, spec = _windows(test_set), self.model.spec
        count, length, _ = windows.shape
        step = step_of(spec.frequency_seconds)
        starts = test_set.get("start") if isinstance(test_set, dict) else None
        first = pd.DatetimeIndex([FIRST] * count if starts is None else starts)
        stamps = [
            step.stamps(step.ordinals(one) + step.size * np.arange(length), one)
            for one in (first[number : number + 1] for number in range(count))
        ]
        samples = self.samples if n_sampling_times is None else n_sampling_times
        table = self.model.impute(
            panel(spec, list(windows), stamps), samples=samples, all_samples=True, seed=self.seed, sampler=self.sampler
        )
        paths = drawn(table, self.model, samples).reshape(samples, count, length, -1)
        return {"imputation": paths.transpose(1, 0, 2, 3)}

    def impute(
        self, test_set: dict[str, Any] | str, file_type: str = "hdf5", n_sampling_times: int | None = None
    ) -> np.ndarray:
        """(N, L, K) windows whose gaps hold the median of their paths."""
        return np.median(self.predict(test_set, file_type, n_sampling_times)["imputation"], axis=1)


def _windows(given: dict[str, Any] | str) -> np.ndarray:
    """(N, L, K) of a dictionary."""
    if not isinstance(given, dict) or "X" not in given:
        raise UserError(
            'Give the windows as a dictionary, {"X": array of shape (windows, steps, channels)}; read files first.'
        )
    windows = np.asarray(given["X"], dtype=np.float32)
    if windows.ndim != 3 or 0 in windows.shape:
        raise UserError(f"X has the shape {windows.shape}; it must be (windows, steps, channels), none of them 0.")
    return windows
