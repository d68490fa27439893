"""Lower bounds on ε from independent observations with and without a unit: repeated runs, or the steps of one run.

A test "score ≥ threshold" hits a share TPR of the runs with the unit and FPR of those without. With exact (Clopper–Pearson)
bounds on both,

    ε ≥ ln((TPR_low − δ) / FPR_high)    and, the other way round,    ε ≥ ln((TNR_low − δ) / FNR_high)

The threshold is chosen on one half of the observations and used on the other. The same rates also reject every trade-off
curve above the point (FPR_high, FNR_high), which at a small δ says much more. If a step is known to be a Gaussian
mechanism and nothing but its noise is in doubt, μ ≥ Φ⁻¹(TPR_low) − Φ⁻¹(FPR_high) bounds the noise: σ ≤ 1 / μ.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri
from scipy.stats import beta

from tamedit.privacy.audit.claims import Curve, Family, largest_rejected


def upper(count: int, trials: int, significance: float) -> float:
    """Clopper–Pearson: the largest rate under which `count` or fewer of `trials` have a probability of `significance`."""
    return 1.0 if count >= trials else float(beta.ppf(1.0 - significance, count + 1, trials - count))


@dataclass(frozen=True)
class Rates:
    """Upper bounds on the error rates of one test, which hold together at the significance that they were made for."""

    false_alarms: float  # FPR_high
    misses: float  # FNR_high

    @classmethod
    def of(cls, alarms: int, without: int, misses: int, with_unit: int, significance: float) -> "Rates":
        return cls(upper(alarms, without, significance / 2), upper(misses, with_unit, significance / 2))

    def epsilon(self, delta: float) -> float:
        """ε at least, in both directions."""
        pairs = [(1.0 - self.misses, self.false_alarms), (1.0 - self.false_alarms, self.misses)]
        return max([0.0, *(math.log((hit - delta) / error) for hit, error in pairs if hit > delta)])

    def rejects(self, curve: Curve) -> bool:
        """A curve that promises more errors of either kind than there are."""
        return self.misses < curve(1.0 - self.false_alarms) or self.false_alarms < curve(1.0 - self.misses)

    @property
    def gaussian(self) -> float:
        """μ at least, for a Gaussian mechanism; 0 if nothing can be said."""
        if max(self.false_alarms, self.misses) >= 1.0:
            return 0.0
        return max(0.0, float(ndtri(1.0 - self.misses) - ndtri(self.false_alarms)))


def held_out_rates(with_unit: Float[np.ndarray, " a"], without: Float[np.ndarray, " b"], significance: float) -> Rates:
    """Rates on the odd observations, of the threshold that separates the even ones best (most |TPR − FPR|)."""
    candidates = np.unique(np.concatenate([with_unit[::2], without[::2]]))
    hits = (with_unit[::2] >= candidates[:, None]).mean(1)
    alarms = (without[::2] >= candidates[:, None]).mean(1)
    threshold = candidates[np.argmax(hits - alarms)]
    other, none = with_unit[1::2], without[1::2]
    alarmed, missed = int((none >= threshold).sum()), int((other < threshold).sum())
    return Rates.of(alarmed, len(none), missed, len(other), significance)


def repeated_runs(rates: Rates, family: Family) -> float:
    """The largest ε of a family of claims whose trade-off curve the rates reject; 0 if none."""
    return largest_rejected(family, rates.rejects)
