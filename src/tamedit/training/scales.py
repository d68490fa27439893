"""The units of a run: where the reference level and scale come from, and whether that costs privacy.

In instance mode every window has its own units, and the reference serves windows in which nothing is observed (as in
generation) and the floor of the scale; otherwise it is the centre and scale of every window. In this order:

    public       given by the user, or known for a named source: costs nothing
    private      estimated with noise within public bounds, charged to the ledger (`private/released_scale.py`)
    nonprivate   statistics of the training data: in training without privacy, or in the paper's form (and then every
                 statement says that the guarantee does not cover them)
    none         0 and 1: such a model fills and forecasts, but cannot generate whole windows
"""

from dataclasses import replace

import numpy as np
import pandas as pd

from tamedit.data.scaling import RELATIVE_FLOOR, Scaling, fit_scaling
from tamedit.data.series import Series
from tamedit.data.sources import SOURCES
from tamedit.errors import UserError
from tamedit.runs.config import RunConfig
from tamedit.runs.folder import DataFacts
from tamedit.runs.request import check_facts

FLOOR = 0.3  # of the reference scale: no window has a smaller one
OUTLYING = (
    3.0  # usual windows: a reference measured on the data is no wider for the floor, as one glitch must not set it
)


def make_scaling(config: RunConfig, facts: DataFacts, train: Series) -> Scaling:
    """The units of a run, as far as they can be known without a ledger."""
    check_facts(facts, private=config.privacy is not None)
    for name in ("typical_level", "lower"):
        given = getattr(facts, name)
        if given is not None and len(given) != len(train.targets):
            raise UserError(
                f"{name}={given} is not one number per target ({len(train.targets)} targets); give one for each."
            )
    known = SOURCES.get(config.source) if config.scaling == "instance" else None
    level, scale = facts.typical_level, facts.typical_scale
    if known and scale is None:
        level, scale = known.typical_level, known.typical_scale
    if scale is not None:
        return _with_reference(config, train, level, scale, fit_scaling("public", train, level=level, scale=scale))
    if config.scaling == "instance" and config.privacy is not None:
        return fit_scaling("instance", train)
    measured = fit_scaling("nonprivate", train)
    scaling = _with_reference(config, train, measured.level, measured.scale, measured)
    if config.scaling != "instance":
        return scaling
    most = tuple(FLOOR * OUTLYING * one for one in window_spread(train, config.window, measured.scale))
    return replace(scaling, floor=tuple(map(min, scaling.floor, most)))


def window_spread(train: Series, window: int, otherwise: tuple[float, ...]) -> tuple[float, ...]:
    """The median standard deviation of windows of a meter that are not constant, by channel."""
    rows = np.arange(len(train)) - np.repeat(train.offsets[:-1], train.lengths)
    meters = np.repeat(np.arange(len(train.meters)), train.lengths)
    spread = pd.DataFrame(train.values.astype(np.float64)).groupby([meters, rows // window]).std(ddof=0)
    usual = spread.where(spread > 1e-8 * np.array(otherwise)).median()
    return tuple(float(one) for one in usual.fillna(pd.Series(otherwise)))


def _with_reference(
    config: RunConfig, train: Series, level: tuple[float, ...] | None, scale: tuple[float, ...], fixed: Scaling
) -> Scaling:
    """Instance units with this reference, or the reference itself for every window."""
    if config.scaling != "instance":
        return fixed
    plain = fit_scaling("instance", train, level=level, scale=scale)
    return replace(with_floors(plain), origin=fixed.origin)


def with_floors(scaling: Scaling) -> Scaling:
    """The floors of a window's scale where a reference (level, scale) of every channel is known:

        floor = FLOOR · scale,    relative floor = min(RELATIVE_FLOOR, floor / |level|)

    A share of a window's mean assumes that 0 means "nothing", as for a load. Where the reference level is far from 0 in
    units of its own scale (kelvin, hectopascal) zero is a convention: a tenth of 288 K would drown every daily cycle. So the
    relative floor is never more than the floor itself at the reference level.
    """
    floor = tuple(FLOOR * one for one in scaling.scale)
    shares = tuple(
        min(RELATIVE_FLOOR, one / abs(level)) if level else RELATIVE_FLOOR
        for one, level in zip(floor, scaling.level, strict=True)
    )
    return replace(scaling, floor=floor, relative_floor=shares)
