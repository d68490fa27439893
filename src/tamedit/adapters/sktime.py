"""A trained model as a forecaster and as an imputer of sktime.

    forecaster = TameForecaster("release/", samples=100).fit(y)
    forecaster.predict(fh=range(1, 25))                                medians; predict_interval and predict_quantiles too
    TameImputer("release/").fit_transform(y)                           gaps filled with medians

`fit` remembers the series and trains nothing, as for the foundation models in sktime; `tamedit.fit` trains. A model of one target
is applied to every column of a table by itself, and a model of several (given as a `Model`) to all of them together.
"""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sktime.forecasting.base import BaseForecaster, ForecastingHorizon
from sktime.transformations.base import BaseTransformer

from tamedit.adapters.panel import drawn, panel
from tamedit.data.reading.grid import step_of
from tamedit.data.series import Series
from tamedit.diffusion.sample import SamplerConfig
from tamedit.errors import UserError
from tamedit.tasks.enough import quantiles
from tamedit.tasks.model import Model, load
from tamedit.training.homes import PLACE

HOMES = "homes"  # stands for the shipped model of simulated homes
FIRST = pd.Timestamp("2000-01-01")  # of rows without stamps
TAGS = {
    "authors": ["tamedit"],
    "maintainers": ["tamedit"],
    "capability:multivariate": False,
    "capability:missing_values": True,
    "capability:categorical_in_X": False,
    "capability:random_state": True,
    "property:randomness": "derandomized",
}


class _Drawing:
    """What both have: a model, and how to draw from it.

    Parameters
    ----------
    model : the folder of a run or of a release, a `Model`, or "homes" (the shipped model of hourly loads)
    samples : number of paths whose median and quantiles are returned
    steps : network calls per path; the model's usual number if None (8; exact ones are 6, 8 and 12)
    use_index : False takes the rows as the model's steps whatever the index says
    random_state : seed of the paths

    Examples
    --------
    >>> import tamedit as tame
    >>> from tamedit.adapters.sktime import TameForecaster, TameImputer
    >>> y = tame.simulate(hours=200, seed=1).frame()
    >>> filled = TameImputer("homes", samples=9, steps=2).fit_transform(y)
    >>> int(filled.isna().sum().sum())
    0
    >>> TameForecaster("homes", samples=9, steps=2).fit(filled).predict(fh=[1, 2, 24]).shape
    (3, 1)
    """

    set_tags: Callable[..., Any]  # of sktime's classes

    def __init__(
        self,
        model: Model | str | Path = HOMES,
        samples: int = 100,
        steps: int | None = None,
        use_index: bool = True,
        random_state: int = 0,
    ) -> None:
        self.model, self.samples, self.steps = model, samples, steps
        self.use_index, self.random_state = use_index, random_state
        with warnings.catch_warnings():  # that sktime 1.3 will no longer keep the data: `_context` is kept here
            warnings.simplefilter("ignore", FutureWarning)
            super().__init__()
        several = isinstance(model, Model) and len(model.spec.targets) > 1
        self.set_tags(**{"capability:multivariate": several})

    def _loaded(self) -> Model:
        """The model, read once."""
        if not hasattr(self, "_kept"):
            place = PLACE if self.model == HOMES else self.model
            self._kept = place if isinstance(place, Model) else load(str(place))
        return self._kept

    def _chosen(self) -> dict[str, Any]:
        sampler = SamplerConfig(steps=self.steps, starts="stratified")  # nobody sees the paths: only their quantiles
        return {"samples": self.samples, "seed": self.random_state, "all_samples": True, "sampler": sampler}

    def _series(self, frame: pd.DataFrame) -> Series:
        """The rows with stamps: their own, or made ones where the index has none."""
        model, index = self._loaded(), frame.index
        if model.spec.covariates:
            raise UserError(
                f"The model needs the covariates {', '.join(model.spec.covariates)}, which this adapter does not pass on; use "
                "`tamedit.Model` itself."
            )
        stamps = index.to_timestamp() if isinstance(index, pd.PeriodIndex) else index
        if not (self.use_index and isinstance(stamps, pd.DatetimeIndex)):
            step = step_of(model.spec.frequency_seconds)
            first = step.ordinals(pd.DatetimeIndex([FIRST]))
            stamps = step.stamps(first + step.size * np.arange(len(frame)), pd.DatetimeIndex([FIRST]))
        return panel(model.spec, [frame.to_numpy(np.float32)], [stamps])

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Few and rough paths, and rows of any rhythm, for sktime's own checks."""
        rough = {"samples": 3, "steps": 1, "use_index": False}
        return [rough, {**rough, "samples": 5, "random_state": 7}]


