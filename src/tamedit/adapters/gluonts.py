"""A model as a predictor of GluonTS, so that its evaluators, and harnesses built on them, run on it.

    predictor = TamePredictor(tame.load("release/"), prediction_length=24)
    evaluate_model(predictor, test_data=test_data, metrics=[MeanWeightedSumQuantileLoss(levels)])

Entries are GluonTS' own: `start` (a Period), `target` (T,) or (K, T), and `feat_dynamic_real` (V, T + H) if the model has
covariates. NaN means missing there and here.

GluonTS' mean weighted quantile loss, the average over the levels 0.05 … 0.95 of Σ 2 · pinball / Σ |y|, is our `CRPS_CSDI`. For a
quantile GluonTS takes the sample nearest to position p (S − 1); we interpolate there. So with S = 21, 41, … 101 samples, where
these positions are whole numbers, both give the same number.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from gluonts.itertools import batcher
from gluonts.model.forecast import SampleForecast
from gluonts.model.predictor import Predictor

from tamedit.adapters.panel import ID, TIME, drawn, panel
from tamedit.data.series import Series
from tamedit.diffusion.sample import SamplerConfig
from tamedit.tasks.model import Model, load

PARAMETERS = "tamedit-predictor.json"
TOGETHER = 64  # entries that are forecast at once


class TamePredictor(Predictor):
    """Forecasts by samples of a trained model."""

    def __init__(
        self,
        model: Model | str | Path,
        prediction_length: int,
        samples: int = 100,
        seed: int = 0,
        sampler: SamplerConfig | None = None,
    ) -> None:
        super().__init__(prediction_length=int(prediction_length))
        self.model = model if isinstance(model, Model) else load(model)
        self.samples, self.seed, self.sampler = samples, seed, sampler

    def predict(
        self, dataset: Iterable[dict[str, Any]], num_samples: int | None = None, **kwargs: Any
    ) -> Iterator[SampleForecast]:
        """One forecast per entry, in their order."""
        if kwargs:
            raise TypeError(f"predict() got an unexpected keyword argument {min(kwargs)!r}")
        samples = self.samples if num_samples is None else num_samples
        for entries in batcher(dataset, TOGETHER):
            yield from self._predict(entries, samples)

    def _predict(self, entries: Sequence[dict[str, Any]], samples: int) -> Iterator[SampleForecast]:
        horizon = self.prediction_length
        values = [np.atleast_2d(entry["target"]).T for entry in entries]  # (T, K) each
        beside = [np.atleast_2d(entry.get("feat_dynamic_real", np.zeros((0, 0)))).T for entry in entries]
        beside = [
            one if one.size else np.zeros((len(known) + horizon, 0)) for one, known in zip(beside, values, strict=True)
        ]
        stamps = [_stamps(entry["start"], len(known)) for entry, known in zip(entries, values, strict=True)]
        past = [one[: len(known)] for one, known in zip(beside, values, strict=True)]
        series = panel(self.model.spec, values, stamps, past)
        future = _future(series, [one[len(known) :] for one, known in zip(beside, values, strict=True)], horizon)
        table = self.model.forecast(
            series, horizon, samples=samples, all_samples=True, seed=self.seed, future=future, sampler=self.sampler
        )
        paths = drawn(table, self.model, samples).reshape(samples, len(entries), horizon, -1)
        for number, (entry, known) in enumerate(zip(entries, values, strict=True)):
            one = paths[:, number]  # (S, H, K)
            yield SampleForecast(
                samples=one[..., 0] if np.ndim(entry["target"]) == 1 else one,
                start_date=entry["start"] + len(known),
                item_id=entry.get("item_id"),
                info=entry.get("info"),
            )

    def serialize(self, path: Path) -> None:
        """Write the predictor to a folder; `Predictor.deserialize` reads it."""
        super().serialize(path)
        self.model.save(path)
        chosen = {"prediction_length": self.prediction_length, "samples": self.samples, "seed": self.seed}
        (path / PARAMETERS).write_text(json.dumps(chosen), encoding="utf-8")

    @classmethod
    def deserialize(cls, path: Path, **kwargs: Any) -> "TamePredictor":
        return cls(path, **json.loads((path / PARAMETERS).read_text(encoding="utf-8")), **kwargs)


def _stamps(start: pd.Period, rows: int) -> pd.DatetimeIndex:
    return pd.period_range(start, periods=rows, freq=start.freq).to_timestamp()


def _future(series: Series, ahead: Sequence[np.ndarray], horizon: int) -> pd.DataFrame | None:
    """The covariates of the steps ahead, (H, V) each, with meter and stamp; None if there are none."""
    if not series.covariate_names:
        return None
    known = np.concatenate([one[:horizon] for one in ahead])
    frame = pd.DataFrame(known, columns=list(series.covariate_names))
    frame[ID] = np.repeat(series.meters, [len(one[:horizon]) for one in ahead])
    frame[TIME] = np.concatenate([series.future(horizon, meter)[: len(one)] for meter, one in enumerate(ahead)])
    return frame
