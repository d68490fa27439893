"""The cards of a release: what a model is, and what is promised about the people in its training data.

A card is data first. Everything in it follows from the model file, the ledger and what the manifest says, so that anyone who has
the release can derive it again (`verification.py`). The privacy card has the fields of the most detailed tier of the OpenDP
Differential Privacy Deployments Registry, under its names. Markdown and HTML are two renderings of that one file.
"""

import math
from typing import Any

from markupsafe import Markup, escape

from tamedit import formatting
from tamedit.data.reading.grid import spoken, step_of
from tamedit.formatting import counted, significant
from tamedit.privacy.entries import Record
from tamedit.privacy.grades import HARDLY_ANY, grade
from tamedit.privacy.statement import UNIT_WORDS, Statement, Together, side_by_side
from tamedit.runs.artifact import ModelSpec
from tamedit.runs.regime import parameter_count

MODEL_CARD, PRIVACY_CARD, CARD_PAGE = "model-card.md", "privacy-card.json", "privacy-card.md"
TEMPLATES = {
    MODEL_CARD: "model_card.md.j2",
    CARD_PAGE: "privacy_card.md.j2",
    "privacy-card.html": "privacy_card.html.j2",
}
REGISTRY = "OpenDP Differential Privacy Deployments Registry, tier 3"
STATED = ("curator", "purpose", "region", "sector", "reasons")  # what only the people who release can say
SHORT_NAMES = {  # how a sentence about something that is not covered begins, and the name that acknowledges it
    "losses": "logs",
    "The level and scale": "scaling",
    "the data of the model that training began from": "beginning",
    "the data that the bounds were measured on": "bounds",
    "the data that the student learned on": "distillation",
    "days and weeks by the clock": "clock",
}
STAYS_BEHIND = ("logs",)  # not in a release, so nobody has to acknowledge it
NO_PRIVACY, NO_PROTECTION = "without-privacy", "hardly-any-protection"


def short_name(gap: str) -> str:
    """A word or two for something that is not covered."""
    for beginning, name in SHORT_NAMES.items():
        if gap.startswith(beginning):
            return name
    words = "".join(letter if letter.isalnum() else " " for letter in gap.lower()).split()
    return "-".join(word for word in words if word not in ("the", "a", "of", "that"))[:24].strip("-")


def derived(spec: ModelSpec, record: Record | None) -> Statement:
    """The statement of a model, derived from the ledger; the data set's own ledger stays behind, so its sum is taken as said."""
    if record is None:
        return Statement.without_privacy()
    together = spec.privacy.get("together")
    besides = spec.student.not_covered if spec.student else ()
    return Statement.of(record, together=Together(**together) if together else None, not_covered=besides)


def gaps(statement: Statement) -> dict[str, str]:
    """All that a release of this model does not cover, by short name."""
    if not statement.private:
        return {NO_PRIVACY: str(statement).rstrip(".")}
    found: dict[str, str] = {}
    for gap in statement.not_covered:
        name = short_name(gap)
        found[name] = "; ".join([*([found[name]] if name in found else []), gap.rstrip(".")])
    if statement.protection == HARDLY_ANY:
        found[NO_PROTECTION] = "hardly anything: an ε or a δ this large promises nothing that matters"
    return {name: gap for name, gap in found.items() if name not in STAYS_BEHIND}


def privacy_card(spec: ModelSpec, record: Record | None, released: dict[str, Any]) -> dict[str, Any]:
    """The privacy card. `released` is what the manifest says: version, date, what was stated, acknowledged and digested."""
    statement = derived(spec, record)
    said = {name: released["stated"].get(name) or "not stated" for name in STATED}
    return {
        "format": 1,
        "registry": REGISTRY,
        "private": statement.private,
        "deployment": {
            "basic": {
                "name": f"Model of {_listed(spec.targets)}",
                "description": f"A diffusion transformer of {parameter_count(spec.network):,} numbers that fills gaps, forecasts "
                "and generates such series.",
                "data_product_type": "machine-learning model",
                "intended_use": said["purpose"],
                "data_curator": said["curator"],
                "data_product_region": said["region"],
                "data_product_sector": said["sector"],
                "publication_date": released["made"],
            },
            **({} if record is None else _fields(spec, record, statement, said["reasons"], released)),
        },
        "units": [] if record is None else _units(record, statement),
        "not_covered": gaps(statement),
        "checks": _checks(bool(released["signed_by"])),
        "cannot_be_checked": "that the ledger is complete (nothing else was trained on this data elsewhere), that what was "
        "called public is public, and that one meter is one home. For that, one has to trust the curator.",
        "statement": statement.to_dict(),
        "released": released,
    }


def rendered(card: dict[str, Any], spec: ModelSpec) -> dict[str, str]:
    """The texts of a card, by file name. Whatever they are given is escaped, so no name in the data can become markup."""
    environment = formatting.templates()
    environment.filters |= {"epsilon": formatting.epsilon, "significant": significant, "short": "{:g}".format}
    environment.filters |= {"thousands": "{:,}".format, "cell": _cell}
    given = {"card": card, "spec": spec, **card["deployment"], "hardly_any": HARDLY_ANY}
    given |= {"no_privacy": NO_PRIVACY, "parameters": parameter_count(spec.network)}
    return {name: environment.get_template(template).render(given) + "\n" for name, template in TEMPLATES.items()}


