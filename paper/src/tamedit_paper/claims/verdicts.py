"""From numbers to a verdict, by stated rules.

A claim is a list of comparisons. Each has one number per seed, d_s, and a range in which the claim says that it lies; I is the
95 % t-interval of d_s over the seeds:

    holds       I lies within the range
    opposite    I lies outside the range
    open        I reaches across a border of the range: the seeds do not tell
    few seeds   fewer than 3 seeds have the runs it needs; the mean still gives a direction
    missing     a run that it needs is not there

    reproduced                  every comparison holds
    in direction only           every comparison holds, with less than a tenth of the paper's effect
    not                         none holds
    partly                      some hold
    not yet run (enough)        a comparison is missing, or has few seeds

The effect of a comparison "x is less than y" is (y − x) / y, averaged over seeds; a claim's is the mean over comparisons.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from statistics import fmean
from typing import Literal

from tamedit.evaluation.intervals import over_seeds
from tamedit_paper.grid.measures import BySeed, Measure, Runs, paired
from tamedit_paper.tables.numbers import plain

ENOUGH = 3  # seeds
TENTH = 0.1  # of the paper's effect: what is smaller agrees in direction only. Chosen after the first seven runs.
Outcome = Literal["holds", "opposite", "open", "few seeds", "missing"]


@dataclass(frozen=True)
class Check:
    """One comparison: what is measured, by seed, and the range that the claim says."""

    said: str
    values: BySeed
    low: float = 0.0
    high: float = inf
    shares: BySeed = field(default_factory=dict)  # the effect by seed, as a share

    @property
    def effect(self) -> float | None:
        return fmean(self.shares.values()) if self.shares else None

    @property
    def outcome(self) -> Outcome:
        if not self.values:
            return "missing"
        if len(self.values) < ENOUGH:
            return "few seeds"
        found = over_seeds(list(self.values.values()))
        assert found.low is not None
        assert found.high is not None
        if self.low < found.low and found.high < self.high:
            return "holds"
        return "opposite" if found.high < self.low or found.low > self.high else "open"

    @property
    def leans(self) -> bool | None:
        """Whether the mean lies in the range, whatever the interval says; None without a number."""
        return self.low < over_seeds(list(self.values.values())).mean < self.high if self.values else None

    def sentence(self) -> str:
        """The comparison in words."""
        if not self.values:
            return f"{self.said}: missing"
        found = over_seeds(list(self.values.values()))
        seeds = f"{found.seeds} seed" + ("s" if found.seeds > 1 else "")
        around = (
            f" [{plain(found.low)}, {plain(found.high)}]" if found.low is not None and found.high is not None else ""
        )
        direction = f", {'as' if self.leans else 'not as'} claimed so far" if self.outcome == "few seeds" else ""
        return f"{self.said}: {plain(found.mean)}{around}, {seeds}: {self.outcome}{direction}"


@dataclass(frozen=True)
class Claim:
    """Something that the paper says (or, with `beyond`, something that we ask), and what must be seen for it."""

    title: str
    where: str  # labels
    rule: str
    checks: tuple[Check, ...]
    beyond: bool = False
    printed: tuple[float, ...] = ()  # the paper's effects

    @property
    def effects(self) -> list[float]:
        return [check.effect for check in self.checks if check.effect is not None]

    @property
    def unfinished(self) -> str:
        """Why there is no verdict yet; empty if there is one."""
        outcomes = [check.outcome for check in self.checks]
        if "missing" in outcomes:
            there = len(outcomes) - outcomes.count("missing")
            return "not yet run" + (f" ({there} of {len(outcomes)} comparisons are there)" if there else "")
        if "few seeds" in outcomes:
            fewest = min(len(check.values) for check in self.checks)
            return f"not yet run with enough seeds ({fewest})"
        return ""

    @property
    def verdict(self) -> str:
        if self.unfinished:
            return self.unfinished
        outcomes = [check.outcome for check in self.checks]
        held = outcomes.count("holds")
        words = ("holds", "does not hold") if self.beyond else ("reproduced", "not reproduced")
        if held == len(outcomes):
            tiny = self.printed and self.effects and fmean(self.effects) < TENTH * fmean(self.printed)
            return f"{words[0]} in direction only" if tiny else words[0]
        return words[1] if held == 0 else "holds in part" if self.beyond else "partly"

    @property
    def count(self) -> str:
        """How the comparisons came out; of those with few seeds, how many lean the claim's way."""
        order: tuple[Outcome, ...] = ("holds", "open", "opposite", "few seeds", "missing")
        outcomes = [check.outcome for check in self.checks]
        lean = sum(bool(check.leans) for check in self.checks if check.outcome == "few seeds")
        few = f"with few seeds ({lean} as claimed so far)"
        return ", ".join(
            f"{outcomes.count(one)} {few if one == 'few seeds' else one}" for one in order if one in outcomes
        )

    def details(self) -> str:
        """Every comparison with its numbers, folded away under the verdict (Markdown)."""
        bullets = "\n".join(f"- {check.sentence()}" for check in self.checks)
        return f"<details><summary>{self.title}: {self.verdict}</summary>\n\n{bullets}\n\n</details>\n"


def less(said: str, runs: Runs, one: str, other: str, measure: Measure) -> Check:
    """`one` has the smaller number: x_other − x_one > 0."""
    smaller, larger = runs.values(one, measure), runs.values(other, measure)
    shares = {seed: 1 - share for seed, share in ratio(smaller, larger).items()}
    return Check(said, paired(larger, smaller), shares=shares)


def ratio(one: BySeed, other: BySeed) -> BySeed:
    """x_s / y_s."""
    return paired(one, {seed: value for seed, value in other.items() if value}, lambda x, y: x / y)


def close(said: str, runs: Runs, one: str, other: str, measure: Measure, share: float) -> Check:
    """The two numbers agree within a share: x_one / x_other in (1 − share, 1 + share)."""
    return Check(said, ratio(runs.values(one, measure), runs.values(other, measure)), 1 - share, 1 + share)


def in_order(said: str, runs: Runs, cells: Sequence[tuple[str, str]], measure: Measure) -> list[Check]:
    """The number falls from each (name, cell) to the next."""
    return [
        less(f"{said}, {first} − {second}", runs, after, before, measure)
        for (first, before), (second, after) in pairwise(cells)
    ]
