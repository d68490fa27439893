"""Models on the Hugging Face Hub: folders there hold what a release holds, and a page made of its cards.

    model = tame.Model.from_pretrained("someone/meters")              a repository, or a folder (offline)
    model.save_pretrained("copy/")                                     its files and README.md
    tame.load("release/").push_to_hub("someone/meters", license="cc-by-4.0")

Only a release leaves: what is uploaded are the files of a folder that `release` wrote and that `verify` accepts, never what is in
memory. A `Model` is no `nn.Module` (it has one, and a specification), so this is `ModelHubMixin` and not its PyTorch kind.
"""

import json
import shutil
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCard, ModelCardData, ModelHubMixin, snapshot_download
from huggingface_hub.errors import HfHubHTTPError, HFValidationError

from tamedit.errors import UserError
from tamedit.privacy.entries import FILE_NAME as LEDGER
from tamedit.runs.artifact import SPECIFICATION, WEIGHTS, load_model
from tamedit.runs.cards import CARD_PAGE, MODEL_CARD, PRIVACY_CARD, TEMPLATES
from tamedit.runs.release import MANIFEST
from tamedit.runs.signature import SIGNATURE
from tamedit.runs.verification import verify
from tamedit.tasks.model import Model
from tamedit.training.device import choose_device

PIPELINE, LIBRARY = "time-series-forecasting", "tamedit"
WANTED = [WEIGHTS, SPECIFICATION, LEDGER, MANIFEST, SIGNATURE, PRIVACY_CARD, *TEMPLATES]  # the files of a release
TAGS = ["time-series", "imputation", "diffusion", "differential-privacy"]


class HubModel(ModelHubMixin, Model):
    """A `Model` that the Hub's library can save, load and upload."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._hub_mixin_config = None  # `model.json` says what a model is

    @classmethod
    def from_pretrained(cls, place: str | Path, *, device: str = "auto", **download: Any) -> "HubModel":
        """The model of a folder or a repository. (The library's own insists on a `config.json`, which a release has not.)"""
        folder = Path(place)
        if not folder.is_dir():
            try:
                folder = Path(snapshot_download(str(place), allow_patterns=WANTED, **download))
            except (HfHubHTTPError, HFValidationError, OSError) as error:
                raise UserError(
                    f"{place} is no folder here, and no model could be had from a repository of this name "
                    f"({type(error).__name__}); check the name, the network and your access."
                ) from error
        return cls(*load_model(folder, choose_device(device)), folder)

    def save_pretrained(self, folder: str | Path, *, license: str | None = None, **options: Any) -> None:
        """Write the files and README.md; `options` go to `ModelHubMixin.save_pretrained`."""
        page = options.pop("model_card_kwargs", None) or {"license": license}
        ModelHubMixin.save_pretrained(self, folder, model_card_kwargs=page, **options)

    def _save_pretrained(self, save_directory: Path) -> None:
        """The files of the release that the model came from, or the model alone."""
        if not _released(self.folder):
            self.save(save_directory)
            return
        assert self.folder is not None
        manifest = json.loads((self.folder / MANIFEST).read_bytes())
        for name in (*manifest["files"], MANIFEST, *([SIGNATURE] if manifest["signed_by"] else [])):
            shutil.copyfile(self.folder / name, save_directory / name)

    def push_to_hub(self, repo_id: str, *, license: str, **options: Any) -> str:
        """Upload the release that this model was loaded from; `license` is that of the model, as the Hub writes it.

        `options` go to `ModelHubMixin.push_to_hub`: private, token, branch, create_pr, commit_message.
        """
        if not _released(self.folder):
            raise UserError(
                "Only a release may be uploaded, and this model is not from one; write one with `release`, load that folder, and "
                "push it."
            )
        assert self.folder is not None
        if problems := verify(self.folder).problems:
            raise UserError(f"{self.folder} cannot be uploaded, because it is not as it was released: {problems[0]}.")
        options["model_card_kwargs"] = {"license": license}
        return str(ModelHubMixin.push_to_hub(self, repo_id, **options))

    def generate_model_card(self, license: str | None = None) -> ModelCard:
        """The page of the repository: the model card and the privacy card of the release, and ε of every unit as data."""
        about: dict[str, Any] = {"private": bool(self.spec.privacy.get("private"))}
        if _released(self.folder):
            assert self.folder is not None
            text = "\n".join((self.folder / name).read_text(encoding="utf-8") for name in (MODEL_CARD, CARD_PAGE))
            card = json.loads((self.folder / PRIVACY_CARD).read_bytes())
            about["delta"] = card["statement"]["delta"]
            about["epsilon"] = {row["unit"]: row["epsilon"] for row in card["units"]}
            about["unit"] = next((row["unit"] for row in card["units"] if row["own"]), None)
        else:
            text = f"# A model of {', '.join(self.spec.targets)}\n\n**Not a release.** {self.privacy}\n"
        data = ModelCardData(
            license=license,
            library_name=LIBRARY,
            pipeline_tag=PIPELINE,
            tags=TAGS,
            differential_privacy={name: value for name, value in about.items() if value is not None},
        )
        return ModelCard(f"---\n{data.to_yaml()}\n---\n\n{text}")


def as_hub_model(model: Model) -> HubModel:
    """The same model, with the Hub's methods."""
    return model if isinstance(model, HubModel) else HubModel(model.network, model.spec, model.folder)


def _released(folder: Path | None) -> bool:
    return folder is not None and (folder / MANIFEST).is_file()
