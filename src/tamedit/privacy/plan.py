"""The one place that states the numbers of private training.

A `PrivacyPlan` yields the sampler, the noise scale, the divisor and the accounting event, so that they cannot disagree:

    update = ( Σ_{i in Poisson(q) sample} clip_C( (1/G) Σ_g gradient_{i,g} ) + N(0, (σC)² I) ) / divisor

All of its fields are public: none may be chosen by looking at the data. Speed settings (micro-batches, threads) are not part
of it, since none of them may change ε.
"""

import contextlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from itertools import count
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from tamedit.errors import UserError
from tamedit.privacy import accountant
from tamedit.privacy.accountant import (
    LEAST_EPSILON,
    LEAST_NOISE,
    MOST_NOISE,
    MOST_STEPS,
    SMALLEST_DELTA,
    Epsilon,
    Mechanism,
    check_delta,
)
from tamedit.privacy.poisson import PoissonSampler
from tamedit.privacy.units import Neighbour, Unit

if TYPE_CHECKING:
    from tamedit.privacy.noise import GaussianNoise


class PrivacyPlan(BaseModel):
    """Frozen and checked; an unknown argument is an error, because a misspelt one must not train without privacy.

    Attributes:
        unit: the privacy unit, named in every statement.
        examples: N, the public number of examples that Poisson sampling draws from.
        sampling_rate: q, the probability that an example is in a batch.
        clip: C, the bound on the norm of one example's gradient.
        noise_multiplier: σ; the noise on the sum has the standard deviation σ · C.
        steps: T, planned; the ledger counts what happened.
        delta: δ of the guarantee.
        draws: G, crops and noise levels per example, averaged before clipping.
        divisor: what the noisy sum is divided by, a public constant; q · N when not given.
        contributions: k, examples that one unit touches (`privacy.units.contribution`).
        neighbour: whether those examples disappear ("removal") or change ("replacement").
        secure: sampling and noise come from the operating system's cryptographic stream.
        test_only: reproducible sampling and noise from `seed`; such a run carries no guarantee.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    unit: Unit
    examples: int = Field(ge=1)
    sampling_rate: float = Field(gt=0.0, le=1.0)
    clip: float = Field(gt=0.0)
    noise_multiplier: float = Field(gt=0.0)
    steps: int = Field(ge=1, le=MOST_STEPS)
    delta: float = Field(ge=SMALLEST_DELTA, lt=1.0)
    draws: int = Field(default=1, ge=1)
    divisor: float = Field(default=0.0, ge=0.0)
    contributions: int = Field(default=1, ge=1)
    neighbour: Neighbour = "removal"
    secure: bool = False
    test_only: bool = False
    seed: int | None = None

    def __init__(self, **values: Any) -> None:
        values = {name: value.item() if hasattr(value, "item") else value for name, value in values.items()}
        if "divisor" not in values:
            with contextlib.suppress(TypeError, ValueError, KeyError):
                values["divisor"] = float(values["sampling_rate"]) * float(values["examples"])
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise UserError(_sentence(error)) from None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.divisor <= 0.0:
            raise ValueError("divisor must be positive: leave it out to get sampling_rate · examples")
        if self.test_only and self.secure:
            raise ValueError("secure noise cannot be repeated: leave out either test_only or secure")
        if self.test_only != (self.seed is not None):
            raise ValueError(
                "a seed goes with test_only=True and only with it: private runs draw from the operating system"
            )
        return self

    @classmethod
    def for_epsilon(cls, epsilon: float, *, charged: Sequence[Mechanism] = (), **values: Any) -> Self:
        """The plan with the smallest σ whose `steps` stay within ε at δ, after what is `charged` already."""
        if "noise_multiplier" in values:
            raise UserError("Give either epsilon or noise_multiplier: each follows from the other.")
        trial = cls(noise_multiplier=1.0, **values)
        sigma = calibrate(
            epsilon,
            trial.sampling_rate,
            trial.steps,
            trial.delta,
            trial.contributions,
            trial.neighbour,
            charged=charged,
        )
        return cls(noise_multiplier=sigma, **values)

    @property
    def noise_standard_deviation(self) -> float:
        """σ · C: the deviation of the noise on every coordinate of the *sum* of clipped gradients."""
        return self.noise_multiplier * self.clip

    @property
    def mechanism(self) -> Mechanism:
        """One step, for the accountant and the ledger."""
        return Mechanism(self.sampling_rate, self.noise_multiplier, 1)

    @property
    def adjacency(self) -> Literal["ADD_OR_REMOVE_ONE", "REPLACE_ONE"]:
        """dp-accounting's name for the neighbouring relation."""
        return "ADD_OR_REMOVE_ONE" if self.neighbour == "removal" else "REPLACE_ONE"

    def event(self, steps: int | None = None) -> Any:
        """`steps` steps (all planned by default) as a dp-accounting DpEvent, for a unit of k examples that is removed."""
        import dp_accounting

        one = accountant.event(self.sampling_rate, self.noise_multiplier, self.contributions)
        return dp_accounting.SelfComposedDpEvent(one, self.steps if steps is None else steps)

    def epsilon(self, steps: int | None = None) -> Epsilon:
        """ε of `steps` steps (all planned by default) of this plan alone."""
        count = self.steps if steps is None else steps
        mechanism = Mechanism(self.sampling_rate, self.noise_multiplier, count)
        return accountant.epsilon([mechanism], self.delta, self.contributions, self.neighbour)

    def sampler(self, examples: int | None = None) -> PoissonSampler:
        """A fresh sampler; in a test its draws are a function of the seed and the step.

        `examples`: how many there really are, which is private if N was counted with noise. Nothing else depends on it.
        """
        there = self.examples if examples is None else examples
        return PoissonSampler(there, self.sampling_rate, secure=self.secure, test_seed=self.seed)

    def noise(self) -> "GaussianNoise":
        """A fresh noise stream of deviation σ · C; one for each segment of a run."""
        from tamedit.privacy.noise import GaussianNoise

        return GaussianNoise(self.noise_standard_deviation, secure=self.secure, test_seed=self.seed)

    @property
    def noise_source(self) -> str:
        """What generates the noise, and what seeds it, for a statement."""
        if self.test_only:
            return "a known seed"
        if self.secure:
            return "the operating system's cryptographic stream"
        return (
            "NumPy's SFC64 on a CPU, its seed 128 bits from the operating system (on other devices PyTorch's Philox, 64 bits); "
            "no cryptographic stream, which `secure` would take"
        )

    @property
    def fingerprint(self) -> str:
        """A short hash of every field, written to the ledger."""
        return digest(self.model_dump(mode="json"))


