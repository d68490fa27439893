"""A trained model: pandas in, pandas out, in the units of the data.

filled = model.impute(frame_with_nans)           the same time line; gaps have the median, with quantiles next to it
ahead  = model.forecast(frame, horizon="24h")    the next 24 hours
fake   = model.generate(count=500)               synthetic windows
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from tamedit.data.calendar import calendar, network_covariates, without_calendar
from tamedit.data.loading import Data
from tamedit.data.reading.grid import spoken, step_of
from tamedit.data.series import Series, check_reading, read
from tamedit.diffusion.sample import SamplerConfig, sample
from tamedit.errors import UserError
from tamedit.formatting import counted, deep, epsilon
from tamedit.model.dit import DiffusionTransformer
from tamedit.runs.artifact import ModelSpec, load_model, save_model
from tamedit.runs.release import release
from tamedit.tasks import familiar, frames
from tamedit.tasks.stitch import Line, fill
from tamedit.training.device import choose_device
from tamedit.windows.examples import build_context, pad_context


class Model:
    """A network with what is needed to read data for it."""

    def __init__(self, network: DiffusionTransformer, spec: ModelSpec, folder: Path | None = None) -> None:
        self.network, self.spec, self.folder = network, spec, folder
        self.scaling = spec.scaling_of()

    def __repr__(self) -> str:
        """What it is, in kind: nothing here was measured on the data."""
        spec, privacy = self.spec, self.spec.privacy
        names = ", ".join([*spec.targets[:8], "…"] if len(spec.targets) > 8 else spec.targets)
        if privacy.get("private"):
            bought = (
                f"ε = {epsilon(deep(privacy, 'epsilon', 'headline'))}, δ = {privacy['delta']:g} per {privacy['unit']}"
            )
            bought += " (a test run: no guarantee)" * bool(privacy.get("test_only"))
        else:
            bought = "without privacy"
        return (
            f"Model({counted(len(spec.targets), 'target')} ({names}), rows every {self._spoken_step}, windows of "
            f"{spec.network.length} rows, {sum(one.numel() for one in self.network.parameters()):,} parameters, {bought})"
        )

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto") -> "Model":
        """The model of a folder made by `tamedit train`, `fit` or `save`."""
        return cls(*load_model(Path(folder), choose_device(device)), Path(folder))

    def save(self, folder: str | Path) -> list[Path]:
        """Write `model.safetensors` and `model.json`, all that a model is; `load` reads them."""
        return save_model(Path(folder), self.spec, dict(self.network.named_parameters()))

    def release(
        self,
        out: str | Path,
        *,
        acknowledge: str | Iterable[str] = (),
        key: str | Path | None = None,
        **stated: str,
    ) -> list[Path]:
        """Write what may leave of the model's run, and nothing else, to the folder `out`: see `runs.release.release`."""
        if self.folder is None or not self.folder.is_dir():
            raise UserError(
                "The run of this model was not kept; fit the model with `out`, so that its ledger can be released."
            )
        return release(
            self.folder, Path(out), acknowledge=acknowledge, key=None if key is None else Path(key), **stated
        )

    @property
    def privacy(self) -> str:
        """The privacy statement: what was spent, for which unit, by which accountant."""
        return str(self.spec.privacy["statement"])

    @property
    def _spoken_step(self) -> str:
        return spoken(step_of(self.spec.frequency_seconds))

    def impute(
        self,
        data: Data,
        *,
        samples: int = 100,
        quantiles: frames.Quantiles = frames.QUANTILES,
        all_samples: bool = False,
        seed: int = 0,
        sampler: SamplerConfig | None = None,
        **reading: Any,
    ) -> pd.DataFrame:
        """Fill every missing cell with the median of its samples; `quantiles` of them stand in columns beside it.

        Observed cells are kept, to single precision. `reading` goes to `tamedit.read`.
        """
        check_reading(self.impute, reading)
        levels = frames.quantile_levels(quantiles, all_samples)
        series = self.read(data, **reading)
        frames.check_names(series, levels)
        missing = np.isnan(series.values)
        drawn = self._draw_missing(series, missing, samples, seed, sampler)
        return frames.table(series, missing, drawn, levels)

    def forecast(
        self,
        data: Data,
        horizon: frames.Horizon,
        *,
        samples: int = 100,
        quantiles: frames.Quantiles = frames.QUANTILES,
        all_samples: bool = False,
        seed: int = 0,
        future: frames.Future | None = None,
        sampler: SamplerConfig | None = None,
        **reading: Any,
    ) -> pd.DataFrame:
        """The next steps of every meter, as many as `horizon` says: their number, or a duration such as "24h" or "2D".

        `future`, a table or a path: the known covariates of these steps, if the model has any. They are found by their time
        stamps; a table without stamps must hold these steps alone, in order.
        """
        check_reading(self.forecast, reading)
        levels = frames.quantile_levels(quantiles, all_samples)
        series = self.read(data, **reading)
        steps = frames.steps_ahead(series, horizon)
        frames.check_names(series, levels)
        recent = series.between(series.lengths - self.spec.network.length, series.lengths)
        silent = np.add.reduceat(np.isfinite(recent.values).astype(np.int64), recent.offsets[:-1]) == 0  # (M, K)
        if silent.any():
            meter, channel = (int(i) for i in np.argwhere(silent)[0])
            name, which = recent.meters[meter], recent.targets[channel]
            raise UserError(
                f"The last {self.spec.network.length} rows{f' of meter {name!r}' if name else ''} hold no value of {which!r}, so "
                "there is nothing to forecast from; end the series with its last reading, or leave the meter out."
            )
        longer, ahead = frames.extended(recent, steps, future)
        drawn = self._draw_missing(longer, ahead, samples, seed, sampler)
        return frames.table(longer, ahead, drawn, levels, only_rows=ahead[:, 0])

    def predict_df(
        self,
        df: pd.DataFrame,
        future_df: pd.DataFrame | None = None,
        *,
        id_column: str = "item_id",
        timestamp_column: str = "timestamp",
        target: familiar.Target = "target",
        prediction_length: int = 24,
        quantile_levels: Sequence[float] = familiar.LEVELS,
        samples: int = 100,
        all_samples: bool = False,
        seed: int = 0,
        sampler: SamplerConfig | None = None,
    ) -> pd.DataFrame:
        """`forecast` with the arguments and the columns of `Chronos2Pipeline.predict_df`; `all_samples` adds sample_0, …."""
        drawn: dict[str, Any] = {"samples": samples, "all_samples": True, "seed": seed, "sampler": sampler}
        return familiar.familiar_frame(
            self.read,
            lambda series: self.forecast(series, prediction_length, future=future_df, **drawn),
            df,
            id_column=id_column,
            timestamp_column=timestamp_column,
            target=target,
            levels=quantile_levels,
            all_samples=all_samples,
        )

    def impute_df(
        self,
        df: pd.DataFrame,
        *,
        id_column: str = "item_id",
        timestamp_column: str = "timestamp",
        target: familiar.Target = "target",
        quantile_levels: Sequence[float] = familiar.LEVELS,
        samples: int = 100,
        all_samples: bool = False,
        seed: int = 0,
        sampler: SamplerConfig | None = None,
    ) -> pd.DataFrame:
        """`impute` with the same columns: every row of the grid; observed readings stand in all of their columns."""
        drawn: dict[str, Any] = {"samples": samples, "all_samples": True, "seed": seed, "sampler": sampler}
        return familiar.familiar_frame(
            self.read,
            lambda series: self.impute(series, **drawn),
            df,
            id_column=id_column,
            timestamp_column=timestamp_column,
            target=target,
            levels=quantile_levels,
            all_samples=all_samples,
        )

    def generate(
        self,
        count: int,
        *,
        start: str | date | np.datetime64 | None = None,
        seed: int = 0,
        sampler: SamplerConfig | None = None,
    ) -> pd.DataFrame:
        """`count` synthetic windows, long: sample, time, one column per target.

        Without `start` each window begins at a random day of the year 2024. The level and scale are the model's reference
        ones (public facts or statistics of the training data, as `model.json` says).
        """
        _whole("count", count)
        if count < 1:
            raise UserError(f"count={count} must be at least 1; give the number of windows to generate.")
        frames.check_window_names(self.spec.targets)
        if self.scaling.origin == "none":
            raise UserError(
                "This model has no level and scale to generate in; train it with `typical_level` and `typical_scale` "
                "(public facts), or with `lower` and `upper` (a private estimate)."
            )
        if self.spec.covariates:
            raise UserError(
                f"This model needs the covariates {', '.join(self.spec.covariates)}, so it cannot generate a window; "
                "use forecast or impute with a table that has them."
            )
        first = pd.Timestamp(start) if isinstance(start, date | np.datetime64) else start
        spec = self.spec
        times = frames.window_times(  # (N, L)
            count, spec.network.length, spec.frequency_seconds, first, seed, spec.phase_seconds
        )
        known = (
            calendar(pd.DatetimeIndex(times.ravel())) if self.spec.calendar else np.zeros((times.size, 0), np.float32)
        )
        covariates = torch.from_numpy(known).view(count, self.spec.network.length, -1)
        values = torch.full((count, self.spec.network.length, len(self.spec.targets)), torch.nan)
        observed = torch.zeros_like(values, dtype=torch.bool)
        drawn = self.draw(values, observed, covariates, np.arange(count), 1, seed, sampler)[:, 0]
        return frames.windows_table(times, drawn.numpy(), self.spec.targets)

    def read(self, data: Data, **reading: Any) -> Series:
        """The data as a series with this model's channels and rhythm; `reading` goes to `tamedit.read`."""
        check_reading(self.read, reading)
        if isinstance(data, Series):
            if reading:
                raise UserError(
                    f"{', '.join(reading)} say how to read a table, but this is already a series; leave them out."
                )
            series = data
        else:
            columns: dict[str, Any] = {}
            if not isinstance(data, np.ndarray):
                named = {} if "value" in reading else {"targets": self.spec.targets}
                columns = {**named, "covariates": self.spec.covariates, "timezone": self.spec.timezone}
            series = read(data, **(columns | reading))
        return self._checked(series)

    def _checked(self, series: Series) -> Series:
        """The series, its targets in the model's order, if the model can read it."""
        wanted = self.spec.targets
        if len(series.targets) != len(wanted):
            raise UserError(
                f"The data has {len(series.targets)} target channels ({', '.join(series.targets)}) and the model was trained on "
                f"{len(wanted)} ({', '.join(wanted)}); give the same columns."
            )
        series = without_calendar(series)
        if series.covariate_names != self.spec.covariates:
            given, known = (", ".join(names) or "none" for names in (series.covariate_names, self.spec.covariates))
            raise UserError(
                f"The data has the covariates {given} and the model was trained with {known}; give the same."
            )
        seconds = series.frequency.total_seconds()
        if abs(seconds - self.spec.frequency_seconds) > 1e-6 * seconds:
            raise UserError(
                f"The data has a row every {series.spoken_step} and the model was trained on one every "
                f"{self._spoken_step}; resample it, or name the step with `frequency` if "
                "rows are only absent."
            )
        if 0 < len(set(series.targets) & set(wanted)) < len(wanted):
            raise UserError(
                f"The data has the channels {', '.join(series.targets)} and the model was trained on {', '.join(wanted)}; give "
                "the same names, or other names for all of them in the model's order."
            )
        if series.targets != wanted and set(series.targets) == set(wanted):
            order = [series.targets.index(name) for name in wanted]
            series = replace(series, values=series.values[:, order], targets=wanted)
        return series

    def _draw_missing(
        self, series: Series, wanted: np.ndarray, samples: int, seed: int, sampler: SamplerConfig | None
    ) -> np.ndarray:
        """(S, M) draws of the wanted cells, in the order of `np.nonzero(wanted)`."""
        _whole("samples", samples)
        if samples < 1:
            raise UserError(f"samples={samples} must be at least 1; 20 to 100 give good quantiles.")
        length = self.spec.network.length
        padded, kept = frames.at_least(series, length)
        prepared = network_covariates(padded, self.spec.calendar)
        target = np.zeros(prepared.values.shape, dtype=bool)
        target[kept] = wanted

        def draw(values: Tensor, observed: Tensor, covariates: Tensor, windows: np.ndarray, each: int) -> Tensor:
            return self.draw(values, observed, covariates, windows, each, seed, sampler)

        line = Line(prepared.values, prepared.covariates, prepared.offsets, prepared.meters)
        return fill(line, target, length, samples, draw)

    def draw(
        self,
        values: Tensor,
        observed: Tensor,
        covariates: Tensor,
        windows: np.ndarray,
        samples: int,
        seed: int,
        sampler: SamplerConfig | None,
    ) -> Tensor:
        """Draws of whole windows in the data's units, (W, S, L, K); observed cells as they are."""
        context, coordinates = build_context(values, observed, covariates, self.scaling, self.spec.examples)
        seen = pad_context(context, self.spec.examples.channels).to(next(self.network.parameters()).device)
        residual = sample(self.network, seen, self.spec.process, samples, seed=seed, windows=windows, config=sampler)
        drawn = coordinates.from_z(residual[..., : values.shape[2]])  # real channels come first
        if self.spec.non_negative:
            drawn = drawn.clamp_min(0)
        return torch.where(observed[:, None], values[:, None], drawn)


def load(folder: str | Path, device: str = "auto") -> Model:
    """The model of a folder made by `tamedit train`, `fit` or `Model.save`; `device`: auto, cpu, cuda or mps."""
    return Model.load(folder, device)


def _whole(name: str, number: object) -> None:
    if not isinstance(number, int | np.integer):
        raise UserError(f"{name}={number!r} must be a whole number.")
