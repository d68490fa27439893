"""The tasks that a model is measured at: what methods may see of a window, and which cells count.

    imputation       a random 10 to 50 % of the steps is hidden
    forecast         the last season is hidden (or as many steps as asked for), at most three quarters of the window
    cold_start_24    a new meter: only one season is known (24 steps of hourly data), and the next one is forecast
    cold_start_48    the same with two known seasons
    long_gap         2 to 5 seasons in a row are missing

Seasons are the model's own (`period`), so the tasks exist for any series; the numbers 24 and 48 in two names are those of hourly
data. `observed` and `scored` need not complement each other: in a cold start, what is older than the known seasons is
treated as missing. No method sees it, and no score counts it. A mask is a function of the window's own stream.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, UInt64
from torch import Tensor

from tamedit.errors import UserError
from tamedit.windows.masks import draw_masks, known_before_last, long_gap, task_config

GAP = (2, 5)  # seasons of a long gap


@dataclass(frozen=True)
class Layout:
    """A window: its steps, the steps of a season, and the steps that `forecast` hides."""

    length: int
    period: int
    horizon: int


@dataclass(frozen=True, eq=False)
class Question:
    """`observed` is what methods see. `scored` is what counts."""

    observed: Bool[Tensor, "B L *K"]
    scored: Bool[Tensor, "B L *K"]

    @property
    def missing(self) -> Bool[Tensor, "B L *K"]:
        """Neither seen nor counted."""
        return ~self.observed & ~self.scored

    def expand(self, channels: int) -> "Question":
        """(B, L) → (B, L, K): the same for all channels."""
        return Question(*(part[:, :, None].expand(-1, -1, channels) for part in (self.observed, self.scored)))


Ask = Callable[[UInt64[np.ndarray, " B"], Layout], Question]


@dataclass(frozen=True)
class Task:
    """One task: its name, what people call it, what it hides in plain words, and its masks."""

    name: str
    label: str
    words: Callable[[Layout], str]
    ask: Ask
    least_seasons: int = 0  # that the window must hold
    paths: bool = True  # whether what counts is one stretch, so that its total and its peak mean something

    def missing_seasons(self, layout: Layout) -> str | None:
        """Why a window cannot be asked this; None if it can."""
        least = self.least_seasons * layout.period
        if layout.length >= least:
            return None
        return (
            f"it needs a window of {self.least_seasons} seasons ({least} steps), and the model's window has "
            f"{layout.length} steps"
        )


def _hidden_is_scored(observed: Bool[Tensor, "B L"]) -> Question:
    return Question(observed, ~observed)


def _imputation(keys: UInt64[np.ndarray, " B"], layout: Layout) -> Question:
    return _hidden_is_scored(draw_masks(keys, layout.length, task_config("random")))


def _forecast(keys: UInt64[np.ndarray, " B"], layout: Layout) -> Question:
    return _hidden_is_scored(draw_masks(keys, layout.length, task_config("block", layout.horizon)))


def _cold_start(seasons: int) -> Ask:
    def ask(keys: UInt64[np.ndarray, " B"], layout: Layout) -> Question:
        observed = known_before_last(len(keys), layout.length, layout.period, seasons)
        last = torch.arange(layout.length) >= layout.length - layout.period
        return Question(observed, last.expand_as(observed))

    return ask


def _long_gap(keys: UInt64[np.ndarray, " B"], layout: Layout) -> Question:
    return _hidden_is_scored(long_gap(keys, layout.length, layout.period, GAP))


def _gap_words(layout: Layout) -> str:
    most = min(GAP[1], layout.length // layout.period - 1)
    few, many = GAP[0] * layout.period, most * layout.period
    return f"{few} steps in a row hidden" if few == many else f"{few} to {many} steps in a row hidden"


def _known_words(seasons: int) -> Callable[[Layout], str]:
    return lambda layout: f"only {seasons * layout.period} steps known, the next {layout.period} forecast"


TASKS = {
    task.name: task
    for task in (
        Task("imputation", "gap filling", lambda layout: "random 10–50 % hidden", _imputation, paths=False),
        Task("forecast", "forecast", lambda layout: f"last {layout.horizon} steps hidden", _forecast),
        Task("cold_start_24", "cold start, one season known", _known_words(1), _cold_start(1), least_seasons=2),
        Task("cold_start_48", "cold start, two seasons known", _known_words(2), _cold_start(2), least_seasons=3),
        Task("long_gap", "long gap", _gap_words, _long_gap, least_seasons=GAP[0] + 1),
    )
}
NAMES = tuple(TASKS)
TWO = ("imputation", "forecast")  # what every window can be asked


def chosen_tasks(names: Iterable[str], layout: Layout) -> tuple[list[Task], dict[str, str]]:
    """The tasks of these names, each once and in the table's order; and why some of them are left out."""
    wanted = list(dict.fromkeys(names))
    unknown = [name for name in wanted if name not in TASKS] if wanted else [""]
    if unknown:
        raise UserError(f"tasks={unknown[0]!r} is not a task; name one or more of {', '.join(TASKS)}.")
    reasons = {name: TASKS[name].missing_seasons(layout) for name in NAMES if name in wanted}
    kept = [TASKS[name] for name, reason in reasons.items() if reason is None]
    left_out = {name: reason for name, reason in reasons.items() if reason is not None}
    if not kept:
        said = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
        raise UserError(f"The model's window is too short for these tasks ({said}); name imputation or forecast.")
    return kept, left_out
