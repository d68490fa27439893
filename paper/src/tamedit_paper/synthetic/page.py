"""The page of synthetic homes: what it must show, with verdicts, and the fidelity tables. All of it comes from the results."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from tamedit.evaluation.fidelity.measures import MEASURES, Measure
from tamedit.evaluation.fidelity.side_by_side import REAL
from tamedit.evaluation.intervals import OverSeeds, over_seeds
from tamedit.figures.fleet_figures import fleet_shapes, fleet_weeks
from tamedit.files import write_text
from tamedit.formatting import significant
from tamedit_paper.curve.tables import markdown_rows
from tamedit_paper.curve.targets import MET, MISSED, NOT_YET, Target, tally, target_table
from tamedit_paper.synthetic.cells import EPSILONS, SEEDS, Owned, SyntheticCell, cells
from tamedit_paper.synthetic.measured import (
    EVOLUTION,
    MARGINALS,
    MODEL,
    OTHERS,
    SIMULATOR,
    START,
    USUAL,
    generated,
    homes_of,
    load,
    place_of,
)

PAGE, NOTES, FOLDER = "synthetic.md", "synthetic-notes.md", "synthetic"
PICTURES = {"shapes.png": fleet_shapes, "weeks.png": fleet_weeks}
OWNED: dict[Owned, str] = {"week": "per home-week", "series": "per whole home"}
AUTOCORRELATIONS = ("autocorrelation_step", "autocorrelation_day")
DURATIONS = tuple(one.name for one in MEASURES if one.name.startswith("duration"))
Column = dict[str, list[float]]  # measure → a number for each seed
LEAKS = {"closer": "weeks closer to a training home", "auc": "membership, AUC"}  # alarms with a range of chance

INTRODUCTION = f"""# Synthetic homes beside real ones

Made by `tamedit reproduce synthetic` from the results under `paper/results/`; do not edit (notes by hand: `paper/docs/{NOTES}`).
The data are 254 real homes (`ideal`): 200 to train on, 54 held out. {USUAL.homes} homes are generated for {USUAL.days} days
from {START}, and compared over the same dates with {{compared}} of the 54; the others have no reading in these dates.
[What each measure means](../../docs/fidelity.md), [how homes are made](../../docs/synthetic.md). Numbers are means over seeds,
± the half-width of a 95 % t-interval.

    tamedit reproduce synthetic --seeds 3                          # the runs that are missing
    tamedit reproduce synthetic --tables --out paper/docs          # this page, without any run

- **model**: who the homes are was learned with noise (`--population`), how they live comes from the simulator. The
  network draws no hourly loads of homes unless asked (`--redraw`), so it is trained for one step here. ε pays for both: the
  noise multiplier of that release is 10 per home-week, and 10 / ε, at least 1.5, per whole home.
- **evolution**: private evolution of simulated homes (`--engine evolution`), all of ε.
- **noisy marginals**: hours drawn one by one from the levels and the histogram that the model's release has: what the same noise
  buys without any order in time.
- **simulator**: homes of `tamedit.simulate`. Four of its constants were moved towards summary figures of `ideal` by hand.
- **other real homes**: the homes that were trained on, themselves. The ceiling: nobody can expect to come closer.
- The noise is reproducible, so these runs carry no guarantee: they are experiments. δ = 1e-5.
"""

PICTURED = f"""![Held-out real homes and synthetic ones: daily profile, load duration curve, levels]({FOLDER}/shapes.png)

![A week of some held-out real homes, and of some synthetic ones]({FOLDER}/weeks.png)

