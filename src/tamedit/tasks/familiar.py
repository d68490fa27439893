"""Frames as users of time-series foundation models know them: long, one row per item, target and step.

    id_column, timestamp_column, target_name, predictions, 0.1, 0.2, …

The columns, their order and type, and the order of rows (item as first seen, target, time) are those of
`Chronos2Pipeline.predict_df`; predictions are medians there and here. What is new: `sample_0`, `sample_1`, … on request, and gaps
in the data, which need no care.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tamedit.data.series import Series
from tamedit.diffusion.sample import SamplerConfig
from tamedit.errors import UserError
from tamedit.tasks.enough import drawing_for, quantiles
from tamedit.tasks.frames import quantile_levels

if TYPE_CHECKING:
    from tamedit.tasks.model import Model

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
MADE = ("target_name", "predictions")
Target = str | Sequence[str]


def predict_df(
    model: "Model",
    df: pd.DataFrame,
    future_df: pd.DataFrame | None = None,
    id_column: str = "item_id",
    timestamp_column: str = "timestamp",
    target: Target = "target",
    prediction_length: int | None = None,
    quantile_levels: Sequence[float] = LEVELS,
    *,
    freq: str | None = None,
    samples: int | None = None,
    all_samples: bool = False,
    seed: int = 0,
    sampler: SamplerConfig | None = None,
) -> pd.DataFrame:
    """`forecast` with the arguments and the columns of `Chronos2Pipeline.predict_df`; `all_samples` adds sample_0, ….

    Without `prediction_length`: one season of the model, a day of hourly rows.
    """
    steps = model.spec.examples.period if prediction_length is None else prediction_length
    samples, config = drawing_for(None if all_samples else _checked(quantile_levels), samples, sampler)
    drawn: dict[str, Any] = {"samples": samples, "all_samples": True, "seed": seed, "sampler": config}
    return _frame(
        model.read,
        lambda series: model.forecast(series, steps, future=future_df, **drawn),
        df,
        id_column=id_column,
        timestamp_column=timestamp_column,
        target=target,
        levels=_checked(quantile_levels),
        all_samples=all_samples,
        stratified=config.starts == "stratified",
        frequency=freq,
    )


def impute_df(
    model: "Model",
    df: pd.DataFrame,
    *,
    id_column: str = "item_id",
    timestamp_column: str = "timestamp",
    target: Target = "target",
    quantile_levels: Sequence[float] = LEVELS,
    samples: int | None = None,
    all_samples: bool = False,
    seed: int = 0,
    sampler: SamplerConfig | None = None,
) -> pd.DataFrame:
    """`impute` with the same columns: every row of the grid; observed readings stand in all of their columns."""
    samples, config = drawing_for(None if all_samples else _checked(quantile_levels), samples, sampler)
    drawn: dict[str, Any] = {"samples": samples, "all_samples": True, "seed": seed, "sampler": config}
    return _frame(
        model.read,
        lambda series: model.impute(series, **drawn),
        df,
        id_column=id_column,
        timestamp_column=timestamp_column,
        target=target,
        levels=_checked(quantile_levels),
        all_samples=all_samples,
        stratified=config.starts == "stratified",
    )


def _frame(
    read: Callable[..., Series],
    draw: Callable[[Series], pd.DataFrame],
    df: pd.DataFrame,
    *,
    id_column: str,
    timestamp_column: str,
    target: Target,
    levels: Sequence[float],
    all_samples: bool,
    stratified: bool,
    frequency: str | None = None,
) -> pd.DataFrame:
    """`draw` gives every sample of the series that `read` makes of the frame; here they become medians and quantiles."""
    targets = [target] if isinstance(target, str) else list(target)
    _check(df, id_column, timestamp_column, targets)
    series = read(df, time=timestamp_column, id=id_column, targets=targets, frequency=frequency)
    drawn = draw(series)
    samples = int(drawn["sample"].iloc[-1]) + 1
    rows = drawn.iloc[: len(drawn) // samples]
    names = _as_written(df[id_column])
    items = rows[id_column].map(names)
    parts = []
    for name in targets:
        values = drawn[name].to_numpy().reshape(samples, len(rows))
        part: dict[str, Any] = {id_column: items, timestamp_column: rows[timestamp_column]}
        part |= {"target_name": name, "predictions": np.median(values, axis=0).astype(np.float32)}
        cuts = zip(levels, quantiles(values, levels, stratified), strict=True)
        part |= {str(float(level)): cut.astype(np.float32) for level, cut in cuts}
        part |= {f"sample_{number}": one for number, one in enumerate(values) if all_samples}
        parts.append(pd.DataFrame(part))
    item = np.tile(pd.factorize(items)[0], len(parts))  # items in the order in which they appear
    return pd.concat(parts, ignore_index=True).iloc[np.argsort(item, kind="stable")].reset_index(drop=True)


def _checked(levels: Sequence[float]) -> tuple[float, ...]:
    """The levels as they were given, if quantiles can be at them."""
    try:
        quantile_levels(sorted(levels), all_samples=False)
    except (TypeError, UserError):
        raise UserError(
            f"quantile_levels={levels!r} is not possible; give different numbers between 0 and 1, such as [0.1, 0.5, 0.9]."
        ) from None
    return tuple(levels)


def _as_written(ids: pd.Series) -> dict[str, Any]:
    """Meters have texts as names; the answer has the ids of the frame."""
    kept = ids.drop_duplicates()
    return dict(zip(kept.astype(str), kept, strict=True))


def _check(df: object, id_column: str, timestamp_column: str, targets: list[str]) -> None:
    if not isinstance(df, pd.DataFrame):
        raise UserError(
            f"df is a {type(df).__name__}; give a pandas DataFrame, or use `forecast` and `impute` for files."
        )
    wanted = [id_column, timestamp_column, *targets]
    if lacking := [name for name in wanted if name not in df.columns]:
        raise UserError(
            f"The frame has no column {lacking[0]!r}; name its columns with id_column, timestamp_column and target."
        )
    if clash := [name for name in wanted if name in MADE]:
        raise UserError(f"The column {clash[0]!r} has the name of a column of the result; rename it.")
