"""What decides a run, and what decides its speed alone. Validated, frozen, written with the run."""

from typing import Any, Literal, Self

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from tamedit.choices import Frozen, Scale
from tamedit.diffusion.process import Process
from tamedit.model.zoo import NetworkConfig
from tamedit.privacy.settings import Privacy
from tamedit.runs.provenance import Measured, Start
from tamedit.windows.examples import ExampleConfig
from tamedit.windows.masks import MaskConfig


class TrainingConfig(Frozen):
    """The optimiser and its schedule. The defaults are the paper's."""

    steps: PositiveInt = 20_000
    batch_size: PositiveInt = 96
    learning_rate: PositiveFloat = 7e-4
    weight_decay: NonNegativeFloat = 2e-5
    warmup: NonNegativeInt = 1000
    decay: Literal["constant", "cosine"] = "constant"
    ema: float = Field(0.999, ge=0, lt=1)
    validate_every: PositiveInt = 1000
    select: Literal["last", "best"] = "last"  # which weights become the model; "best" looks at validation data

    @classmethod
    def of_scale(cls, scale: Scale, steps: int | None, batch_size: int | None, paper_form: bool, private: bool) -> Self:
        """The optimiser of a scale."""
        if scale == "smoke":
            chosen: dict[str, Any] = {"steps": 60, "batch_size": 16, "warmup": 10, "validate_every": 30, "ema": 0.9}
        elif scale == "laptop":
            chosen = {"steps": 1500, "batch_size": 64, "warmup": 200, "validate_every": 250, "decay": "cosine"}
            if private:
                chosen |= {"steps": 400, "batch_size": 128, "warmup": 20, "ema": 0.98, "learning_rate": 1e-3}
            elif not paper_form:
                chosen |= {"learning_rate": 1e-3, "select": "best"}
        else:
            chosen = {}
        if batch_size is not None:
            chosen["batch_size"] = batch_size
        if steps is not None:
            chosen["steps"] = steps
            if scale != "paper":
                chosen["warmup"] = min(chosen["warmup"], max(steps // 10, 1))
        return cls(**chosen)

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0: linear warm-up, then constant or half a cosine down to 2 %."""
        import math

        rise = min(1.0, (step + 1) / self.warmup) if self.warmup else 1.0
        if self.decay == "constant":
            return self.learning_rate * rise
        done = min(1.0, step / self.steps)
        return self.learning_rate * rise * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * done)))


class RunConfig(Frozen):
    """Everything that decides a run; written to `run.json`, compared on resume."""

    source: str
    seed: int = 0
    window: PositiveInt
    stride: PositiveInt
    crop: PositiveInt | None = (
        None  # rows that training takes of a private block, from anywhere in it; None: a window's
    )
    calendar: bool = True
    scaling: Literal["instance", "public", "nonprivate"] = "instance"
    examples: ExampleConfig
    masks: MaskConfig
    network: NetworkConfig
    process: Process
    training: TrainingConfig
    privacy: Privacy | None = None
    start: Start | None = None  # None: at random
    reference: Measured | None = None  # None: the built-in magnitudes
    private_bounds: PositiveFloat | None = None  # the preset's share of magnitudes that are released with noise


class Speed(Frozen):
    """Settings that change how fast a run is and nothing else."""

    device: str = "auto"
    threads: NonNegativeInt = 0  # 0: torch's choice
    checkpoint_seconds: PositiveFloat = 60.0
    log_every: PositiveInt = 20
    diagnose_every: NonNegativeInt = 0  # steps between records of the gradients; 0: none, since they are not private
