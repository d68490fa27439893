"""Arrays with stamps become one `Series` with a model's channels and rhythm: what the adapters have in common."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from tamedit.data.reading.grid import spoken, step_of
from tamedit.data.series import Series
from tamedit.errors import UserError
from tamedit.runs.artifact import ModelSpec
from tamedit.tasks.model import Model

ID, TIME = "item_id", "timestamp"


def panel(
    spec: ModelSpec,
    values: Sequence[np.ndarray],
    times: Sequence[pd.DatetimeIndex],
    covariates: Sequence[np.ndarray] | None = None,
) -> Series:
    """Meters "0", "1", … of (T_m, K) values, (T_m,) stamps and (T_m, V) covariates, end to end.

    The rows of every meter must be one of the model's steps apart.
    """
    step = step_of(spec.frequency_seconds)
    known = covariates if covariates is not None else [np.zeros((len(one), 0)) for one in values]
    for number, (one, stamps, beside) in enumerate(zip(values, times, known, strict=True)):
        if (np.diff(step.ordinals(stamps)) != step.size).any():
            raise UserError(
                f"The rows of series {number} are not {spoken(step)} apart, as the model's training rows were; resample them."
            )
        for what, wanted, found in (
            ("target channels", spec.targets, one.shape[1]),
            ("covariates", spec.covariates, beside.shape[1]),
        ):
            if len(wanted) != found:
                raise UserError(
                    f"Series {number} has {found} {what} and the model was trained on {len(wanted)} "
                    f"({', '.join(wanted) or 'none'}); give the same."
                )
    return Series(
        values=np.concatenate(values).astype(np.float32),
        covariates=np.concatenate(known).astype(np.float32),
        times=times[0].append(list(times[1:])),
        meters=tuple(str(number) for number in range(len(values))),
        offsets=np.concatenate([[0], np.cumsum([len(one) for one in values])]).astype(np.int64),
        targets=spec.targets,
        covariate_names=spec.covariates,
        frequency=step.frequency,
        layout="long",
        time_name=TIME,
        id_name=ID,
        step=step,
    )


def drawn(frame: pd.DataFrame, model: Model, samples: int) -> np.ndarray:
    """(S, rows, K) of a table that holds every sample."""
    return frame[list(model.spec.targets)].to_numpy(np.float32).reshape(samples, -1, len(model.spec.targets))
