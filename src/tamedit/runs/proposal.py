"""How to spend a privacy budget: chooses model, batch, steps and draws from public facts alone.

A private step adds noise of deviation σC / B to the mean of B clipped gradients. Over T steps the gradients add up as T and
the noise as √T, so that what training can learn is measured by

    signal-to-noise = √T · B / σ(B, T)        σ: the noise that (ε, δ) asks for at sampling rate B / N and T steps

For a fixed ε it grows with B and with T towards a limit, that of full batches, while the computing time grows as B · T. The
proposal takes as many steps as keep nearly all of the signal-to-noise that the time allows: more steps are easier on the
optimiser, larger batches on the noise.
"""

import math
from typing import Literal

from tamedit.choices import Frozen, Size, Tightness
from tamedit.errors import UserError
from tamedit.model.zoo import SIZES, NetworkConfig
from tamedit.privacy.plan import calibrate
from tamedit.privacy.population import expected_error
from tamedit.privacy.settings import Privacy
from tamedit.privacy.statement import large_delta
from tamedit.privacy.units import Neighbour
from tamedit.runs.config import RunConfig, TrainingConfig
from tamedit.runs.layout import PrivateLayout
from tamedit.runs.regime import Regime, parameter_count, regime
from tamedit.runs.request import MINUTES

SIZE: Size = "mini"
CLIP, LEARNING_RATE = 1.0, 1e-3
ENOUGH_SIGNAL, LITTLE_SIGNAL = (
    50.0,
    15.0,
)  # √T B / σ: below the first a good start takes smaller steps, below the second it learns little
STEPS = (40, 60, 90, 120, 180, 250, 350, 500)
FEW_STEPS = (40, 60, 90)  # enough for a good initial model: more steps would only add noise
KEPT = 0.9  # of the best signal-to-noise that the time allows
CELL_SECONDS = 2.9e-5  # of a core: one time step of one window in one gradient, size mini, two threads
SERIES_DRAWS = 4
CORES = 2
FEW_READINGS = (
    "a window as the privacy unit protects little: a home has many, and every one of them adds to what is revealed"
)
MOST_EXAMPLES = 10**12
# Of 24 measures on `ideal` (paper/docs/synthetic.md), so many were closer to real homes than the simulator's:
#   error of the population 0.004 and 0.016: population 19, evolution 16 and 17; error 0.037: population 16, evolution 17
#   ε times examples 546 and more: evolution 16 or 17; 182 (ε = 1 per whole home): evolution 11, population 7
USEFUL_ERROR, USEFUL_VOTES = 0.025, 400.0
Generator = Literal["population", "evolution", "simulator"]