def _fields(
    spec: ModelSpec, record: Record, statement: Statement, reasons: str, released: dict[str, Any]
) -> dict[str, Any]:
    """The registry's fields about the guarantee."""
    said, plan = statement.to_dict(), record.segments[-1].plan
    contribution = statement.contribution
    assert contribution is not None
    changed = "present or absent" if contribution.neighbour == "removal" else "changed"
    steps = " and ".join(
        f"{counted(one.count, 'release')} at rate q = {significant(one.sampling_rate, 4)} with noise σ = "
        f"{significant(one.noise_multiplier, 4)}"
        for one in statement.mechanisms
    )
    return {
        "dp_flavor": {
            "name": "approximate differential privacy, (ε, δ)",
            "data_domain": f"time series of {_listed(spec.targets)}: real numbers or missing, one row every "
            f"{spoken(step_of(spec.frequency_seconds))} ({record.segments[-1].data.rpartition('/')[2]})",
            "input_metric": f"two data sets are neighbours if one unit is {changed}, and with it at most "
            f"{counted(contribution.k, 'training example')} ({contribution.reason})",
            "unprotected_quantities": _public(statement),
        },
        "privacy_loss": {
            "privacy_unit": statement.unit,
            "privacy_unit_description": UNIT_WORDS.get(statement.unit or "", statement.unit),
            "privacy_parameters": {"epsilon": said["epsilon"]["headline"], "delta": said["delta"]},
            "privacy_parameters_description": f"an upper bound, by {said['accountant']}, for everything in the ledger together; "
            f"N = {statement.examples:,} examples",
        },
        "deployment_model": {
            "model_name": "central",
            "model_name_description": "The curator holds the readings and trains; the noise is added while training, before "
            "anything leaves.",
            "actors": "The curator is trusted with the readings. Whoever receives this folder is not trusted.",
            "release_type": "one release; the readings stay where they are",
            "access_type": "not interactive: the model leaves, and nobody asks the data again",
        },
        "accounting": {
            "composition": f"{steps}; {counted(statement.segments, 'segment')} in the ledger, all added up. Each use of the "
            f"readings is written to the ledger before it happens.{_others(said)}",
            "post_processing": "What is computed from the model alone (synthetic series, further training on other data) costs "
            "no more privacy. A gap that is filled, or a forecast, shows the series that was given to the model for it.",
        },
        "implementation": {
            "software": f"tamedit {released['version']}, accounting by dp-accounting",
            "pre_processing_eda_hyperparameter_tuning": f"Level and scale of the readings: {spec.scaling_of().origin}. Settings "
            "count as public. Choices that someone made by looking at the data, or at several runs outside this ledger, are "
            "not covered.",
            "mechanisms": f"In each step every example is drawn with probability q (Poisson), its gradient is shortened to C = "
            f"{plan.clip:g}, the gradients are added up, and Gaussian noise of deviation σ · C is added to the sum.",
            "security": f"Noise: {'; '.join(statement.noise)}. Time, memory and other side channels of training are not covered.",
            "justification": reasons,
        },
    }


def _units(record: Record, statement: Statement) -> list[dict[str, Any]]:
    """ε of the same training for every unit, and how sure an attacker can become who thought it one to one."""
    rows = []
    for unit, one in side_by_side(record).items():
        value = None if one["epsilon"] is None else one["epsilon"]["headline"]
        rows.append(
            {
                "unit": unit,
                "own": unit == statement.unit,
                "words": UNIT_WORDS[unit],
                "examples": one.get("contributions"),
                "epsilon": value,
                "protection": grade(value),
                "certainty": _certainty(value),
                "reason": one["reason"],
            }
        )
    return rows


def _others(said: dict[str, Any]) -> str:
    """What the curator's ledger of the data set says about all runs together; it is not part of a release."""
    if not (together := said.get("together")):
        return ""
    spent = formatting.epsilon(together["epsilon"])
    return (
        f" In the curator's ledger of the data set: {counted(together['runs'], 'private run')}, ε = {spent} together."
    )


def _checks(signed: bool) -> dict[str, str]:
    """What someone who trusts nobody can check with this folder alone, and how."""
    signer = "verify also takes the public key that the curator publishes elsewhere, and checks the signature"
    return {
        "No file was changed since the release": "tamedit verify FOLDER compares every digest",
        "ε follows from what was charged": "tamedit verify FOLDER derives it again from the ledger; any other accountant can, "
        "from the rates, the noise and the counts under composition",
        "What all runs on this data spent together": "not from this folder; tamedit verify FOLDER also takes the ledger of the "
        "data set, which the curator keeps, and derives it",
        "What attacks reach": "not from this folder: this card does not know whether an audit was made. Ask the curator for one: "
        "tamedit audit plants made-up homes in the same data, trains another model with the same settings, attacks it, and gives "
        "a lower bound on ε. A low one shows what these attacks can do, not that ε is too large",
        "Who released it": signer if signed else "not from this folder: it is not signed",
        "The software does what it says": "its source and its tests are open",
    }


def _certainty(epsilon: float | None) -> str:
    """e^ε / (1 + e^ε): what fifty per cent can become."""
    if epsilon is None:
        return "no limit"
    doubt = 100 / (1 + math.exp(min(epsilon, 700.0)))
    return f"{100 - doubt:.{2 if doubt < 1 else 0}f} %" if doubt >= 0.01 else "over 99.99 %"


def _public(statement: Statement) -> list[str]:
    """What the statement takes as public."""
    start = "Taken as public: "
    lines = [line.removeprefix(start).rstrip(".") for line in str(statement).splitlines() if line.startswith(start)]
    return [*lines, "the names of the channels, the step between rows and the size of the model"]


def _listed(names: tuple[str, ...], most: int = 6) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _cell(value: object) -> Markup:
    """A text that fits into a cell of a Markdown table, and in which nothing is markup. Quotes need no escape there."""
    plain = escape(" ".join(str(value).replace("|", "/").split())).replace("&#39;", "'").replace("&#34;", '"')
    return Markup(str(plain).replace("[", "\\[").replace("`", "'"))
