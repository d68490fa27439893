"""What an ε means: the plan for it, the same training seen by every unit, and what measured runs reached.

`stored.json` is made from the results in the repository by `tools/playground_results.py`; its source stands in it.
"""

from functools import lru_cache
from importlib.resources import files

import numpy as np

from tamedit.privacy.accountant import Epsilon, Mechanism, epsilon
from tamedit.privacy.grades import grade
from tamedit.privacy.statement import UNIT_WORDS, finite
from tamedit.privacy.units import Layout, Neighbour, contributions
from tamedit.runs.proposal import Proposal, propose
from tamedit.serve.messages import AccountRequest, Measured, PlanAnswer, PlanRequest, Spent, UnitLoss
from tamedit.serve.watched import Check

WEEK = 168  # hours
MOST_WEEKS = 64  # of a home, up to which the loss of a whole home is computed: beyond, it is past all bounds
ONE_BY_ONE = ("record", "day", "week", "series")


def spent(request: AccountRequest) -> Spent:
    """ε of a mechanism, as `tamedit account` has it."""
    mechanism = Mechanism(request.sampling_rate, request.noise_multiplier, request.steps)
    found = epsilon([mechanism], request.delta, request.contributions, request.neighbour)
    return Spent(
        epsilon=finite(found.value),
        rdp=finite(found.rdp),
        accountant=found.accountant,
        delta=found.delta,
        protection=grade(found.value),
    )


def planned(request: PlanRequest, check: Check) -> PlanAnswer:
    """The plan, and every unit's ε under it."""
    examples = request.homes * (request.weeks if request.unit == "week" else 1)
    plan = _proposal(examples, request.epsilon, request.delta, request.unit)
    units = []
    layout = _layout(request.weeks, whole=request.unit == "series")
    counted, refused = contributions(layout)
    for unit in ONE_BY_ONE:
        check()
        if unit in refused:
            units.append(_unit(unit, None, refused[unit]))
        elif counted[unit].k > MOST_WEEKS:
            units.append(_unit(unit, None, f"one home has {counted[unit].k} examples: hardly any protection"))
        else:
            one = counted[unit]
            loss = _loss(plan.sampling_rate, plan.noise_multiplier, plan.steps, request.delta, one.k, one.neighbour)
            units.append(_unit(unit, loss, one.reason))
    return PlanAnswer(
        examples=plan.examples,
        batch_size=plan.batch_size,
        steps=plan.steps,
        noise_multiplier=plan.noise_multiplier,
        sampling_rate=plan.sampling_rate,
        signal_to_noise=plan.signal_to_noise,
        share_of_limit=plan.share_of_limit,
        expectation=plan.reasons["learning_rate"],
        warning=plan.warning,
        units=units,
    )


def measured() -> Measured:
    """What measured runs reached: nothing is computed."""
    return Measured.model_validate_json((files("tamedit") / "serve" / "stored.json").read_text(encoding="utf-8"))


@lru_cache(512)
def _proposal(examples: int, target: float, delta: float, unit: str) -> Proposal:
    """Tuning of the shipped model, with the time that `tamedit plan` takes if it is not told."""
    return propose(examples, target, delta, unit=unit, begins=True)


@lru_cache(2048)
def _loss(rate: float, noise: float, steps: int, delta: float, k: int, neighbour: Neighbour) -> Epsilon:
    return epsilon([Mechanism(rate, noise, steps)], delta, k, neighbour, with_rdp=False)


def _layout(weeks: int, *, whole: bool) -> Layout:
    """Two homes that begin on a Monday: no more are needed to count what a unit touches."""
    starts = np.arange(2 * weeks, dtype=np.int64) * WEEK
    rows = np.array([0, weeks * WEEK, 2 * weeks * WEEK], dtype=np.int64)
    return Layout(
        kind="blocks",
        starts=rows[:2] if whole else starts,
        length=weeks * WEEK if whole else WEEK,
        offsets=rows,
        steps_per_day=24,
        week_phase=np.zeros(2, dtype=np.int64),
    )


def _unit(unit: str, loss: Epsilon | None, reason: str) -> UnitLoss:
    value = None if loss is None else loss.value
    return UnitLoss(unit=unit, words=UNIT_WORDS[unit], epsilon=finite(value), protection=grade(value), reason=reason)