Held-out real homes and those of the model at ε = 8 per home-week, the first seed.
"""
RULES = f"""A limit is compared with the mean over {SEEDS} seeds. *The ceiling* is what other real homes have. *Better than the
simulator*: closer to the real homes' number, to 0, or to one half, whichever is best for the measure; both are means over seeds.
"""
COUNTED = f"""In how many of {len(MEASURES)} measures the first is closer to the real homes than the second, by the same rule.
Measures depend on one another, and a count has no interval: a difference of one or two says nothing.
"""
ALARMS = """Of the homes of *model*, against the homes that were trained on and the held-out ones
([what they are](../../docs/fidelity.md#leak-alarms)); means over seeds, with the range of chance. Homes were not held out by a
coin, so the bound on ε of a whole home is an indication. An alarm shows a leak, silence shows nothing.
"""


class Results:
    """What is stored, by cell, column and measure."""

    def __init__(self, folder: Path, fleet: str = "ideal") -> None:
        self.found: dict[str, list[dict[str, Any]]] = {}
        for cell in cells(fleet):  # type: ignore[arg-type]
            made = [load(place_of(cell, seed, folder)) for seed in range(SEEDS)]
            self.found[cell.name] = [one for one in made if one is not None]

    def column(self, cell: SyntheticCell, name: str) -> Column:
        """Every measure of a column that has a number, by seed."""
        seeds = [one["scores"][name] for one in self.found.get(cell.name, []) if name in one["scores"]]
        found: Column = {}
        for one in MEASURES:
            values = [scores[one.name]["value"] for scores in seeds if one.name in scores]
            known = [value for value in values if value is not None]
            if known and len(known) == len(values):
                found[one.name] = known
        return found

    def alarms(self, cell: SyntheticCell) -> list[dict[str, Any]]:
        """The leak alarms of a cell, by seed."""
        return [one["alarms"] for one in self.found.get(cell.name, []) if one.get("alarms")]

    @property
    def compared(self) -> str:
        """How many held-out homes have readings in the dates that are compared."""
        counts = {one["homes"][REAL] for each in self.found.values() for one in each if REAL in one.get("homes", {})}
        return " or ".join(map(str, sorted(counts))) or "–"

    @property
    def seeds(self) -> int:
        return sum(len(one) for one in self.found.values())


FREE, EIGHT = SyntheticCell(free=True), SyntheticCell(unit="week", epsilon=8.0)
WITHOUT = SyntheticCell()


def write_synthetic(folder: Path, out: Path) -> list[Path]:
    """Write `out`/synthetic.md from the results; notes written by hand are copied unchanged, if there are any."""
    notes = out / NOTES
    write_text(out / PAGE, page(Results(folder), notes.read_text(encoding="utf-8") if notes.exists() else ""))
    return [out / PAGE]


def draw(out: Path, work: Path) -> list[Path]:
    """Pictures of homes at ε = 8 per home-week beside the held-out ones, the first seed; they are made once."""
    places = [out / FOLDER / name for name in PICTURES]
    if not all(place.is_file() for place in places):
        homes = homes_of("ideal", USUAL)
        made, _ = generated(EIGHT, homes, 0, work / "pictures")
        for place, picture in zip(places, PICTURES.values(), strict=True):
            place.parent.mkdir(parents=True, exist_ok=True)
            picture(homes.held_out, made, place)
    return places


def page(results: Results, notes: str) -> str:
    asked = list(targets(results))
    introduction = INTRODUCTION.replace("{compared}", results.compared)
    parts = [introduction, PICTURED, f"So far {results.seeds} of {len(cells()) * SEEDS} runs are there.\n"]
    parts += [f"## What it must show\n\n{tally(asked)}\n\n{RULES}\n{target_table(asked)}"]
    parts += [f"## Which is closer to real homes\n\n{COUNTED}\n{_counts(results)}"]
    for unit, owned in OWNED.items():
        parts += [f"## ε {owned}\n", _table(results, unit)]
    parts += ["## Without noise, and without any budget\n", _rows(_last(results))]
    parts += [f"## Leak alarms\n\n{ALARMS}\n{_alarms(results)}"]
    return "\n".join([*parts, *([f"## What was found\n\n{notes.strip()}\n"] if notes.strip() else [])])


def targets(results: Results) -> Iterator[Target]:
    """What the issue of synthetic homes asks of ε = 8, in its order."""
    own, real, others = results.column(EIGHT, MODEL), results.column(EIGHT, REAL), results.column(FREE, OTHERS)
    for name in AUTOCORRELATIONS:
        yield _within(f"{_label(name)} within 0.05 of the real homes", own, real, others, name, 0.05)
    yield _within("deviation of log levels within 15 %", own, real, others, "log_level_sd", 0.15, relative=True)
    for name in DURATIONS:
        yield _within(f"{_label(name)} within 10 %", own, real, others, name, 0.10, relative=True)
    yield _at_most("exact zeros: fewer than 1 % beyond the real homes", own, others, "zeros", 0.01, real)
    yield _at_most("discriminative accuracy below 0.75", own, others, "discriminative", 0.75)
    said = "predictive score within 10 % of training on real homes"
    yield _within(said, own, real, others, "predictive", 0.10, relative=True)
    yield _beats(results, SyntheticCell(unit="series", epsilon=8.0))


def _label(name: str) -> str:
    return next(one.label for one in MEASURES if one.name == name)


def _week(said: str) -> str:
    return f"ε = 8 per home-week, model: {said}"


def _enough(*columns: Column, name: str) -> bool:
    return all(len(one.get(name, [])) >= SEEDS for one in columns)


def _within(
    said: str, own: Column, real: Column, others: Column, name: str, limit: float, *, relative: bool = False
) -> Target:
    if not _enough(own, real, name=name):
        return Target(_week(said), "–", NOT_YET)
    found, wanted = fmean(own[name]), fmean(real[name])

    def shown(value: float) -> str:
        return significant(value) + (f" ({value / wanted - 1:+.0%})" if relative else "")

    apart = abs(found - wanted) / (abs(wanted) if relative else 1.0)
    ceiling = f"; ceiling {shown(fmean(others[name]))}" if others.get(name) else ""
    numbers = f"{shown(found)} against {significant(wanted)}{ceiling}"
    return Target(_week(said), numbers, MET if apart <= limit else MISSED)


def _at_most(said: str, own: Column, others: Column, name: str, limit: float, real: Column | None = None) -> Target:
    if not _enough(own, *([] if real is None else [real]), name=name):
        return Target(_week(said), "–", NOT_YET)
    base = fmean(real[name]) if real else 0.0
    found = fmean(own[name]) - base
    ceiling = f"; ceiling {significant(fmean(others[name]) - base)}" if others.get(name) else ""
    return Target(_week(said), f"{significant(found)}{ceiling}", MET if found < limit else MISSED)


def _beats(results: Results, cell: SyntheticCell) -> Target:
    said = "ε = 8 per whole home: better than the simulator in most measures"
    better = {name: closer(results, cell, name, SIMULATOR) for name in (MODEL, EVOLUTION)}
    known = [one for one in better.values() if one is not None]
    if len(known) < len(better):
        return Target(said, "–", NOT_YET)
    verdict = MET if max(known) > len(MEASURES) / 2 else MISSED
    return Target(said, "; ".join(f"{name}: {one} of {len(MEASURES)}" for name, one in better.items()), verdict)


def closer(results: Results, cell: SyntheticCell, name: str, than: str) -> int | None:
    """In how many measures a column of a cell is closer to what is best than another one; None if seeds are missing."""
    own, real = results.column(cell, name), results.column(cell, REAL)
    other = results.column(FREE if than == SIMULATOR else cell, than)
    if not all(_enough(own, other, name=one.name) for one in MEASURES):
        return None
    return sum(distance(one, own, real) < distance(one, other, real) for one in MEASURES)


def _counts(results: Results) -> str:
    pairs = ((MODEL, SIMULATOR), (EVOLUTION, SIMULATOR), (MARGINALS, SIMULATOR), (MODEL, EVOLUTION), (EVOLUTION, MODEL))
    rows = []
    for cell in _trained():
        found = [closer(results, cell, *pair) for pair in pairs]
        rows.append([_named(cell), *("–" if one is None else str(one) for one in found)])
    return markdown_rows(("ε", *(f"{name}, than {than}" for name, than in pairs)), rows)


def _trained() -> list[SyntheticCell]:
    private = [SyntheticCell(unit=unit, epsilon=epsilon) for unit in OWNED for epsilon in sorted(EPSILONS)]
    return [*private, WITHOUT]


def _named(cell: SyntheticCell) -> str:
    return "∞" if cell.epsilon is None else f"{cell.epsilon:g} {OWNED[cell.unit]}"


def _alarms(results: Results) -> str:
    found = {_named(cell): results.alarms(cell) for cell in _trained()}
    rows = []
    for name, said in LEAKS.items():
        cells_ = [[_mean([one[name] for one in seeds]), *_ends(seeds, f"{name}_expected")] for seeds in found.values()]
        rows.append([said, *("{} ({} to {})".format(*one) for one in cells_)])
    rows.append(["lower bound on ε", *(_mean([one["epsilon_lower"] for one in seeds]) for seeds in found.values())])
    rows.append(
        ["seeds with an alarm", *(f"{sum(one['alarm'] for one in seeds)} of {len(seeds)}" for seeds in found.values())]
    )
    return markdown_rows(("alarm", *(f"ε = {name}" for name in found)), rows)


def _ends(seeds: Sequence[Mapping[str, Any]], name: str) -> list[str]:
    return [_mean([one[name][end] for one in seeds]) for end in (0, 1)]


def _mean(values: Sequence[float]) -> str:
    return significant(fmean(values) if values else None)


def distance(measure: Measure, own: Mapping[str, Sequence[float]], real: Mapping[str, Sequence[float]]) -> float:
    """How far the mean over seeds lies from what is best."""
    best = {"real": fmean(real[measure.name]) if measure.best == "real" else 0.0, "least": 0.0, "half": 0.5}[
        measure.best
    ]
    return abs(fmean(own[measure.name]) - best)


def _table(results: Results, unit: Owned) -> str:
    columns: dict[str, Column] = {}
    for epsilon in sorted(EPSILONS):
        cell = SyntheticCell(unit=unit, epsilon=epsilon)
        columns |= {f"{name}, ε = {epsilon:g}": results.column(cell, name) for name in (MODEL, EVOLUTION, MARGINALS)}
    eight = SyntheticCell(unit=unit, epsilon=8.0)
    return _rows({"real homes": results.column(eight, REAL), **columns, SIMULATOR: results.column(FREE, SIMULATOR)})


def _last(results: Results) -> dict[str, Column]:
    return {
        "real homes": results.column(FREE, REAL),
        **{f"{name}, ε = ∞": results.column(WITHOUT, name) for name in (MODEL, EVOLUTION, MARGINALS)},
        **{name: results.column(FREE, name) for name in (SIMULATOR, OTHERS)},
    }


def _rows(columns: Mapping[str, Column]) -> str:
    rows = []
    for one in MEASURES:
        cells_ = [_cell(over_seeds(column[one.name])) if column.get(one.name) else "–" for column in columns.values()]
        best = {"real": "", "least": " ↓", "half": " (½)"}[one.best]
        rows.append([one.label + best, *cells_])
    return markdown_rows(("measure", *columns), rows)


def _cell(value: OverSeeds) -> str:
    if value.half is None or value.half < 1e-6 * abs(value.mean):  # alike for every seed
        return significant(value.mean)
    return f"{significant(value.mean)} ± {significant(value.half, 1)}"
