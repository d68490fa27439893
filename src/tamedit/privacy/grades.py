"""ε in words: the one table that every statement, report and command reads. docs/privacy.md says where its borders come from."""

import math

GRADES = ((1.0, "strong"), (3.0, "moderate"), (10.0, "weak"), (math.inf, "hardly any"))  # up to this ε
HARDLY_ANY = GRADES[-1][1]


def grade(epsilon: float | None) -> str:
    """How much protection an ε is; None is an infinite one."""
    value = math.inf if epsilon is None or math.isnan(epsilon) else epsilon
    return next(word for limit, word in GRADES if value <= limit)
