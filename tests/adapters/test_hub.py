"""The Hub's real library on folders; of the network, only the upload is replaced."""

import json
import shutil
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
import torch
from huggingface_hub import ModelCard, ModelHubMixin

from released_runs import LIST, made
from tamedit.errors import UserError
from tamedit.runs.release import release
from tamedit.runs.verification import verify
from tamedit.tasks.model import Model


@pytest.fixture(scope="module")
def run(remembered: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("hub") / "run")


@pytest.fixture(scope="module")
def released(run: Path) -> Path:
    release(run, run.parent / "release", curator="Example Grid", purpose="fill gaps")
    return run.parent / "release"


@pytest.fixture
def uploads(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What would have been uploaded: the arguments, and the files with their content."""
    seen: list[dict[str, Any]] = []

    def create(self: Any, repo_id: str, **options: Any) -> Any:
        return huggingface_hub.RepoUrl(f"https://huggingface.co/{repo_id}")

    def upload(self: Any, *, folder_path: Path, **options: Any) -> str:
        files = {path.name: path.read_bytes() for path in Path(folder_path).iterdir()}
        seen.append({**options, "files": files})
        return "https://huggingface.co/commit"

    monkeypatch.setattr(huggingface_hub.HfApi, "create_repo", create)
    monkeypatch.setattr(huggingface_hub.HfApi, "upload_folder", upload)
    return seen


def same(one: Model, other: Model) -> bool:
    pairs = zip(one.network.parameters(), other.network.parameters(), strict=True)
    return one.spec == other.spec and all(torch.equal(a, b) for a, b in pairs)


def test_a_folder_is_saved_and_read_offline(run: Path, tmp_path: Path) -> None:
    """A model that is no release: its two files, and a page that says so."""
    model = Model.from_pretrained(run, device="cpu")
    model.save_pretrained(tmp_path / "copy")
    assert {path.name for path in (tmp_path / "copy").iterdir()} == {"model.json", "model.safetensors", "README.md"}
    assert same(Model.from_pretrained(tmp_path / "copy", device="cpu"), model)
    assert "Not a release" in ModelCard.load(tmp_path / "copy" / "README.md").text


def test_a_copy_of_a_release_verifies_and_its_page_has_the_cards(released: Path, tmp_path: Path) -> None:
    Model.load(released, "cpu").save_pretrained(tmp_path / "copy", license="cc-by-4.0")
    assert {path.name for path in (tmp_path / "copy").iterdir()} == {*LIST, "README.md"}
    found = verify(tmp_path / "copy")
    assert found.problems == ()
    assert "not of the release, and not checked: README.md" in found.notes
    card = ModelCard.load(tmp_path / "copy" / "README.md")
    assert (card.data.pipeline_tag, card.data.library_name) == ("time-series-forecasting", "tamedit")
    assert card.data.license == "cc-by-4.0"
    privacy = json.loads((released / "privacy-card.json").read_bytes())
    told = card.data.to_dict()["differential_privacy"]
    assert told["epsilon"] == {row["unit"]: row["epsilon"] for row in privacy["units"]}
    assert set(told["epsilon"]) == {"window", "record", "day", "week", "series"}
    assert (told["unit"], told["delta"]) == ("day", privacy["statement"]["delta"])
    for text in ("The same training, for every unit", "Example Grid", "**What the data is:** time series of"):
        assert text in card.text


def test_what_is_uploaded_is_the_release_and_its_page(released: Path, uploads: list[dict[str, Any]]) -> None:
    model = Model.load(released, "cpu")
    with torch.no_grad():  # what happens in memory stays there
        next(model.network.parameters()).add_(1)
    url = model.push_to_hub("someone/meters", license="apache-2.0", private=True, commit_message="first")
    assert url == "https://huggingface.co/commit"
    (sent,) = uploads
    assert (sent["repo_id"], sent["commit_message"]) == ("someone/meters", "first")
    page = sent["files"].pop("README.md").decode()
    assert "license: apache-2.0" in page
    assert sent["files"] == {path.name: path.read_bytes() for path in released.iterdir()}


def test_nothing_else_is_uploaded(run: Path, released: Path, tmp_path: Path, uploads: list[dict[str, Any]]) -> None:
    with pytest.raises(UserError, match=r"^Only a release may be uploaded, and this model is not from one; [^.]+\.$"):
        Model.load(run, "cpu").push_to_hub("someone/meters", license="mit")
    model = Model.load(run, "cpu")
    with pytest.raises(UserError, match="Only a release may be uploaded"):
        Model(model.network, model.spec).push_to_hub("someone/meters", license="mit")
    changed = shutil.copytree(released, tmp_path / "changed")
    (changed / "notes.txt").write_text("a reading: 7.25")
    with pytest.raises(UserError, match=r"not as it was released: notes.txt does not belong to the release\.$"):
        Model.load(changed, "cpu").push_to_hub("someone/meters", license="mit")
    assert uploads == []


def test_a_repository_is_read_from_the_cache_of_the_library(released: Path, tmp_path: Path) -> None:
    """As the library leaves a download: snapshots by commit, and a reference to one."""
    commit = "0123456789abcdef0123456789abcdef01234567"
    place = tmp_path / "models--someone--meters"
    shutil.copytree(released, place / "snapshots" / commit)
    (place / "refs").mkdir()
    (place / "refs" / "main").write_text(commit)
    found = Model.from_pretrained("someone/meters", device="cpu", cache_dir=tmp_path, local_files_only=True)
    assert isinstance(found, ModelHubMixin)
    assert same(found, Model.load(released, "cpu"))


def test_what_is_not_there_is_said_in_one_sentence(tmp_path: Path) -> None:
    for name in ("someone/other", "a/b/c"):
        with pytest.raises(UserError, match=f"^{name} is no folder here, and no model could be had from a repository"):
            Model.from_pretrained(name, cache_dir=tmp_path, local_files_only=True)
