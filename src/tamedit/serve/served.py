"""What is served: the model of a run, of a release, or the one that ships with the package; and its privacy card.

A run's folder is read, never written. The card is made of its ledger and model file; the folder `not-private` is not opened.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tamedit.data.reading.grid import spoken, step_of
from tamedit.errors import UserError
from tamedit.formatting import counted
from tamedit.privacy.entries import FILE_NAME as LEDGER
from tamedit.runs.agreement import check_agreement
from tamedit.runs.artifact import SOFTWARE
from tamedit.runs.cards import PRIVACY_CARD, privacy_card
from tamedit.runs.release import MANIFEST
from tamedit.runs.request import HOMES
from tamedit.runs.verification import verify
from tamedit.serve.answers import can_sample
from tamedit.serve.messages import CardAnswer, CardUnit, ModelAnswer
from tamedit.serve.server_settings import Settings
from tamedit.tasks.evolved_fleet import is_evolved
from tamedit.tasks.model import Model

NOBODY = "The model that ships with the package has seen simulated homes only: there is nobody to protect."


@dataclass(frozen=True, eq=False)
class Served:
    """One model, loaded once, and its card."""

    name: str
    model: Model
    card: CardAnswer

    def answer(self, settings: Settings) -> ModelAnswer:
        spec = self.model.spec
        return ModelAnswer(
            name=self.name,
            words=repr(self.model),
            targets=list(spec.targets),
            covariates=list(spec.covariates),
            step_seconds=spec.frequency_seconds,
            step=spoken(step_of(spec.frequency_seconds)),
            window=spec.network.length,
            private=bool(spec.privacy.get("private")),
            statement=self.card.statement,
            samples=can_sample(self.model),
            upload_bytes=settings.upload_bytes,
        )


def load_served(source: str) -> Served:
    """The model of a folder, or `homes`: the one that ships with the package."""
    folder = Path(source)
    if source == HOMES and not folder.exists():
        model = Model.load(HOMES, "cpu")
        return Served("the shipped model of homes", model, _card_of(HOMES, model, None, NOBODY))
    if is_evolved(folder):
        raise UserError(
            f"{folder} was made by private evolution and has no network to play with; use tamedit generate."
        )
    model = Model.load(folder, "cpu")
    if (folder / MANIFEST).is_file():
        if problems := verify(folder).problems:
            raise UserError(
                f"{folder} is not as it was released ({problems[0]}); get it again from those who released it."
            )
        card = json.loads((folder / PRIVACY_CARD).read_text(encoding="utf-8"))
        return Served(folder.resolve().name, model, _card_of(folder.resolve().name, model, card, None))
    record = None
    if model.spec.privacy.get("private") and (folder / LEDGER).is_file():
        record = check_agreement(folder)[0]
    made: dict[str, Any] | None = None
    if record is not None:
        released: dict[str, Any] = {"version": SOFTWARE, "made": "not released", "stated": {}, "signed_by": None}
        made = privacy_card(model.spec, record, released)
    name = folder.resolve().name
    return Served(name, model, _card_of(name, model, made, None))


def _card_of(name: str, model: Model, card: dict[str, Any] | None, instead: str | None) -> CardAnswer:
    """The card in short. Without a ledger it is the model's own statement."""
    private = bool(model.spec.privacy.get("private"))
    if card is None:
        return CardAnswer(
            title=f"Model of {counted(len(model.spec.targets), 'target')}",
            private=private,
            released=False,
            statement=instead or model.privacy,
            units=[],
            not_covered=[] if instead else ["everything: nothing limits what this model may reveal"] * (not private),
            checks={},
            cannot_be_checked="",
        )
    units = [CardUnit.model_validate({field: row[field] for field in CardUnit.model_fields}) for row in card["units"]]
    return CardAnswer(
        title=f"{card['deployment']['basic']['name']} ({name})",
        private=bool(card["private"]),
        released=card["deployment"]["basic"]["publication_date"] != "not released",
        statement=str(card["statement"]["statement"]),
        units=units,
        not_covered=list(card["not_covered"].values()),
        checks=dict(card["checks"]),
        cannot_be_checked=str(card["cannot_be_checked"]),
    )
