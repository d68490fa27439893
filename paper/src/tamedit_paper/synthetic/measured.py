"""One seed of a cell: train, generate, measure. The result is one small JSON file, and the large ones are deleted."""

import json
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tamedit.data.loading import Data, load_split
from tamedit.data.reader import read
from tamedit.data.series import Series
from tamedit.data.simulate import Region, simulate
from tamedit.errors import UserError
from tamedit.evaluation.fidelity import fidelity_table, leak_alarms, simulated_homes
from tamedit.evaluation.fidelity.homes_grid import within
from tamedit.files import write_text
from tamedit.privacy.population import BINS, RATIOS, Population
from tamedit.privacy.settings import Privacy
from tamedit.runs.folder import PEOPLE
from tamedit.runs.request import TrainRequest
from tamedit.tasks.evolved_fleet import evolved_table
from tamedit.tasks.model import Model
from tamedit.training.requested import run_request
from tamedit_paper.grid.results import rounded
from tamedit_paper.synthetic.cells import SyntheticCell

START = "2017-07-03"  # a Monday; most homes of `ideal` were read in the year from here
LARGEST = 15.0  # public: no home takes more than this for an hour (kVA; a usual main fuse allows 18 to 23)
NO_NOISE = 1e-3  # noise multiplier that stands for none, in evolution
ELSEWHERE = Region(standby=1.6, habits=0.6, appliances=1.4, heating=1.5, heated=0.5, warmer=-3.0, later=1.5)
VERSION = 1
MODEL, EVOLUTION, MARGINALS = "model", "evolution", "noisy marginals"
SIMULATOR, OTHERS = "simulator", "other real homes"


class Effort(NamedTuple):
    """How much is generated and compared."""

    homes: int = 100
    days: int = 364
    resamples: int = 200
    simulated: tuple[int, int] = (200, 54)  # of `elsewhere`: homes to train on, and held out


USUAL = Effort()


class Homes(NamedTuple):
    """Where homes come from, those that were held out, and others of their kind, over the dates that are compared."""

    data: Data
    held_out: Series
    others: Series


@cache
def homes_of(fleet: str, effort: Effort) -> Homes:
    """The data of a cell. Of `ideal`, the other homes are those that are trained on, with all their readings."""
    begin = pd.Timestamp(START)
    if fleet == "ideal":
        series, split = load_split("ideal")
        others = series.select([series.meters.index(name) for name in split.train.meters])
        return Homes("ideal", within(split.test, begin, effort.days), within(others, begin, effort.days))
    counts = zip(effort.simulated, (3, 9), strict=True)
    made = [simulate(count, 24 * effort.days, START, seed, variety=0.3, region=ELSEWHERE) for count, seed in counts]
    return Homes(made[0], made[1], made[0])


def measure(cell: SyntheticCell, seed: int, results: Path, work: Path, effort: Effort = USUAL) -> Path:
    """Make the result of a cell and a seed, unless it is there."""
    place = place_of(cell, seed, results)
    if load(place) is not None:
        return place
    homes = homes_of(cell.fleet, effort)
    folder = work / cell.name / f"seed={seed}"
    candidates = _free(homes, seed, effort) if cell.free else _trained(cell, homes, seed, folder, effort)
    table = fidelity_table(homes.held_out, candidates, resamples=effort.resamples, seed=seed).to_dict()
    alarms = {} if cell.free else leak_alarms(candidates[MODEL], homes.others, homes.held_out, seed=seed).to_dict()
    found = {
        "cell": cell.name,
        "seed": seed,
        "version": VERSION,
        "homes": table["homes"],
        "scores": table["scores"],
        "alarms": alarms,
        "private": False,
    }
    write_text(place, json.dumps(rounded(found), allow_nan=False) + "\n")
    return place


def place_of(cell: SyntheticCell, seed: int, results: Path) -> Path:
    return results / "synthetic" / cell.name / f"seed={seed}.json"


def load(place: Path) -> dict[str, Any] | None:
    """A result of today's version; None if there is none."""
    try:
        found: dict[str, Any] = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if found.get("version") == VERSION else None


def _free(homes: Homes, seed: int, effort: Effort) -> dict[str, Series]:
    simulated = simulated_homes(homes.held_out, effort.homes, seed)
    if simulated is None:
        raise UserError("The simulator does not make such rows.")
    return {SIMULATOR: simulated, OTHERS: homes.others}


def _trained(cell: SyntheticCell, homes: Homes, seed: int, folder: Path, effort: Effort) -> dict[str, Series]:
    """The homes of both generators of the product, and hours without any order from the model's population."""
    made, population = generated(cell, homes, seed, folder, effort)
    run = _run(cell, homes.data, seed, folder / "evolved", "evolution")
    evolved = evolved_table(run, effort.homes, START, effort.days, seed)
    shutil.rmtree(folder)
    return {MODEL: made, EVOLUTION: _read(evolved), MARGINALS: marginals(made, population, seed)}


def generated(
    cell: SyntheticCell, homes: Homes, seed: int, folder: Path, effort: Effort = USUAL
) -> tuple[Series, Population]:
    """The homes of the model, and who they are."""
    shutil.rmtree(folder, ignore_errors=True)
    model = Model.load(_run(cell, homes.data, seed, folder / "model"), "cpu")
    made = model.generate(homes=effort.homes, start=START, days=effort.days, redraw=False, seed=seed)
    assert model.spec.population is not None
    return _read(made), model.spec.population


def _run(cell: SyntheticCell, data: Data, seed: int, out: Path, engine: str = "diffusion") -> Path:
    """A run of the product with reproducible noise. The network does not draw homes of hourly loads: it gets one step."""
    budget: dict[str, Any] = {"unit": cell.unit, "test_only": True}
    if cell.epsilon is not None:
        budget["epsilon"] = cell.epsilon
    chosen: dict[str, Any] = {"out": out, "seed": seed, "non_negative": True, "engine": engine}
    if engine == "evolution":
        budget |= {} if cell.epsilon is not None else {"noise_multiplier": NO_NOISE}
        run_request(data, TrainRequest(**chosen, privacy=Privacy(**budget)))
        return out
    chosen |= {"scale": "smoke", "steps": 1, "window": 168}
    if cell.epsilon is not None:
        privacy = Privacy(**budget, population=True)
        chosen |= {"privacy": privacy, "lower": (0.0,), "upper": (LARGEST,)}
    run_request(data, TrainRequest(**chosen))
    if cell.epsilon is not None and not (out / PEOPLE).is_file():
        raise RuntimeError(f"{out} has no population")
    return out


def _read(frame: pd.DataFrame) -> Series:
    return read(frame, time="time", id="home", targets=[*frame.columns[2:]])


def marginals(like: Series, population: Population, seed: int) -> Series:
    """Every reading by itself: a home's level times a ratio from the population's histogram, on the stamps of `like`."""
    stream = np.random.default_rng([seed, 21])
    levels = population.levels(population.draw(stream.standard_normal((len(like.meters), len(population.mean)))))[:, 0]
    edges = np.linspace(*RATIOS, BINS + 1)
    bins = stream.choice(BINS, size=len(like), p=np.array(population.histogram[0]))
    ratio = np.exp(edges[bins] + stream.random(len(like)) * (edges[1] - edges[0]))
    values = np.repeat(levels, like.lengths) * ratio + population.within.lower[0]
    return replace(like, values=np.minimum(values, population.within.upper[0]).astype(np.float32)[:, None])
