"""How many examples there are: stated as a public fact, or counted with noise and charged.

Which blocks have enough readings is private, and so is their number N. Sampling rate and divisor need N, so it is released once,
before the plan is made, together with the number of meters:

    N̂ = N + N(0, σ²),    one unit changes N by at most the k examples that it touches

σ is chosen so that both counts together cost about SHARE of the budget: a single Gaussian release with σ₁ would spend all of it,
and two with σ₁ √(2 / SHARE) spend SHARE, since the inverse variances of Gaussian releases add up. A test run counts exactly:
it has no guarantee.
"""

import math
from dataclasses import replace
from pathlib import Path

from tamedit.privacy.accountant import Mechanism
from tamedit.privacy.entries import FILE_NAME, read
from tamedit.privacy.noise import secure_normals
from tamedit.privacy.plan import calibrate
from tamedit.privacy.settings import Privacy
from tamedit.runs.layout import Count, PrivateLayout
from tamedit.training.distributed import join_world

COUNTS, RELEASES = "number of examples and of meters", 2  # what the ledger calls it, and how many releases it takes
SHARE = 0.01  # of the budget
FEWEST = 2  # examples, whatever the noise says


def counted(layout: PrivateLayout, privacy: Privacy, folder: Path) -> PrivateLayout:
    """The layout with the public number of its examples; a run that is resumed keeps the number of its ledger."""
    if layout.count.origin != "at most":
        return layout
    found = _known(folder) or _fresh(layout, privacy)
    world = join_world()
    examples, meters = world.same_number(found.examples), world.same_number(found.meters)
    return replace(layout, count=found.model_copy(update={"examples": examples, "meters": meters}))


def mechanisms(count: Count) -> list[Mechanism]:
    """What the counts cost."""
    return [Mechanism(1.0, count.noise, RELEASES)] if count.origin == "noisy" else []


def _known(folder: Path) -> Count | None:
    """What an earlier segment of this run has counted."""
    if not (folder / FILE_NAME).exists():
        return None
    segments = read(folder).segments
    return Count.model_validate(segments[-1].facts["count"]) if segments and "count" in segments[-1].facts else None


def _fresh(layout: PrivateLayout, privacy: Privacy) -> Count:
    examples, meters = len(layout.windows), len(set(layout.windows.meter_of().tolist()))
    if privacy.test_only:
        return Count(origin="exact", examples=examples, meters=meters)
    if privacy.examples is not None:
        return Count(origin="stated", examples=privacy.examples, meters=0)
    noise = _noise(layout, privacy)
    first, second = (noise * secure_normals(2)).tolist()
    drawn = round(examples + first), round(meters + second)
    return Count(origin="noisy", examples=max(drawn[0], FEWEST), meters=max(drawn[1], 1), noise=noise)


def _noise(layout: PrivateLayout, privacy: Privacy) -> float:
    """σ of each count, rounded up to two digits."""
    if privacy.epsilon is None:
        return privacy.statistics_noise
    touched = layout.contribution()
    whole = calibrate(privacy.epsilon, 1.0, 1, privacy.delta, touched.k, touched.neighbour, tolerance=1e-2)
    wanted = whole * math.sqrt(RELEASES / SHARE)
    unit = 10.0 ** (math.floor(math.log10(wanted)) - 1)
    return math.ceil(wanted / unit) * unit
