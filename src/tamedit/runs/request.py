"""All that a user may choose about a run, each choice once: its name, its default, its help text, its check.

`tamedit.fit`, `tamedit train`, `tamedit plan` and `tamedit demo` build a `TrainRequest`; `training.requested` carries it out.
What changes speed alone is not part of it (`runs.config.Speed`).
"""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from tamedit.choices import Anchor, Choices, Engine, Operator, Scale, Size, Tightness, Tuning
from tamedit.errors import UserError
from tamedit.privacy.settings import Privacy

if TYPE_CHECKING:
    from tamedit.data.study import Study

MINUTES = 10.0  # of a plan
SHORTEST = 8  # rows of a window
HOMES, SIMULATED = (
    "homes",
    "simulated",
)  # stand for a run to begin from: the shipped model, or one that is trained first
OF_PRIVATE_RUNS = ("minutes", "ledger", "private_bounds", "lower", "upper")
OF_A_BEGINNING = ("tuning", "rank", "public")
RENAMED = {"folder": "out", "tune": "tuning", "init_is_public": "public"}  # earlier names


class TrainRequest(Choices):
    """What to train, from what, how, and what is publicly known of the data. All but the data itself."""

    out: Path | None = Field(default=None, description="Folder of the run: its model, its ledger and its checkpoint.")
    engine: Engine = Field(
        default="diffusion",
        description="What learns: a diffusion transformer, or private evolution of simulated homes, which generates loads "
        "of homes and nothing else.",
    )
    scale: Scale = Field(
        default="laptop",
        description="Size of the run: smoke takes seconds, laptop minutes; paper is the published size.",
    )
    steps: int | None = Field(default=None, ge=1, description="Training steps, instead of the scale's or the plan's.")
    seed: int = Field(default=0, ge=0, description="Seed of every random stream.")
    anchor: Anchor = Field(
        default="free",
        description="What the network learns: how values lie in the training-free distribution, or (none) the paper's form.",
    )
    bounds: Tightness = Field(
        default="medium",
        description="How tightly condition and modulation are bounded; off is the ordinary AdaLN-Zero.",
    )
    operator: Operator = Field(default="tanh", description="How the modulation is bounded.")
    reference: Path | None = Field(
        default=None, description="File of magnitudes that `bounds` scales, measured by `tamedit diagnose`."
    )
    by_block: bool = Field(default=False, description="With `reference`: every block has bounds of its own.")
    init: Any = Field(
        default=None,
        description="Begin from `homes` (the shipped model of simulated homes: for loads), from the model of a run on public "
        "data, or from `simulated` homes that are trained on first.",
    )
    tuning: Tuning = Field(default="all", description="With `init`: which parameters are trained.")
    rank: int = Field(default=4, ge=1, description="Rank of low_rank corrections.")
    public: bool = Field(
        default=False, description="With `init`: you state that the data of that run is public or simulated."
    )
    size: Size | None = Field(default=None, description="Size of the network, instead of the scale's or the plan's.")
    window: int | None = Field(
        default=None, ge=SHORTEST, description="Rows in a window, instead of what the series suggest."
    )
    period: int | None = Field(default=None, ge=1, description="Rows in a season (24 for hourly data).")
    batch_size: int | None = Field(
        default=None, ge=1, description="Examples per step (in a private run, the expected number)."
    )
    privacy: Privacy | None = Field(default=None, description="Train privately: `Privacy(epsilon=8, unit='week')`.")
    minutes: float = Field(
        default=MINUTES, ge=0.1, description="Time that the plan of a private run may take on 2 cores, about."
    )
    ledger: Path | None = Field(
        default=None,
        description="Ledger of the data set: `epsilon` is for all runs in it together. By default it lies beside the data.",
    )
    private_bounds: bool = Field(
        default=False,
        description="With `init`: set the bounds by magnitudes of this data, measured with noise; the budget pays.",
    )
    lower: tuple[float, ...] | None = Field(
        default=None,
        description="Public fact: no reading lies below. With `upper`, level and scale are measured with noise; the budget pays.",
    )
    upper: tuple[float, ...] | None = Field(default=None, description="Public fact: no reading lies above.")
    non_negative: bool = Field(default=False, description="Public fact: readings cannot be negative.")
    typical_level: tuple[float, ...] | None = Field(
        default=None, description="Public fact: a usual value, one number per target."
    )
    typical_scale: tuple[float, ...] | None = Field(
        default=None, description="Public fact: a usual spread, one number per target."
    )
    study: Any = Field(
        default=None,
        description="Public fact: the extent of the study, such as 2023-01-01/2024-01-01 (first day, day after the last). If not "
        "stated, a private run takes the whole months around the stamps.",
    )
    train_until: str | None = Field(default=None, description="Public fact: the date at which training ends.")
    validate_until: str | None = Field(default=None, description="Public fact: the date at which validation ends.")
    resume: bool = Field(default=False, description="Continue the run in `out`.")
    reading: dict[str, Any] = Field(default={}, description="How to read a table: arguments of `tamedit.read`.")

    @classmethod
    def flat(cls, **chosen: Any) -> Self:
        """From names side by side, those of `Privacy` among the others, as a command line or a form has them."""
        private = {name: chosen.pop(name) for name in Privacy.model_fields if name in chosen}
        if private and not private.keys() & {"epsilon", "noise_multiplier"}:
            raise UserError(f"`{next(iter(private))}` belongs to private training; add `privacy`, or leave it out.")
        return cls(**chosen, privacy=Privacy(**private) if private else None)

    @property
    def private(self) -> bool:
        return self.privacy is not None

    @property
    def dates(self) -> "Study | None":
        """The dates of the study, as far as they are stated."""
        if (self.study, self.train_until, self.validate_until) == (None, None, None):
            return None
        from tamedit.data.study import Study

        return Study.stating(self.study, self.train_until, self.validate_until)

    @property
    def planned(self) -> bool:
        """Whether a proposal decides what was not chosen: a budget, in blocks, at the scale laptop."""
        privacy = self.privacy
        if privacy is None or privacy.epsilon is None or privacy.noise_multiplier is not None:
            return False
        return privacy.layout == "blocks" and self.scale == "laptop"

    @model_validator(mode="before")
    @classmethod
    def _of_today(cls, given: Any) -> Any:
        for old, new in RENAMED.items():
            if isinstance(given, dict) and old in given:
                raise UserError(f"{old}= is now called {new}=; write {new}={given[old]!r}.")
        return given

    @field_validator("privacy", mode="before")
    @classmethod
    def _asked(cls, value: Any) -> Any:
        if value is not None and not isinstance(value, Privacy):
            raise UserError(
                f"privacy={value!r} is no request for privacy; write privacy=tamedit.Privacy(epsilon=8, unit='week')."
            )
        return value

    @field_validator("init", mode="after")
    @classmethod
    def _beginning(cls, value: Any) -> Any:
        if value is None or isinstance(value, str | Path):
            return value
        from tamedit.runs.start import Initial

        if not isinstance(value, Initial):
            raise UserError(f"init={value!r} is no beginning; name the folder of a run, 'homes' or 'simulated'.")
        return value

    @field_validator("reading", mode="after")
    @classmethod
    def _static(cls, value: dict[str, Any]) -> dict[str, Any]:
        """Attributes in one form, however they were written, so that a run finds them again."""
        if value.get("static") is None:
            return value
        from tamedit.statics import as_mapping, stated

        return {**value, "static": as_mapping(stated(value["static"]))}

    @field_validator("lower", "upper", "typical_level", "typical_scale", mode="before")
    @classmethod
    def _numbers(cls, value: Any, field: ValidationInfo) -> Any:
        """One number where one will do, several, or a text of several with commas between."""
        try:
            parts = value.split(",") if isinstance(value, str) else value
            return value if value is None else tuple(map(float, parts if hasattr(parts, "__iter__") else [parts]))
        except (TypeError, ValueError):
            raise UserError(
                f"{field.field_name}={value!r} is not a list of numbers; give one number per target, such as 0.35."
            ) from None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        """A choice that would have no effect is a mistake, and a wish for privacy must not be passed over in silence."""
        given, off = self.model_fields_set, self.bounds == "off"
        for name in OF_PRIVATE_RUNS:
            if name in given and not self.private:
                raise UserError(f"`{name}` belongs to private training; add `privacy`, or leave it out.")
        for name in OF_A_BEGINNING:
            if name in given and self.init is None:
                raise UserError(f"`{name}` belongs to `init`; add `init`, or leave it out.")
            if name in given and not isinstance(self.init, str | Path):
                raise UserError(f"`init` is a loaded model; give `{name}` to `load_initial_run`, which loaded it.")
        wrong = {
            "`minutes` is the time of a plan: it needs a budget, in blocks, at scale='laptop'; leave it out.": (
                "minutes" in given and not self.planned
            ),
            "engine='evolution' learns from votes with noise and needs `privacy`; add it, or leave `engine` out.": (
                self.engine == "evolution" and not self.private
            ),
            "engine='evolution' begins from the simulator and has no `init`; leave one of them out.": (
                self.engine == "evolution" and self.init is not None
            ),
            "engine='evolution' learns who the homes are by its votes; leave `population` out.": (
                self.engine == "evolution" and self.privacy is not None and self.privacy.population
            ),
            "engine='evolution' knows no attributes of homes; leave out `static`, or `engine`.": (
                self.engine == "evolution" and self.reading.get("static") is not None
            ),
            "`rank` is that of low_rank corrections; add tuning='low_rank', or leave it out.": (
                "rank" in given and self.tuning != "low_rank"
            ),
            "`operator` says how to bound, and bounds='off' bounds nothing; leave one of them out.": (
                "operator" in given and off
            ),
            "`reference` has magnitudes that `bounds` scales, and bounds='off' bounds nothing; leave one of them out.": (
                self.reference is not None and off
            ),
            "`public` is about the data of a run that you name, and simulated homes are nobody's; leave it out.": (
                self.public and str(self.init) in (HOMES, SIMULATED)
            ),
            f"size={self.size!r} and `init` exclude each other: the initial model keeps its size; leave one out.": (
                self.size is not None and self.init is not None
            ),
            "`private_bounds` measures private data with a model to begin from and sets the bounds of a preset: it needs "
            "`privacy`, `init` and `bounds` other than off.": self.private_bounds and (self.init is None or off),
            "`by_block` needs `reference`, a file with magnitudes of every block, measured by `tamedit diagnose`.": (
                self.by_block and self.reference is None
            ),
            "`resume` continues a run that was kept in a folder; name the folder with `out`.": (
                self.resume and self.out is None
            ),
        }
        _ = self.dates  # says what is wrong with a date
        for sentence, applies in wrong.items():
            if applies:
                raise UserError(sentence)
        check_facts(self, self.private)
        return self


def check_facts(facts: Any, private: bool) -> None:
    """Raise one sentence if the public facts of a request, or of a run, cannot be used or would be ignored."""
    for one, other in (("typical_level", "typical_scale"), ("lower", "upper")):
        first, second = getattr(facts, one), getattr(facts, other)
        if (first is None) != (second is None) or (first and len(first) != len(second)):
            raise UserError(f"`{one}` and `{other}` must both be given, with one number per target.")
        if not all(map(math.isfinite, (*(first or ()), *(second or ())))):
            raise UserError(f"`{one}` and `{other}` must be finite numbers.")
    if facts.lower is None:
        return
    if not private or facts.typical_scale is not None:
        raise UserError(
            "`lower` and `upper` are for a level and scale that are estimated privately: they need `privacy`, and no "
            "`typical_level` and `typical_scale`."
        )
    if any(low >= high for low, high in zip(facts.lower, facts.upper, strict=True)):
        raise UserError("`lower` must be below `upper` for every target.")
