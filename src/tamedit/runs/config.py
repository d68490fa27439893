"""What a training run may choose. Validated, frozen, written with the run."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt


class TrainingConfig(BaseModel):
    """The optimiser and its schedule. The defaults are the paper's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    steps: PositiveInt = 20_000
    batch_size: PositiveInt = 96
    learning_rate: PositiveFloat = 7e-4
    weight_decay: NonNegativeFloat = 2e-5
    warmup: NonNegativeInt = 1000
    decay: Literal["constant", "cosine"] = "constant"
    ema: float = Field(0.999, ge=0, lt=1)
    validate_every: PositiveInt = 1000
    noise_correction: bool = False  # remove the bias of the noise from Adam's second moment; for private runs
    select: Literal["last", "best"] = "last"  # which weights become the model; "best" looks at validation data

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0: linear warm-up, then constant or half a cosine down to 2 %."""
        import math

        rise = min(1.0, (step + 1) / self.warmup) if self.warmup else 1.0
        if self.decay == "constant":
            return self.learning_rate * rise
        done = min(1.0, step / self.steps)
        return self.learning_rate * rise * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * done)))


class Speed(BaseModel):
    """Settings that change how fast a run is and nothing else."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    device: str = "auto"
    threads: NonNegativeInt = 0  # 0: torch's choice
    checkpoint_seconds: PositiveFloat = 60.0
    log_every: PositiveInt = 20
    diagnose_every: NonNegativeInt | None = None  # steps between records of the gradients; None: see `recorded_every`

    def recorded_every(self, private: bool) -> int:
        """Every step of a private run, where it costs nothing; else none (0), because it costs a backward pass."""
        return int(private) if self.diagnose_every is None else self.diagnose_every
