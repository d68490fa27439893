"""A request for synthetic homes, checked; and the homes as one long table, in memory or written group by group."""

import json
import math
import shutil
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from jaxtyping import Float

from tamedit.data.simulate import INTERVALS
from tamedit.errors import UserError
from tamedit.files import write_text, write_with
from tamedit.privacy.population import Population
from tamedit.runs.artifact import ModelSpec
from tamedit.runs.simulated_pool import minutes_of, simulated_population
from tamedit.statics import Given, chosen, columns_of, listed, words_of
from tamedit.tasks.fleet import GROUP, Fleet, marks_of

START, DAYS = "2024-01-01", 365  # if not given
EARLIEST = pd.Timestamp("1700-01-01")
MARGIN = 400  # days after a home that are simulated as well: a year, and a window


def asked(
    spec: ModelSpec,
    homes: int,
    start: str | date | np.datetime64 | None,
    days: int | None,
    level: tuple[float, float] | None,
    redraw: bool | None,
    seed: int,
    static: Given | None = None,
) -> tuple[Fleet, Population]:
    """The request as a `Fleet`, and who the homes are; or one sentence that says what is wrong with it."""
    homes, first, days = checked(homes, start, days, (*spec.targets, *(name for name, _ in spec.static)))
    if spec.varying:
        raise UserError(f"This model needs the covariates {', '.join(spec.varying)}, so it cannot generate homes.")
    if 86400 % spec.frequency_seconds:
        raise UserError("Homes are made of whole days, and this model's rows do not divide a day; use `count`.")
    if level is not None and not 0 <= level[0] < level[1] < math.inf:
        raise UserError(
            f"level={level} is not a range; give the least and the largest yearly total, such as (3000, 4000)."
        )
    known = len(spec.targets) == 1 and spec.frequency_seconds / 60 in INTERVALS
    fleet = Fleet(
        homes=homes,
        start=first,
        days=days,
        seed=seed,
        step_seconds=spec.frequency_seconds,
        length=spec.network.length,
        period=spec.examples.period,
        calendar=spec.calendar,
        yearly=level,
        redraw=not known if redraw is None else redraw,
        static=spec.static,
        wanted=() if static is None else _wanted(spec, static),
    )
    return fleet, spec.population or _stated_population(spec)


def _wanted(spec: ModelSpec, static: Given) -> tuple[tuple[str, str], ...]:
    """The categories that all homes are to have, if this model knows such homes."""
    if not spec.static:
        raise UserError("This model knows no attributes of homes; leave out `static`, or train with `static`.")
    found = chosen(spec.static, static)
    population = spec.population
    if population is None or not population.static:
        raise UserError(
            f"This model did not learn who has which of {listed(spec.static)}; train it with `population`, `lower` and "
            "`upper`, or leave out `static`."
        )
    shares = dict(zip(columns_of(spec.static), population.mean[-len(columns_of(spec.static)) :], strict=True))
    for name, category in found:
        if shares[f"{name}={category}"] <= 0.0:
            raise UserError(f"Homes with {name}={category} are too rare in this model's population; ask for others.")
    return found


def checked(
    homes: int, start: str | date | np.datetime64 | None, days: int | None, targets: tuple[str, ...]
) -> tuple[int, pd.Timestamp, int]:
    """How many homes, their first day and their days, whatever makes them; or one sentence that says what is wrong."""
    days = DAYS if days is None else days
    for name, number in (("homes", homes), ("days", days)):
        if not isinstance(number, int | np.integer) or number < 1:
            raise UserError(f"{name}={number!r} must be a whole number of at least 1.")
    if clash := {"home", "time"} & {*targets}:
        raise UserError(f"The column {min(clash)!r} has the name of a column of the result; rename it and train again.")
    first = pd.to_datetime(START if start is None else start, errors="coerce")
    if not isinstance(first, pd.Timestamp):
        raise UserError(f"start={start!r} is not a date; write it as 2024-01-31.")
    first = first.tz_localize(None)
    if first < EARLIEST:
        raise UserError(f"start={first.date()} is too early; the first day that can be asked for is {EARLIEST.date()}.")
    days_left = (pd.Timestamp.max.date() - first.date()).days - MARGIN
    if days > days_left:
        raise UserError(
            f"{days:,} days from {first.date()} reach too far; ask for at most {max(days_left, 0):,} of them."
        )
    return int(homes), first, int(days)


