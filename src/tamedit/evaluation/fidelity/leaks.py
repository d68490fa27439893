"""Alarms for leaks: does a synthetic fleet lie closer to the homes that were trained on than to others? Not a guarantee.

Weeks are compared in logs, log(1 + x / s), s the mean reading of the training homes, by the Euclidean distance.

**Closest homes.** For every synthetic home-week, the distance to the closest training home against the distance to the closest
held-out home, with equally many homes on both sides (drawn again and again from the larger side). The share that is closer to
training is 0.5 on average if nothing leaks. Which homes were trained on is then a label without meaning, so the labels are
shuffled: the share is an alarm if it exceeds 97.5 % of the shares with shuffled labels.

**Membership.** A home's score is minus the mean distance of its weeks to the closest synthetic home-week. If a threshold on the
score finds out who was trained on (AUC above 0.5), the homes are remembered. The scores give a lower bound on ε of a whole home
by the one-run test (`privacy/audit/one_run.py`). It assumes that a fair coin decided of every home whether it was trained on; for
another split, read it as an indication.

An alarm shows a leak that these attacks can see. Silence shows nothing: the guarantee is the ledger's.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int64

from tamedit.data.series import Series
from tamedit.errors import UserError
from tamedit.evaluation.distances import squared_distances
from tamedit.evaluation.fidelity.convolutions import in_logs
from tamedit.evaluation.fidelity.homes_grid import Fleet, fleets
from tamedit.evaluation.fidelity.judges import home_means, some
from tamedit.evaluation.intervals import bootstrap_interval, group_weights
from tamedit.privacy.audit.attack import auroc
from tamedit.privacy.audit.one_run import guesses, one_run

READING = (
    "These alarms are not a guarantee: an alarm shows a leak, silence shows nothing. They are computed from private data "
    "without noise, so they are not private."
)
SYNTHETIC_WEEKS = 2000  # at most, of all synthetic homes
SHUFFLES, DRAWS = 400, 8
ROWS_AT_ONCE = 256


@dataclass(frozen=True)
class Alarms:
    """Both attacks."""

    closer: float  # share of the synthetic home-weeks that are closer to a training home than to a held-out one
    closer_interval: tuple[float, float] | None  # 95 %, over synthetic homes
    closer_expected: tuple[float, float]  # the middle 95 % with shuffled labels
    auc: float  # of membership
    auc_expected: tuple[float, float]
    epsilon_lower: float  # of a whole home, 95 % confidence if a coin made the split
    homes: int  # on either side
    reading: str = READING

    @property
    def alarm(self) -> bool:
        return self.closer > self.closer_expected[1] or self.auc > self.auc_expected[1]

    def sentences(self) -> list[str]:
        """What was found, for people."""
        (low, high), (least, most) = self.closer_expected, self.auc_expected
        return [
            f"{'ALARM' if self.alarm else 'No alarm'}: {self.closer:.1%} of the synthetic weeks are closer to a training home "
            f"than to a held-out home ({low:.1%} to {high:.1%} is chance).",
            f"Membership of {2 * self.homes} homes: AUC {self.auc:.3f} ({least:.3f} to {most:.3f} is chance); a home's ε is "
            f"at least {self.epsilon_lower:.3g}, with 95 % confidence if coins decided which homes were trained on.",
            self.reading,
        ]

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "alarm": self.alarm}


def leak_alarms(
    synthetic: Series,
    training: Series,
    held_out: Series,
    *,
    target: str | None = None,
    delta: float = 1e-5,
    seed: int = 0,
) -> Alarms:
    """Attack a synthetic fleet with the homes that were trained on and homes that were not."""
    if set(training.meters) & set(held_out.meters):
        raise UserError(
            "A home occurs among the training homes and among the held-out ones, so nothing can be told from its weeks; "
            "hold out whole homes."
        )
    trained, others = fleets(training, {"the held-out homes": held_out, "the synthetic homes": synthetic}, target)
    held, made = others["the held-out homes"], others["the synthetic homes"]
    scale = max(float(np.abs(np.nanmean(trained.values))), 1e-9)
    weeks, home = _weeks(made, max(SYNTHETIC_WEEKS // made.homes, 1), scale, seed)
    most = int(min(np.median(np.bincount(one.home_weeks()[1])) for one in (trained, held)))
    sides = [_weeks(one, max(most, 1), scale, seed + 1) for one in (trained, held)]
    to_home, of_home = [], []
    for rows, owner in sides:
        near, own = _closest(weeks, rows, owner)
        to_home.append(near)
        of_home.append(own)
    apart = np.concatenate(to_home, axis=1)  # (synthetic weeks, real homes)
    scores = -np.concatenate(of_home)
    trained_on = np.repeat([True, False], [len(one) for one in of_home])
    generator = np.random.default_rng(seed)
    labels = np.stack([trained_on, *(generator.permutation(trained_on) for _ in range(SHUFFLES))])
    size = min(int(trained_on.sum()), int((~trained_on).sum()))
    own = _shares(apart, trained_on, size, generator)
    shuffled = np.array([_shares(apart, one, size, generator).mean() for one in labels[1:]])
    per_home = home_means(own, home, made.homes)
    known = per_home[np.isfinite(per_home)]
    means = group_weights(np.arange(len(known)), SHUFFLES, seed) @ known / len(known)
    areas = np.array([auroc(scores, one) for one in labels])
    chosen = np.concatenate([generator.permutation(np.flatnonzero(one))[:size] for one in (trained_on, ~trained_on)])
    found = guesses(scores[chosen], trained_on[chosen])
    return Alarms(
        closer=float(own.mean()),
        closer_interval=bootstrap_interval(float(own.mean()), means, 0.0, 1.0),
        closer_expected=_middle(shuffled),
        auc=float(areas[0]),
        auc_expected=_middle(areas[1:]),
        epsilon_lower=one_run(2 * size, found, 0.05, delta),
        homes=size,
    )


def _weeks(one: Fleet, most: int, scale: float, seed: int) -> tuple[Float[np.ndarray, "N L"], Int64[np.ndarray, " N"]]:
    """Home-weeks in logs, at most `most` of every home, and their homes; homes without a whole week are not counted."""
    weeks, home = one.home_weeks()
    kept = some(home, most, seed)
    return in_logs(weeks[kept], scale), np.unique(home[kept], return_inverse=True)[1].astype(np.int64)


def _closest(
    weeks: Float[np.ndarray, "S L"], rows: Float[np.ndarray, "N L"], owner: Int64[np.ndarray, " N"]
) -> tuple[Float[np.ndarray, "S H"], Float[np.ndarray, " H"]]:
    """Distance of every synthetic week to the closest week of every home; mean distance of a home's weeks to synthetic ones."""
    first = np.searchsorted(owner, np.arange(int(owner.max()) + 1))  # rows are in the order of their homes
    near, least = np.empty((len(weeks), len(first))), np.full(len(rows), np.inf)
    for at in range(0, len(weeks), ROWS_AT_ONCE):
        squares = squared_distances(weeks[at : at + ROWS_AT_ONCE], rows)
        near[at : at + ROWS_AT_ONCE] = np.sqrt(np.minimum.reduceat(squares, first, axis=1))
        least = np.minimum(least, squares.min(axis=0))
    return near, home_means(np.sqrt(least), owner, len(first))


def _shares(
    apart: Float[np.ndarray, "S H"], trained_on: Bool[np.ndarray, " H"], size: int, generator: np.random.Generator
) -> Float[np.ndarray, " S"]:
    """How often every synthetic week is closer to training, over draws of `size` homes on either side; a tie counts half."""
    sides = [np.flatnonzero(one) for one in (trained_on, ~trained_on)]
    draws = 1 if all(len(one) == size for one in sides) else DRAWS
    total = np.zeros(len(apart))
    for _ in range(draws):
        train, held = (apart[:, generator.permutation(one)[:size]].min(axis=1) for one in sides)
        total += (train < held) + 0.5 * (train == held)
    return total / draws


def _middle(values: Float[np.ndarray, " R"]) -> tuple[float, float]:
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)
