"""How many examples there are: stated as a public fact, or counted with noise and charged.

Which blocks have enough readings is private, and so is their number N. Sampling rate and divisor need N, so it is released once,
before the plan is made, together with the number of meters:

    N̂ = N + N(0, σ²),    one unit changes N by at most the k examples that it touches

σ is chosen so that both counts together cost about SHARE of the budget: a single Gaussian release with σ₁ would spend all of it,
and two with σ₁ √(2 / SHARE) spend SHARE, since the inverse variances of Gaussian releases add up. A test run counts exactly:
it has no guarantee.

The charge is on the disk before the noise is drawn, in a segment of the ledger of its own. So whoever tries again and again pays
again and again. Then the number itself is written to the run's ledger: another attempt there gets the same one, without a charge.
"""

import math
from typing import Any, Literal

from tamedit.choices import Frozen
from tamedit.privacy.accountant import Mechanism
from tamedit.privacy.entries import COUNTING, Record
from tamedit.privacy.ledger import Ledger
from tamedit.privacy.noise import secure_normals
from tamedit.privacy.plan import PrivacyPlan, calibrate
from tamedit.privacy.settings import Privacy
from tamedit.privacy.units import Contribution

COUNTS, RELEASES = "number of examples and of meters", 2  # what the ledger calls it, and how many releases it takes
SHARE = 0.01  # of the budget
FEWEST = 2  # examples, whatever the noise says


class Count(Frozen):
    """The number of examples, and of meters that have some, and how it came to be public."""

    examples: int
    meters: int
    origin: Literal["at most", "stated", "noisy", "exact"] = "at most"
    noise: float = 0.0  # standard deviation, if noisy

    @property
    def sentence(self) -> str:
        """For the statement: what was taken as public."""
        how = {
            "stated": "as stated",
            "noisy": f"counted with noise of standard deviation {self.noise:g}, which ε covers",
            "exact": "counted exactly: a test has no guarantee",
            "at most": "at most",
        }[self.origin]
        return f"the number of examples, {self.examples:,} ({how})"

    @property
    def mechanisms(self) -> list[Mechanism]:
        """What the counts cost."""
        return [Mechanism(1.0, self.noise, RELEASES)] if self.origin == "noisy" else []


def counting_plan(privacy: Privacy, touched: Contribution) -> PrivacyPlan:
    """The two counts as a plan of their own, so that they can be charged before the plan of training is known."""
    return PrivacyPlan(
        unit=privacy.unit,
        examples=FEWEST,  # says nothing of N
        sampling_rate=1.0,
        clip=1.0,
        noise_multiplier=_noise(privacy, touched),
        steps=RELEASES,
        delta=privacy.delta,
        contributions=touched.k,
        neighbour=touched.neighbour,
        secure=privacy.secure,
    )


def counted_before(record: Record, what: str) -> Count | None:
    """The noisy count of the same examples (`what`) that this ledger has already paid for, or None."""
    for segment in reversed(record.segments):
        facts = segment.facts
        if facts.get("count", {}).get("origin") == "noisy" and facts.get("counted", what) == what:
            return Count.model_validate(facts["count"])
    return None


def draw_count(examples: int, meters: int, plan: PrivacyPlan, ledger: Ledger) -> Count:
    """Both counts with noise. They are charged first: when the noise is drawn, the charge is on the disk."""
    noise = plan.noise_multiplier
    ledger.charge(plan.mechanism, COUNTS, RELEASES)
    first, second = (noise * secure_normals(2)).tolist()
    drawn = round(examples + first), round(meters + second)
    fewest = max(FEWEST, round(2 * noise))  # below that the count says nothing, and a large sampling rate costs much
    return Count(origin="noisy", examples=max(drawn[0], fewest), meters=max(drawn[1], 1), noise=noise)


def counting_facts(facts: dict[str, Any], what: str, found: Count | None = None) -> dict[str, Any]:
    """The facts of a segment that counts, or (`found`) that keeps what was counted."""
    return (
        facts
        | {COUNTING: True, "counted": what, "not_covered": []}
        | ({} if found is None else {"count": found.model_dump()})
    )


def _noise(privacy: Privacy, touched: Contribution) -> float:
    """σ of each count, rounded up to two digits."""
    if privacy.epsilon is None:
        return privacy.statistics_noise
    whole = calibrate(privacy.epsilon, 1.0, 1, privacy.delta, touched.k, touched.neighbour, tolerance=1e-2)
    wanted = whole * math.sqrt(RELEASES / SHARE)
    unit = 10.0 ** (math.floor(math.log10(wanted)) - 1)
    return math.ceil(wanted / unit) * unit
