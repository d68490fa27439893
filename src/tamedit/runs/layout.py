"""The examples of a private run, and how many of them each unit touches."""

import math
from dataclasses import dataclass, replace

import numpy as np

from tamedit.data.calendar import network_covariates
from tamedit.data.series import Series
from tamedit.errors import UserError
from tamedit.privacy.counting import Count
from tamedit.privacy.settings import Privacy
from tamedit.privacy.statistics import TOGETHER
from tamedit.privacy.units import Contribution, Layout, contributions
from tamedit.runs.config import RunConfig
from tamedit.windows.cut import Windows, cut, cut_blocks, trimmed, with_readings

CLOCK_CHANGES = (
    "days and weeks by the clock after it changes: units are 24 and 168 hours long and begin at the hour that was midnight when "
    "the study began, so a day by the clock may then lie in two of them"
)


@dataclass(frozen=True, eq=False)
class PrivateLayout:
    """Computed once for a run: the proposal, the budget and training look at the same examples.

    Units are counted on the layout with all examples, because it is private which ones were dropped for missing readings.
    """

    windows: Windows  # the examples with enough readings
    stride: int
    kind: str  # of layout: blocks or overlapping
    unit: str
    accounted: dict[str, Contribution]
    refused: dict[str, str]  # units that cannot be accounted, and why
    count: Count  # public, unlike the number of `windows`

    def contribution(self) -> Contribution:
        """What the run's unit touches, or one sentence why that cannot be said."""
        if self.unit not in self.accounted:
            other = f"The unit {self.unit!r} cannot be accounted here; choose {', '.join(self.accounted)}."
            raise UserError(self.refused.get(self.unit, other))
        return self.accounted[self.unit]

    def examples(self, config: RunConfig) -> Windows:
        """The examples with all that the network sees of them, a crop of each if the run says so."""
        found = replace(self.windows, series=network_covariates(self.windows.series, config.calendar))
        return found if config.crop is None else replace(found, length=config.crop)

    def refuse_single(self) -> None:
        """One sentence if there is room for a single example only: nothing could be learnt from it in private."""
        if self.count.examples >= 2:
            return
        rows = self.windows.length if self.windows.spans is None else int(self.windows.spans[0])
        whole = (
            f"whole {self.unit}" if rows == rows_of_unit(self.windows.series, self.unit) else f"block of {rows} rows"
        )
        raise UserError(
            f"The training part has room for {self.count.examples} {whole}, but private training needs at least 2; give more "
            "data, or a smaller `unit`."
        )

    @property
    def meters(self) -> int:
        """How many meters have examples, exactly: as private as the number of `windows`."""
        return len(set(self.windows.meter_of().tolist()))

    @property
    def definitions(self) -> dict[str, str]:
        """What this run means by each unit. Only runs that mean the same by it can be added up (`privacy/entries.py`).

        The columns that a run reads are no part of it: a unit is all that the table says of that meter and that time.
        """
        series, zone = self.windows.series, self.windows.series.times.tz
        begin = series.times[0] if len(series) else None
        meters = f"meters by column {series.id_name!r}" if series.layout == "long" else "the table is one meter"
        clock = f"by the clock of {series.clock}"
        if zone is not None and begin is not None:
            rounded = ", " + series.clock if series.clock != "the stamps" else ""
            clock = f"by {zone}, from UTC{begin:%z} on{rounded}"
        examples = (
            f"{self.kind} for {self.unit}, {self.windows.length} rows of {series.spoken_step}, every {self.stride}"
        )
        timed = f"{meters}, {clock}"
        return {
            "window": f"{examples} from {begin}, {meters}",
            "record": meters,
            "day": timed,
            "week": timed,
            "series": meters,
        }

    def check(self, train: Series, config: RunConfig) -> None:
        """The layout of other examples would be accounted wrongly: that is a mistake of the program."""
        made, privacy = (self.windows.length, self.stride, self.kind, self.unit), config.privacy
        wanted = privacy and (config.window, config.stride, privacy.layout, privacy.unit)
        if self.windows.series is not train or made != wanted:
            raise ValueError("this layout was made for another run")


def layout_of(train: Series, config: RunConfig) -> PrivateLayout | None:
    """The layout of a private run on this training part; None without privacy."""
    privacy = config.privacy
    return None if privacy is None else private_layout(train, config.window, config.stride, privacy)


def private_layout(series: Series, length: int, stride: int, privacy: Privacy) -> PrivateLayout:
    """The layout of the training part `series`, from windows of `length` rows."""
    if series.static and privacy.unit != "series":
        raise UserError(
            "`static` says something of a meter as a whole, which a privacy unit smaller than a meter does not cover; take "
            "unit='series', or leave out `static`."
        )
    check_length(series, "training", length)
    every = _every_example(series, length, stride, privacy)
    accounted, refused = _account_units(every, stride, privacy)
    most = Count(examples=len(every), meters=len(series.meters))
    kept = with_readings(trimmed(every) if whole_meters(privacy) else every)
    return PrivateLayout(kept, stride, privacy.layout, privacy.unit, accounted, refused, most)