class TameForecaster(_Drawing, BaseForecaster):
    __doc__ = (
        f"Forecasts of a trained model: medians of sampled paths, their intervals and quantiles.\n{_Drawing.__doc__}"
    )

    _tags: ClassVar = {
        **TAGS,
        "capability:exogenous": False,
        "capability:insample": False,
        "capability:pred_int": True,
        "capability:pred_int:insample": False,
        "capability:update": True,
        "requires-fh-in-fit": False,
        "y_inner_mtype": "pd.DataFrame",
    }

    def _fit(self, y: pd.DataFrame, X: Any = None, fh: Any = None) -> "TameForecaster":
        self._loaded()
        self._context = y
        return self

    def _update(self, y: pd.DataFrame, X: Any = None, update_params: bool = True) -> "TameForecaster":
        """Later rows are appended; rows that come again replace the earlier ones."""
        both = pd.concat([self._context, y])
        self._context = both[~both.index.duplicated(keep="last")].sort_index()
        return self

    def _predict(self, fh: ForecastingHorizon, X: Any = None) -> pd.DataFrame:
        median = np.median(self._paths(fh), axis=0)
        return pd.DataFrame(median, index=fh.to_absolute_index(self.cutoff), columns=self._context.columns)

    def _predict_quantiles(self, fh: ForecastingHorizon, X: Any, alpha: Sequence[float]) -> pd.DataFrame:
        cuts = quantiles(self._paths(fh), alpha, stratified=True)  # (Q, H, K)
        columns = pd.MultiIndex.from_product([self._get_varnames(), alpha])
        values = cuts.transpose(1, 2, 0).reshape(len(fh), -1)
        return pd.DataFrame(values, index=fh.to_absolute_index(self.cutoff), columns=columns)

    def _paths(self, fh: ForecastingHorizon) -> np.ndarray:
        """(S, H, K) paths at the steps of the horizon."""
        ahead = np.asarray(fh.to_relative(self.cutoff).to_pandas(), dtype=np.int64)
        model = self._loaded()
        table = model.forecast(self._series(self._context), int(ahead.max()), **self._chosen())
        return drawn(table, model, self.samples)[:, ahead - 1]


class TameImputer(_Drawing, BaseTransformer):
    __doc__ = f"Fills the gaps of a series with medians of sampled paths; observed values stay.\n{_Drawing.__doc__}"

    _tags: ClassVar = {
        **TAGS,
        "X_inner_mtype": "pd.DataFrame",
        "y_inner_mtype": "None",
        "fit_is_empty": True,
        "transform-returns-same-time-index": True,
        "capability:missing_values:removes": True,
        "skip-inverse-transform": True,
        "capability:inverse_transform": True,
    }

    def _transform(self, X: pd.DataFrame, y: Any = None) -> pd.DataFrame:
        missing = X.isna()
        if not missing.to_numpy().any():
            return X
        model = self._loaded()
        filled = np.median(drawn(model.impute(self._series(X), **self._chosen()), model, self.samples), axis=0)
        return X.where(~missing, pd.DataFrame(filled, index=X.index, columns=X.columns))
