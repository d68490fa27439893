"""A trained model: pandas in, pandas out, in the units of the data.

filled = model.impute(frame_with_nans)           the same time line; gaps have the median, with quantiles next to it
ahead  = model.forecast(frame, horizon="24h")    the next 24 hours
fake   = model.generate(homes=500, days=365)     synthetic homes
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import date
from importlib.resources import as_file
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from tamedit.data.calendar import network_covariates, without_calendar
from tamedit.data.loading import Data
from tamedit.data.reader import check_reading, read
from tamedit.data.reading.grid import spoken, step_of
from tamedit.data.series import Series
from tamedit.diffusion.sample import SamplerConfig, sample
from tamedit.diffusion.starts import OneOf
from tamedit.errors import UserError
from tamedit.formatting import counted, deep, epsilon
from tamedit.model.dit import DiffusionTransformer
from tamedit.privacy.population import Population
from tamedit.runs.artifact import ModelSpec, load_model, save_model
from tamedit.runs.release import release
from tamedit.runs.request import HOMES
from tamedit.statics import Given
from tamedit.tasks import distilled, familiar, frames
from tamedit.tasks.common_start import ending_before, too_late
from tamedit.tasks.continued import continued
from tamedit.tasks.enough import drawing_for
from tamedit.tasks.fleet import GROUP, Fleet, make_homes
from tamedit.tasks.fleet_table import asked, continued_table, homes_table
from tamedit.tasks.parts import PATHS_AT_ONCE, Progress, parts, told
from tamedit.tasks.redraw import Draw as Redraw
from tamedit.tasks.single_windows import asked_windows, whole
from tamedit.tasks.stitch import Line, fill
from tamedit.training.device import choose_device
from tamedit.training.homes import PLACE
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
        if spec.process.calls is not None:
            bought = f"a student of {counted(len(spec.process.calls), 'call')}, {bought}"
        return (
            f"Model({counted(len(spec.targets), 'target')} ({names}), rows every {self._spoken_step}, windows of "
            f"{spec.network.length} rows, {sum(one.numel() for one in self.network.parameters()):,} parameters, {bought})"
        )

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto") -> "Model":
        """The model of a folder made by `tamedit train`, `fit` or `save`; or `homes`, the one that ships with the package."""
        if str(folder) == HOMES and not Path(folder).exists():
            with as_file(PLACE) as place:
                return cls(*load_model(place, choose_device(device)))
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

    @classmethod
    def from_pretrained(cls, place: str | Path, *, device: str = "auto", **download: Any) -> "Model":
        """The model of a folder, or of a repository on the Hugging Face Hub (`revision`, `token`, `cache_dir`, …)."""
        if Path(place).is_dir():
            return cls.load(place, device)
        from tamedit.adapters.hub import HubModel

        return HubModel.from_pretrained(str(place), device=device, **download)

    def save_pretrained(self, folder: str | Path, *, license: str | None = None) -> None:
        """Write the model, or the release that it was loaded from, and README.md with the cards, to a folder."""
        from tamedit.adapters.hub import as_hub_model

        as_hub_model(self).save_pretrained(folder, license=license)

    def push_to_hub(self, repo_id: str, *, license: str, **options: Any) -> str:
        """Upload the release that this model was loaded from to the Hugging Face Hub; anything else is refused."""
        from tamedit.adapters.hub import as_hub_model

        return as_hub_model(self).push_to_hub(repo_id, license=license, **options)

    @property
    def privacy(self) -> str:
        """The privacy statement: what was spent, for which unit, by which accountant."""
        return str(self.spec.privacy["statement"])

    def _to_step(self, seconds: float) -> str:
        """What to do with data of another step."""
        step = step_of(self.spec.frequency_seconds)
        if seconds > self.spec.frequency_seconds or step.kind == "months":
            return "resample it, or name the step with `frequency` if rows are only absent"
        size, unit = (
            (step.size // 60_000_000, "min") if step.size % 3_600_000_000 else (step.size // 3_600_000_000, "h")
        )
        return f"say resample='{size}{unit}' with aggregate='sum' for energy or aggregate='mean' for power"

    @property
    def _spoken_step(self) -> str:
        return spoken(step_of(self.spec.frequency_seconds))

    def impute(
        self,
        data: Data,
        *,
        samples: int | None = None,
        quantiles: frames.Quantiles = frames.QUANTILES,
        all_samples: bool = False,
        only_filled: bool = False,
        seed: int = 0,
        sampler: SamplerConfig | None = None,
        progress: Progress | None = None,
        **reading: Any,
    ) -> pd.DataFrame:
        """Fill every missing cell with the median of its samples; `quantiles` of them stand in columns beside it.

        `samples` per cell: 40 by default, more where a quantile lies far out, and 100 if `all_samples` gives them out. Samples of
        which only quantiles are given are others than those: they are stratified (`diffusion/starts.py`).

        Observed cells are kept, to single precision; the columns load_filled are 1 where a cell was filled, else 0.
        `only_filled` gives the rows alone that have such a cell. `progress(done, total)` hears of windows. `reading` goes to
        `tamedit.read`.
        """
        check_reading(self.impute, reading)
        levels = frames.quantile_levels(quantiles, all_samples)
        series = self.read(data, **reading)
        frames.check_names(series, levels, flags=True)
        missing = np.isnan(series.values)
        samples, config = drawing_for(levels, samples, sampler)
        drawn = self._draw_missing(series, missing, samples, config, seed, progress)
        only_rows = missing.any(axis=1) if only_filled else None
        even = config.starts == "stratified"
        return frames.table(series, missing, drawn, levels, only_rows, flags=True, stratified=even)

    def forecast(
        self,
        data: Data,
        horizon: frames.Horizon,
        *,
        samples: int | None = None,
        quantiles: frames.Quantiles = frames.QUANTILES,
        all_samples: bool = False,
        seed: int = 0,
        since: str | pd.Timestamp | None = None,
        future: frames.Future | None = None,
        sampler: SamplerConfig | None = None,
        progress: Progress | None = None,
        **reading: Any,
    ) -> pd.DataFrame:
        """The next steps of every meter, as many as `horizon` says: their number, or a duration such as "24h" or "2D".

        They follow each meter's last row, or begin at the date `since`, from which on no reading is used.

        `future`, a table or a path: the known covariates of these steps, if the model has any. They are found by their time
        stamps; a table without stamps must hold these steps alone, in order.
        """
        check_reading(self.forecast, reading)
        levels = frames.quantile_levels(quantiles, all_samples)
        series = self.read(data, **reading)
        steps = frames.steps_ahead(series, horizon)
        frames.check_names(series, levels)
        series = series if since is None else ending_before(series, since)
        recent = series.between(series.lengths - self.spec.network.length, series.lengths)
        silent = np.add.reduceat(np.isfinite(recent.values).astype(np.int64), recent.offsets[:-1]) == 0  # (M, K)
        if silent.any():
            meter, channel = (int(i) for i in np.argwhere(silent)[0])
            name, which = recent.meters[meter], recent.targets[channel]
            if since is not None:
                raise UserError(too_late(series, since, meter, channel, self.spec.network.length))
            raise UserError(
                f"The last {self.spec.network.length} rows{f' of meter {name!r}' if name else ''} hold no value of {which!r}, so "
                "there is nothing to forecast from; end the series with its last reading, or leave the meter out."
            )
        longer, ahead = frames.extended(recent, steps, future)
        samples, config = drawing_for(levels, samples, sampler)
        drawn = self._draw_missing(longer, ahead, samples, config, seed, progress)
        even = config.starts == "stratified"
        return frames.table(longer, ahead, drawn, levels, only_rows=ahead[:, 0], stratified=even)

    predict_df = familiar.predict_df
    impute_df = familiar.impute_df
    distill = distilled.distill

    def generate(
        self,
        count: int | None = None,
        *,
        homes: int | None = None,
        start: str | date | np.datetime64 | None = None,
        days: int | None = None,
        level: tuple[float, float] | None = None,
        begin: Data | None = None,
        redraw: bool | None = None,
        static: Given | None = None,
        seed: int = 0,
        sampler: SamplerConfig | None = None,
        progress: Progress | None = None,
    ) -> pd.DataFrame:
        """`count` synthetic windows, long: sample, time, one column per target.

        Or `homes` synthetic homes of so many `days` (a year) from `start` on (2024-01-01), long: home, time, one column per
        target. `level`: the least and the largest total of a home per year, of the first target. `redraw`: whether the network
        draws every day anew (None: only where the simulator cannot make such rows). `static`: attributes that all homes are to
        have, {"tariff": "night"}; others are drawn, and all stand in columns. See `tasks/fleet.py`.

        Or the next `days` of the homes whose readings are given as `begin`; `redraw` means the same there. See
        `tasks/continued.py`.

        Without `start` each window begins at a random day of the year 2024. The level and scale are the model's reference
        ones (public facts or statistics of the training data, as `model.json` says).
        """
        if begin is not None:
            if (count, homes, start, level, static) != (None,) * 5:
                raise UserError("`begin` says which homes go on and from when; give `days` alone with it.")
            fleet, population = asked(self.spec, 1, None, days, None, redraw, seed)
            draw = self._drawing(fleet, sampler)
            series = self.read(begin)
            lives = told(continued(fleet, population, series, draw), 1, len(series.meters), progress)
            return continued_table(lives)
        if homes is not None:
            if count is not None:
                raise UserError("`count` asks for windows and `homes` for homes; leave one of them out.")
            fleet, population = asked(self.spec, homes, start, days, level, redraw, seed, static)
            groups = told(self.homes(fleet, population, sampler), GROUP, fleet.homes, progress)
            return homes_table(fleet, list(groups), self.spec.targets, population=population)
        if any(one is not None for one in (days, level, redraw, static)):
            raise UserError(
                "`days`, `level`, `redraw` and `static` belong to `homes`; give the number of homes, or leave them out."
            )
        if count is None:
            raise UserError("Nothing to generate; give `homes` and `days`, or `count` (single windows).")
        times, covariates = asked_windows(self.spec, self.scaling.origin, count, start, seed)
        values = torch.full((count, self.spec.network.length, len(self.spec.targets)), torch.nan)
        observed = torch.zeros_like(values, dtype=torch.bool)
        drawn = [
            self.draw(values[part], observed[part], covariates[part], np.arange(count)[part], 1, seed, sampler)[:, 0]
            for part in parts(count, PATHS_AT_ONCE, progress)
        ]
        return frames.windows_table(times, torch.cat(drawn).numpy(), self.spec.targets)

    def homes(
        self, fleet: Fleet, population: Population, sampler: SamplerConfig | None = None, skip: int = 0
    ) -> Iterator[Float[np.ndarray, "H T K"]]:
        """Group after group of synthetic homes; `skip` groups that were made before."""

        return make_homes(fleet, population, self._drawing(fleet, sampler), skip)

    def _drawing(self, fleet: Fleet, sampler: SamplerConfig | None) -> Redraw:
        def draw(values: Tensor, observed: Tensor, covariates: Tensor, names: np.ndarray) -> Tensor:
            return self.draw(values, observed, covariates, names, 1, fleet.seed, sampler)[:, 0]

        return draw

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
                columns = {**named, "covariates": self.spec.varying, "timezone": self.spec.timezone}
                columns |= {"static": dict(self.spec.static)} if self.spec.static else {}
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
        series = replace(series, static=self.spec.static)
        seconds = series.frequency.total_seconds()
        if abs(seconds - self.spec.frequency_seconds) > 1e-6 * seconds:
            raise UserError(
                f"The data has a row every {series.spoken_step} and the model was trained on one every "
                f"{self._spoken_step}; {self._to_step(seconds)}."
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
        self,
        series: Series,
        wanted: np.ndarray,
        samples: int,
        sampler: SamplerConfig | None,
        seed: int,
        progress: Progress | None,
    ) -> np.ndarray:
        """(S, M) draws of the wanted cells, in the order of `np.nonzero(wanted)`."""
        whole("samples", samples)
        if samples < 1:
            raise UserError(f"samples={samples} must be at least 1; 20 to 100 give good quantiles.")
        length = self.spec.network.length
        padded, kept = frames.at_least(series, length)
        prepared = network_covariates(padded, self.spec.calendar)
        target = np.zeros(prepared.values.shape, dtype=bool)
        target[kept] = wanted

        def draw(
            values: Tensor, observed: Tensor, covariates: Tensor, windows: np.ndarray, each: int | OneOf
        ) -> Tensor:
            return self.draw(values, observed, covariates, windows, each, seed, sampler)

        line = Line(prepared.values, prepared.covariates, prepared.offsets, prepared.meters)
        return fill(line, target, length, samples, draw, progress)

    def draw(
        self,
        values: Tensor,
        observed: Tensor,
        covariates: Tensor,
        windows: np.ndarray,
        samples: int | OneOf,
        seed: int,
        sampler: SamplerConfig | None,
    ) -> Tensor:
        """Draws (W, S, L, K) of whole windows in the data's units: `samples` of each, or the one sample that it is for."""
        context, coordinates = build_context(values, observed, covariates, self.scaling, self.spec.examples)
        seen = pad_context(context, self.spec.examples.channels).to(next(self.network.parameters()).device)
        count, one_of = (1, samples) if isinstance(samples, OneOf) else (samples, None)
        residual = sample(
            self.network, seen, self.spec.process, count, seed=seed, windows=windows, config=sampler, one_of=one_of
        )
        drawn = coordinates.from_z(residual[..., : values.shape[2]])  # real channels come first
        if self.spec.non_negative:
            drawn = drawn.clamp_min(0)
        return torch.where(observed[:, None], values[:, None], drawn)


def load(folder: str | Path, device: str = "auto") -> Model:
    """The model of a folder made by `tamedit train`, `fit` or `Model.save`, or `homes`; `device`: auto, cpu, cuda or mps."""
    return Model.load(folder, device)