class Proposal(Frozen):
    """What to train, and why. Every number follows from public facts."""

    size: Size
    batch_size: int
    steps: int
    draws: int
    clip: float
    noise_multiplier: float
    learning_rate: float
    epsilon: float
    delta: float
    examples: int
    sampling_rate: float
    signal_to_noise: float
    share_of_limit: float  # of what full batches would give at this ε
    noise_over_signal: float  # this and the walk: where the run stands (`runs.regime`)
    walk: float
    bounds: Tightness | None  # None: those of the initial model
    minutes: float  # about
    reasons: dict[str, str]
    generator: Generator  # what to make synthetic homes with
    generating: str  # why
    warning: str | None = None  # of a δ that is large for so many examples
    spent: float = 0.0  # ε of the private runs that the data set's ledger lists
    budget: str | None = None  # what they leave, in a sentence

    @property
    def needless(self) -> bool:
        """Whether so little can be learned that the initial model will do as well."""
        return self.bounds is None and self.signal_to_noise < LITTLE_SIGNAL

    @property
    def shares(self) -> str:
        """Warm-up and averaging as shares of the steps."""
        training = self.training
        averaged = 1 / ((1 - float(training["ema"])) * self.steps)
        return f"{int(training['warmup']) / self.steps:.0%}, {min(averaged, 1.0):.0%}"

    @property
    def training(self) -> dict[str, float | int | str]:
        """What it says about the optimiser."""
        warmup, ema = max(self.steps // 12, 1), 1 - 6 / max(self.steps, 60)
        return {
            "steps": self.steps,
            "batch_size": self.batch_size,
            "learning_rate": self.learning_rate,
            "warmup": warmup,
            "ema": round(ema, 3),
            "decay": "cosine" if self.steps > FEW_STEPS[-1] else "constant",
        }


def propose(
    examples: int,
    epsilon: float,
    delta: float = 1e-5,
    *,
    unit: str = "week",
    length: int = 168,
    contributions: int = 1,
    neighbour: Neighbour = "removal",
    minutes: float = MINUTES,
    cores: int = CORES,
    begins: bool = False,
) -> Proposal:
    """The plan for N examples, of which one privacy unit touches k = `contributions`.

    `begins`: training starts from a public model and needs few steps.
    """
    if examples < 2:
        raise UserError(f"{examples} is too few: give the number of units (home-weeks, homes), at least 2.")
    if examples > MOST_EXAMPLES:
        raise UserError(f"{examples} units are too many: give the number of units (home-weeks, homes), at most 10¹².")
    draws = SERIES_DRAWS if unit == "series" else 1
    affordable = minutes * 60 * cores / (length * CELL_SECONDS * draws)  # units' gradients

    def noise(batch: int, steps: int, rough: bool = True) -> float:
        rate, tolerance = batch / examples, 1e-2 if rough else 2e-4
        return calibrate(epsilon, rate, steps, delta, contributions, neighbour, tolerance=tolerance, rough=rough)

    choices = []
    for steps in FEW_STEPS if begins else STEPS:
        batch = int(min(examples, affordable / steps))
        if batch >= 2:
            choices.append((steps, batch, math.sqrt(steps) * batch / noise(batch, steps)))
    if not choices:
        raise UserError(
            f"{minutes:g} minutes on {cores} cores are too few for windows of {length} steps; allow more with `minutes`."
        )
    best = max(ratio for _, _, ratio in choices)
    steps, batch, ratio = max(choice for choice in choices if choice[2] >= KEPT * best)
    limit = examples / noise(examples, 1)
    share = min(1.0, ratio / limit)
    sigma = noise(batch, steps, rough=False)
    rate = _rate(ratio) if begins else LEARNING_RATE
    stands = _regime(length, sigma, steps, batch, rate)
    generator, generating = _generator(examples, epsilon, unit)
    return Proposal(
        generator=generator,
        generating=generating,
        size=SIZE,
        batch_size=batch,
        steps=steps,
        draws=draws,
        clip=CLIP,
        noise_multiplier=sigma,
        learning_rate=rate,
        epsilon=epsilon,
        delta=delta,
        warning=large_delta(delta, examples),
        examples=examples,
        sampling_rate=batch / examples,
        signal_to_noise=ratio,
        share_of_limit=share,
        noise_over_signal=stands.noise_over_signal,
        walk=stands.walk,
        bounds=None if begins else "medium" if stands.collapses else "off",
        minutes=steps * batch * draws * length * CELL_SECONDS / 60 / cores,
        reasons={
            **({"unit": FEW_READINGS} if unit == "window" else {}),
            "size": "few parameters: the noise norm grows as √d with the number d of trained parameters",
            "batch_size": f"{batch} of {examples} per step: σ grows more slowly than the batch, so large batches have less noise",
            "steps": f"as many as keep {KEPT:.0%} of the signal-to-noise that {minutes:g} minutes on {cores} cores allow"
            + (f", at most {FEW_STEPS[-1]}: the initial model is already good" if begins else ""),
            "draws": "several windows per meter are averaged before clipping, since a meter has many"
            if draws > 1
            else "one window per block: two windows of half as many blocks gave the same (benchmarks/private_recipe.py)",
            "clip": "nearly every gradient norm is above 1, so C only scales the gradient, and Adam removes that scale",
            "noise_multiplier": f"the smallest σ with ε ≤ {epsilon:g} at δ = {delta:g} after {steps} steps",
            "signal_to_noise": f"{share:.0%} of what full batches would give at this ε",
            "noise_over_signal": "σ √P / B: length of the noise over that of the longest possible sum of gradients",
            "walk": "rate √T √width: how far noise alone carries what a layer says",
            "bounds": "with others it would be another model before the first step" if begins else stands.advice(),
            "learning_rate": _why_rate(ratio) if begins else "that of a start from random weights",
        },
    )


def _generator(examples: int, epsilon: float, unit: str) -> tuple[Generator, str]:
    """Which generator was closer to the homes of `ideal` in most measures, by the noise of the release and of the votes."""
    noise = Privacy(epsilon=epsilon, unit=unit).noise_of_population  # type: ignore[arg-type]
    error, votes = expected_error(examples, 1, noise), epsilon * examples
    said = f"who the homes are would be known with an error of {error:.2g} per moment (numbers within ±1)"
    if error <= USEFUL_ERROR:
        return "population", f"{said}; up to {USEFUL_ERROR:g} that was the closest to real homes"
    if votes >= USEFUL_VOTES:
        return (
            "evolution",
            f"{said}; above {USEFUL_ERROR:g} votes for simulated homes were at least as close to real ones",
        )
    return "simulator", (
        f"{said}, and ε times the examples is {votes:.3g}; below {USEFUL_VOTES:g} both private generators were further from "
        "real homes than the free simulator in most measures"
    )


def _rate(ratio: float) -> float:
    """The learning rate of a good start: in proportion to the signal-to-noise where that is small, two digits."""
    return float(f"{LEARNING_RATE * min(1.0, ratio / ENOUGH_SIGNAL):.2g}")


def _why_rate(ratio: float) -> str:
    """What to expect of tuning (benchmarks/private_recipe.py: below 0, tuning helped)."""
    if ratio >= ENOUGH_SIGNAL:
        return "the rate that helped most on simulated homes of another region"
    small = "smaller steps, in proportion to √T B / σ: the noise must not spoil a good start"
    if ratio >= LITTLE_SIGNAL:
        return small
    return (
        f"{small}; so little can be learned at this ε from so few units that the initial model as it is will do as well"
    )


def _regime(length: int, noise_multiplier: float, steps: int, batch: int, rate: float) -> Regime:
    """Where such a run stands, with one target and the calendar's channels."""
    network = NetworkConfig.model_validate(
        {"target_channels": 1, "covariate_channels": 6, "length": length} | SIZES[SIZE]
    )
    training = TrainingConfig.model_validate({"steps": steps, "batch_size": batch, "learning_rate": rate})
    return regime(parameter_count(network), network.width, noise_multiplier, training)


def recommended(config: RunConfig, layout: PrivateLayout, minutes: float = MINUTES, **given: object) -> RunConfig:
    """The configuration with the proposal for everything that the user has not `given` (steps, batch_size, size: else None).

    For runs that are `TrainRequest.planned`. `layout` is that of the training part.
    """
    privacy = config.privacy
    assert privacy is not None
    begins = config.start is not None
    found = propose_for(layout, privacy, minutes=minutes, begins=begins)
    training = config.training.model_dump() | {
        name: value for name, value in found.training.items() if given.get(name) is None
    }
    training["warmup"] = min(training["warmup"], max(training["steps"] // 10, 1))
    network = config.network.model_dump()
    if (
        given.get("size") is None and config.start is None and len(config.network.bounds) == 1
    ):  # else made for this depth
        network |= SIZES[found.size]
    if "draws" not in privacy.model_fields_set:
        privacy = privacy.model_copy(update={"draws": found.draws})
    changed = {"training": training, "network": network, "privacy": privacy.model_dump()}
    return RunConfig.model_validate(config.model_dump() | changed)


def propose_for(
    layout: PrivateLayout, privacy: Privacy, *, minutes: float = MINUTES, cores: int = CORES, begins: bool = False
) -> Proposal:
    """The plan for the training part of a series: N and k are counted on its public layout."""
    assert privacy.epsilon is not None
    windows, touched, examples = layout.windows, layout.contribution(), layout.count.examples
    layout.refuse_single()
    return propose(
        examples,
        privacy.epsilon,
        privacy.delta,
        unit=privacy.unit,
        length=windows.length,
        contributions=touched.k,
        neighbour=touched.neighbour,
        minutes=minutes,
        cores=cores,
        begins=begins,
    )
