"""What came before a run and is not covered by its guarantee: the model that it starts from, the magnitudes of its bounds."""

from pathlib import Path
from typing import Literal, get_args

from pydantic import Field, PositiveInt

from tamedit.choices import Anchor, Frozen
from tamedit.errors import UserError
from tamedit.model.bounds import Bounds
from tamedit.model.tuning import Tuning

Origin = Literal["public", "said to be public", "not public"]  # of data that came before a guarantee
ORIGINS: tuple[Origin, ...] = get_args(Origin)  # the least public last
CLAIMED: dict[Origin, str] = {
    "public": "is public",
    "said to be public": "the user says is public or simulated",
    "not public": "is not public",
}


class Reference(Frozen):
    """(C₀, Γ₀, B₀, A₀) as `tamedit diagnose` measured them, and on what."""

    magnitudes: Bounds
    anchor: Anchor
    source: str
    origin: Origin
    quantile: float
    quantiles: dict[str, dict[str, float]]  # of ‖c‖, |γ|, |β|, |α|
    blocks: tuple[Bounds, ...] = ()  # the same magnitudes per block, and for the final layer
    share: float | None = None  # of the p99 that was best under noise (`diagnostics.under_noise`); None: the p99 itself
    scores: dict[str, float] = Field(default={})  # of every share that was tried; "0": without bounds

    @classmethod
    def load(cls, path: Path, anchor: str, private: bool) -> "Reference":
        """Read a file, if a run with this anchor may use it, privately or not."""
        try:
            found = cls.model_validate_json(path.read_text(encoding="utf-8"))
            if None in dict(found.magnitudes).values():
                raise ValueError("a magnitude is missing")
        except (OSError, ValueError) as error:
            raise UserError(
                f"reference={str(path)!r} cannot be read; make it with `tamedit diagnose` and `bounds`."
            ) from error
        if found.anchor != anchor:
            raise UserError(
                f"reference={str(path)!r} was measured with anchor={found.anchor!r} and this run has anchor={anchor!r}; "
                "measure again."
            )
        if private and found.origin == "not public":
            raise UserError(
                f"reference={str(path)!r} was measured without noise on data that is not public, so no guarantee would cover "
                "what it reveals; measure on public or simulated data, or train without privacy."
            )
        return found

    def by_block(self, depth: int) -> tuple[Bounds, ...]:
        """One entry per block and one for the final layer, for a network of this depth."""
        if len(self.blocks) != depth + 1:
            raise UserError(
                f"The reference has magnitudes of {max(len(self.blocks) - 1, 0)} blocks, the network has {depth}; measure a run "
                "of the same size, or leave out `by_block`."
            )
        return self.blocks


class Start(Frozen):
    """What the initial weights are, and which parameters are trained further. Stored with the run."""

    source: str  # what they were trained on
    origin: Origin
    digest: str  # of the weights
    sizes: dict[str, int]  # depth, width, heads, mlp_ratio
    tuning: Tuning = "all"
    rank: PositiveInt = 4

    @property
    def sentence(self) -> str:
        """For the statement: what the guarantee does not cover, because it came before."""
        stage = f"{self.source}; weights {self.digest}"
        return f"the data of the model that training began from ({stage}), which {CLAIMED[self.origin]}"


class Student(Frozen):
    """What a distilled model was made from: its teacher, and windows that nobody's privacy is in. Stored with the model."""

    teacher: str  # SHA-256 of its weights
    contexts: str  # where the windows came from
    steps: PositiveInt
    seed: int
    apart: float  # root mean square distance of its samples from the teacher's, in z, on fresh windows of that kind
    untrained: float  # the same of the teacher, asked as seldom

    @property
    def not_covered(self) -> tuple[str, ...]:
        """For the statement: data that is public by the user's word alone. Simulated homes and known public data need none."""
        words = CLAIMED["said to be public"]
        return (f"the data that the student learned on ({self.contexts})",) if self.contexts.endswith(words) else ()


class Measured(Frozen):
    """Where the reference magnitudes of the bounds were measured, if they are not the built-in ones. Stored with the run."""

    source: str
    origin: Origin

    @property
    def sentence(self) -> str:
        """For the statement: what the guarantee does not cover, because it came before."""
        return f"the data that the bounds were measured on ({self.source}), which {CLAIMED[self.origin]}"
