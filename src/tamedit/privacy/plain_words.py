"""What an ε means for people, in a paragraph: for the report and for the page of a run."""

import math
from typing import Any

from tamedit.formatting import deep
from tamedit.formatting import epsilon as shown
from tamedit.privacy.grades import HARDLY_ANY, grade
from tamedit.privacy.statement import SCALE, UNIT_WORDS


def in_words(said: dict[str, Any]) -> str:
    """A statement as data (`Statement.to_dict`), said to someone who has never heard of ε."""
    value = deep(said, "epsilon", "headline")
    if not said.get("private"):
        return (
            "Nothing is guaranteed to anyone whose readings are in the training data, so treat the model like the data. For a "
            "model with a guarantee, train with a privacy budget (epsilon)."
        )
    if said.get("test_only"):
        return "The noise of this run can be computed from its seed, so the numbers are for tests alone."
    if grade(value) == HARDLY_ANY:
        return "An ε this large promises hardly anything. Treat the model like the data it was trained on."
    if said.get("protection") == HARDLY_ANY:
        return (
            "A δ this large for so few examples promises hardly anything: publishing some of them outright would satisfy it. "
            "Treat the model like the data it was trained on."
        )
    practice = "; what attacks reach in practice is usually less" if value >= 1 else ""
    who = UNIT_WORDS.get(said["unit"], said["unit"])
    return (
        f"In words: someone holds the model files and tries to find out whether {who} was in the training data. They can raise "
        f"their odds by a factor of e^ε = {shown(math.exp(value))} at most, whatever else they know, except with a probability "
        f"of about δ = {said['delta']:g}. This is the worst case that the mathematics allows{practice}. Smaller is stronger: "
        f"{SCALE}. So this protection is {grade(value)}."
    )
