"""What came before a run and stays outside of its guarantee: the model that it begins from, the magnitudes of its bounds."""

from pathlib import Path
from typing import Literal, get_args

from pydantic import PositiveInt

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
    blocks: tuple[Bounds, ...] = ()  # the same magnitudes block by block, and the final layer's

    @classmethod
    def load(cls, path: Path, anchor: str, private: bool) -> "Reference":
        """A file, if a run of this form, private or not, may use it."""
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
                "measure anew."
            )
        if private and found.origin == "not public":
            raise UserError(
                f"reference={str(path)!r} was measured without noise on data that is not public, so no guarantee would cover "
                "what it reveals; measure on public or simulated data, or train without privacy."
            )
        return found

    def by_block(self, depth: int) -> tuple[Bounds, ...]:
        """One entry a block and the final layer's, for a network of this depth."""
        if len(self.blocks) != depth + 1:
            raise UserError(
                f"The reference has magnitudes of {max(len(self.blocks) - 1, 0)} blocks and the network {depth}; measure a run "
                "of the same size, or leave out `by_block`."
            )
        return self.blocks


class Start(Frozen):
    """What the initial weights are, and which parameters move on from there. Kept with the run."""

    source: str  # what they were trained on
    origin: Origin
    digest: str  # of the weights
    sizes: dict[str, int]  # depth, width, heads, mlp_ratio
    tuning: Tuning = "all"
    rank: PositiveInt = 4

    @property
    def sentence(self) -> str:
        """For the statement: what is outside of the guarantee because it came before."""
        return f"the data of the model that training began from ({self.source}), which {CLAIMED[self.origin]}"


class Measured(Frozen):
    """Where the reference magnitudes of the bounds were measured, if they are not the built-in ones. Kept with the run."""

    source: str
    origin: Origin

    @property
    def sentence(self) -> str:
        """For the statement: what is outside of the guarantee because it came before."""
        return f"the data that the bounds were measured on ({self.source}), which {CLAIMED[self.origin]}"
