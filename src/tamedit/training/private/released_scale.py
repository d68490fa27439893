"""A level and a scale of private readings, released with noise within public bounds and charged to the ledger."""

import json
from dataclasses import replace
from pathlib import Path

from tamedit.data.scaling import Mode, Scaling
from tamedit.files import write_text
from tamedit.privacy.accountant import Mechanism
from tamedit.privacy.statistics import RELEASES, STANDARDISATION
from tamedit.runs.config import RunConfig
from tamedit.runs.folder import SCALING, DataFacts
from tamedit.runs.layout import gathered, public_rows
from tamedit.training.private.budget import Budget
from tamedit.training.scales import with_floors
from tamedit.windows.cut import Windows


def wants_private_units(config: RunConfig, facts: DataFacts) -> bool:
    """Whether a level and scale are to be estimated with noise."""
    return config.privacy is not None and facts.lower is not None and facts.typical_scale is None


def statistics_of(config: RunConfig, facts: DataFacts) -> list[Mechanism]:
    """The releases besides training and the count that a private run needs."""
    privacy = config.privacy
    if privacy is None:
        return []
    pairs = wants_private_units(config, facts) + (config.private_bounds is not None)
    found = [Mechanism(1.0, privacy.statistics_noise, RELEASES * pairs)] if pairs else []
    return [*found, Mechanism(1.0, privacy.noise_of_population)] if privacy.population else found


def private_scaling(
    config: RunConfig, facts: DataFacts, windows: Windows, budget: Budget, folder: Path, scaling: Scaling
) -> Scaling:
    """The same units with a private reference, if one is wanted: released once, stored with the run, read again on resume."""
    if not wants_private_units(config, facts):
        return scaling
    place = folder / SCALING
    if budget.world.same_number(place.is_file()):
        budget.check_paid(STANDARDISATION, place)
        return Scaling.from_dict(json.loads(place.read_text(encoding="utf-8")))
    assert facts.lower is not None
    assert facts.upper is not None
    examples = gathered(windows, public_rows(windows, config.privacy))
    level, scale = budget.release(examples, facts.lower, facts.upper, STANDARDISATION)
    mode: Mode = "instance" if config.scaling == "instance" else "public"
    released = with_floors(replace(scaling, mode=mode, level=tuple(level), scale=tuple(scale), origin="private"))
    if budget.world.first:
        write_text(place, json.dumps(released.to_dict(), indent=2) + "\n")
    budget.world.wait()
    return released