def digest(fields: Mapping[str, Any]) -> str:
    """A short hash of the fields of a plan."""
    return blake2b(json.dumps(fields, sort_keys=True).encode(), digest_size=8).hexdigest()


def calibrate(
    epsilon: float,
    sampling_rate: float,
    steps: int,
    delta: float,
    contributions: int = 1,
    neighbour: Neighbour = "removal",
    *,
    charged: Sequence[Mechanism] = (),
    tolerance: float = 2e-4,
    rough: bool = False,
) -> float:
    """The smallest noise multiplier σ (to a relative `tolerance`, never too small) whose ε stays within the target.

    ε falls as σ grows, smoothly in logarithms: a secant finds σ with a `rough` ε and, unless that will do, with the true one.
    """
    check_delta(delta)
    if not (math.isfinite(epsilon) and epsilon >= LEAST_EPSILON):
        raise UserError(f"epsilon = {epsilon:g} cannot be reached: give a positive number, at least {LEAST_EPSILON:g}.")
    if steps > MOST_STEPS:
        raise UserError(f"steps = {steps} is too many: give at most {MOST_STEPS}.")

    def excess(logarithm: float, rough: bool) -> float:
        work = [*charged, Mechanism(sampling_rate, min(math.exp(logarithm), MOST_NOISE), steps)]
        spent = accountant.epsilon(work, delta, contributions, neighbour, with_rdp=False, rough=rough).value
        return math.log(max(spent, 1e-9) / epsilon)

    if charged and accountant.epsilon(charged, delta, contributions, neighbour, with_rdp=False).value >= epsilon:
        raise UserError(
            f"epsilon = {epsilon:g} is spent before training starts: raise it, or release fewer statistics besides training."
        )
    z = math.sqrt(2.0 * math.log(1.0 / delta))
    variance = (math.sqrt(z**2 + 2.0 * epsilon) - z) ** 2  # of the total loss, were it normal
    usual = contributions * sampling_rate  # examples of a unit in a batch
    change = max(usual, 1.0) * (2 if neighbour == "replacement" else 1)
    guess = math.log(change) - math.log(math.log1p(variance / steps / min(usual, 1.0) ** 2)) / 2
    try:
        near, slope = _least(lambda x: excess(x, True), guess, -1.0, max(tolerance, 5e-3))
        if not rough:
            near, _ = _least(lambda x: excess(x, False), near, slope, tolerance)
        return math.exp(near)
    except OverflowError as error:
        raise UserError(
            f"No noise reaches epsilon = {epsilon:g} in {steps} steps: train less or accept a larger epsilon."
        ) from error


def _least(excess: Callable[[float], float], point: float, slope: float, tolerance: float) -> tuple[float, float]:
    """The least x, to the tolerance and never too small, where a falling function is ≤ 0, with the slope there.

    Secant steps that aim a little beyond the root, else halves of the bracket; OverflowError above MOST_NOISE.
    """
    least, most = math.log(LEAST_NOISE), math.log(MOST_NOISE)
    low, high = -math.inf, math.inf  # excess(low) > 0 ≥ excess(high)
    before: tuple[float, float] | None = None
    for turn in count():
        point = min(max(point, least), most)
        value = excess(point)
        if before is not None and math.isfinite(value - before[1]) and point != before[0]:
            slope = min(max((value - before[1]) / (point - before[0]), -10.0), -0.1)
        before = point, value
        if value > 0.0:
            low = point
            if low >= most:
                raise OverflowError
        else:
            high = point
            if high <= max(low + tolerance, least) or -value <= -slope * tolerance:
                return high, slope
        step = min(max(-value / slope, -2.0), 2.0) if math.isfinite(value) else 1.0
        point += step + 0.3 * tolerance
        if not low < point < high or (turn > 12 and math.isfinite(high - low)):
            point = (low + high) / 2
    raise AssertionError("never reached")


def _sentence(error: ValidationError) -> str:
    """The first thing wrong with a plan, in one sentence that names the argument, the value and the remedy."""
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"A privacy plan has no argument {name!r}: use one of {', '.join(PrivacyPlan.model_fields)}."
    if first["type"] == "missing":
        return f"A privacy plan needs {name!r}: give it a value."
    if not name:
        return f"This privacy plan contradicts itself: {str(first['msg']).removeprefix('Value error, ')}."
    message = str(first["msg"])
    return f"In the privacy plan {name} = {first['input']!r} is not possible: {message[:1].lower()}{message[1:]}."