def check_length(part: Series, name: str, window: int) -> None:
    """One sentence if no meter of a part of the split is as long as a window."""
    longest = int(part.lengths.max(initial=0))
    if longest < window:
        raise UserError(
            f"The {name} part has {longest} rows at most and a window needs {window}; give a longer series or a shorter "
            "`window`."
        )


def crop_of(window: int, period: int, privacy: Privacy) -> int | None:
    """A season less than a window where a block holds just one, so that crops begin at every hour and not at midnight alone."""
    whole = privacy.layout == "blocks" and privacy.unit != "series"
    return window - period if whole and window >= 4 * period and period > 1 else None


def rows_of_unit(series: Series, unit: str) -> int | None:
    """Rows in a day or a week; None where that is not a whole number or the unit has no fixed length."""
    days = {"day": 1, "week": 7}.get(unit)
    if days is None:
        return None
    rows = days * 86_400 / series.frequency.total_seconds()
    return int(rows) if rows >= 1 and float(rows).is_integer() else None


def week_phase(series: Series) -> np.ndarray:
    """(M,) rows between Monday 00:00 and each meter's first row, on the clock of the stamps."""
    first = series.times[series.offsets[:-1]]
    seconds = first.dayofweek * 86_400 + first.hour * 3600 + first.minute * 60 + first.second
    return np.asarray(seconds / series.frequency.total_seconds(), dtype=np.float64).astype(np.int64)


def clock_changes(series: Series) -> bool:
    """Whether the clock of the stamps changes within the series (summer time)."""
    if series.times.tz is None or rows_of_unit(series, "day") in (None, 1):
        return False
    times = series.distinct_times
    apart = times.tz_localize(None) - times.tz_convert("UTC").tz_localize(None)
    return bool(np.any(apart != apart[0]))


def _every_example(series: Series, length: int, stride: int, privacy: Privacy) -> Windows:
    """Blocks that contain whole units where possible, or the paper's overlapping windows; with readings or without."""
    if privacy.layout == "overlapping":
        return cut(series, length, stride, 0.0)
    if privacy.unit == "series":
        return cut_blocks(series, length, None, least_present=0.0)
    unit_rows = rows_of_unit(series, privacy.unit)
    if unit_rows is None:
        return cut_blocks(series, length, length, least_present=0.0)
    block = max(unit_rows, -(-length // unit_rows) * unit_rows)  # whole units, at least a window
    return cut_blocks(series, length, block, align=unit_rows, phase=week_phase(series), least_present=0.0)


def _account_units(windows: Windows, stride: int, privacy: Privacy) -> tuple[dict[str, Contribution], dict[str, str]]:
    """How many examples each unit touches, and which units cannot be accounted."""
    series = windows.series
    day = rows_of_unit(series, "day")
    blocks = privacy.layout == "blocks"
    return contributions(
        Layout(
            kind="blocks" if blocks else "overlapping",
            starts=windows.starts,
            length=windows.spans if windows.spans is not None else windows.length,
            offsets=series.offsets,
            steps_per_day=day,
            week_phase=week_phase(series) if day else None,
            gaps="kept",
            stride=None if blocks else stride,
            reach=series.reach,
        )
    )


def whole_meters(privacy: Privacy) -> bool:
    """Whether an example is a meter without the rows at its ends that hold no reading: how many are left is private."""
    return privacy.unit == "series" and privacy.layout == "blocks"


def public_rows(windows: Windows, privacy: Privacy | None) -> int:
    """Rows of an example, or more: a number that no reading changes. A whole meter has at most the rows of the study."""
    if privacy is not None and whole_meters(privacy):
        return int(windows.series.lengths.max())
    return windows.length if windows.spans is None else int(windows.spans[0])


class WholeExamples:
    """(N, length, K) every row of every example, NaN behind the shorter ones; gathered when they are asked for.

    `length`: `public_rows`. Padded to the longest example, one unit would reach the rounding of another one's sums.
    """

    def __init__(self, windows: Windows, length: int) -> None:
        self.windows = windows
        self.spans = windows.spans if windows.spans is not None else np.full(len(windows), windows.length)
        self.shape = len(windows), length, len(windows.series.targets)

    def __getitem__(self, some: slice) -> np.ndarray:
        series, inside = self.windows.series, np.arange(self.shape[1])
        rows = self.windows.starts[some, None] + inside
        values = series.values[np.minimum(rows, len(series) - 1)].astype(np.float64)
        found: np.ndarray = np.where((inside < self.spans[some, None])[:, :, None], values, np.nan)
        return found


def whole_examples(windows: Windows, length: int) -> np.ndarray:
    """All of them at once."""
    return WholeExamples(windows, length)[:]


def gathered(windows: Windows, length: int) -> np.ndarray | WholeExamples:
    """All of them at once, or, if they are many, as they are asked for."""
    examples = WholeExamples(windows, length)
    return examples if math.prod(examples.shape) > TOGETHER else examples[:]