def _stated_population(spec: ModelSpec) -> Population:
    """Simulated homes around the level of the model's units, for a model that did not learn who the homes are."""
    level, origin = tuple(spec.scaling["level"]), spec.scaling["origin"]
    if origin == "none" or not spec.non_negative or min(level) <= 0:
        raise UserError(
            "This model does not know who the homes are, so it has no levels to generate homes with; train it with "
            "`population`, `lower` and `upper` (learned with noise), or with `non_negative`, `typical_level` and "
            "`typical_scale` (public facts), or use `count` for single windows."
        )
    return simulated_population(
        level, minutes_of(spec.frequency_seconds), spec.network.length, spec.examples.period, origin
    )


def homes_table(
    fleet: Fleet,
    groups: Iterable[Float[np.ndarray, "H T K"]],
    targets: tuple[str, ...],
    first: int = 0,
    population: Population | None = None,
) -> pd.DataFrame:
    """Homes, long: home, time, targets and, if the model knows any, attributes; `first`: the number of the first home."""
    values = np.concatenate(list(groups))
    frame = pd.DataFrame(values.reshape(-1, values.shape[2]), columns=list(targets))
    frame.insert(0, "time", np.tile(fleet.times.to_numpy(), len(values)))
    digits = len(str(fleet.homes - 1))
    names = [f"home_{number:0{digits}d}" for number in range(first, first + len(values))]
    frame.insert(0, "home", np.repeat(np.array(names), fleet.rows))
    if fleet.static and population is not None:
        marks = marks_of(fleet, population, np.arange(first, first + len(values)))
        for name, words in words_of(fleet.static, marks).items():
            frame[name] = np.repeat(np.array(words, dtype=object), fleet.rows)
            frame[name] = frame[name].astype("string")  # of one type in every group, also where nothing is known
    return frame


def continued_table(homes: Iterable[tuple[str, pd.DataFrame]]) -> pd.DataFrame:
    """Homes by name, long: home, time, targets and attributes."""
    named = [(name or "home_0", frame) for name, frame in homes]
    whole = pd.concat([frame for _, frame in named], ignore_index=True)
    whole.insert(0, "home", np.repeat([name for name, _ in named], [len(frame) for _, frame in named]))
    return whole


def write_homes(
    fleet: Fleet,
    targets: tuple[str, ...],
    make: Callable[[int], Iterator[Float[np.ndarray, "H T K"]]],
    out: Path,
    model: str,
    progress: Callable[[int, int], None],
    population: Population | None = None,
) -> None:
    """Write the fleet to `out`, group by group. Groups lie beside it until the last is made, so a stopped call is continued.

    `make(skip)` yields the groups after the first `skip`. `model` names the weights: other groups are not continued.
    """
    parts = out.with_name(f".{out.name}.parts")
    request = json.dumps({"fleet": repr(fleet), "model": model, "targets": targets, "form": out.suffix.lower()})
    place = parts / "request.json"
    same = place.is_file() and place.read_text(encoding="utf-8") == request
    above = next(folder for folder in out.absolute().parents if folder.exists())
    needed, free = (
        fleet.homes * fleet.rows * row_bytes(out, len(targets), len(fleet.static)),
        shutil.disk_usage(above).free,
    )
    if needed > free + (sum(one.stat().st_size for one in parts.iterdir()) if same else 0):
        raise UserError(
            f"{fleet.homes:,} homes of {fleet.days:,} days need about {needed / 1e9:,.3g} GB, and {above} has "
            f"{free / 1e9:,.3g} GB left; ask for fewer homes or days."
        )
    places = [parts / f"{group}.parquet" for group in range(fleet.groups)]
    done = next((group for group, one in enumerate(places) if not (same and one.is_file())), fleet.groups)
    for group, values in enumerate(make(done), start=done):
        if not same:  # a request that cannot be met leaves nothing behind, and not the end of an earlier one either
            shutil.rmtree(parts, ignore_errors=True)
            write_text(place, request)
            same = True
        frame = homes_table(fleet, [values], targets, group * GROUP, population)
        write_with(places[group], lambda path, frame=frame: frame.to_parquet(path, index=False))  # type: ignore[misc]
        progress(min((group + 1) * GROUP, fleet.homes), fleet.homes)
    write_with(out, lambda path: _joined(places, path))
    shutil.rmtree(parts)


def row_bytes(out: Path, targets: int, attributes: int = 0) -> int:
    """About how much a row takes: twice as Parquet (in its part and in the whole), or once and once as text."""
    return 8 * targets + 8 if out.suffix.lower() == ".parquet" else 16 * (targets + attributes) + 31


def _joined(places: list[Path], out: Path) -> None:
    if out.suffix.lower() == ".parquet":
        with pq.ParquetWriter(out, pq.read_schema(places[0])) as writer:
            for place in places:
                writer.write_table(pq.read_table(place))
        return
    for number, place in enumerate(places):
        table: pa.Table = pq.read_table(place)
        table.to_pandas().to_csv(out, mode="a" if number else "w", header=not number, index=False)
