"""The last table of the demo: what the private model gains over the best free guess, in plain words."""

import typer

from tamedit.evaluation.evaluate import Evaluation
from tamedit.evaluation.labels import LABELS
from tamedit.evaluation.task_table import TASKS
from tamedit.formatting import print_table

ASKED = {"CRPS": "every hour", "path_total_CRPS": "the total of the stretch"}
SURE = {"better": "better", "worse": "worse", "undecided": "not sure", "unknown": "too few"}


def gains_table(scores: Evaluation, budget: str) -> None:
    """One row per question, against the free guess that is hardest to beat there; then what it comes to."""
    rows = []
    for task in scores.tasks:
        for metric, what in ASKED.items():
            own, hardest = scores.of(task, "model").z[metric], scores.smallest_gain(task, metric)
            if own is None or hardest is None:
                continue
            method, gain = hardest
            best = own + gain.difference
            share = f"{gain.difference / best:+.1%}"
            rows.append((f"{TASKS[task].label}: {what}", own, best, LABELS[method], share, SURE[gain.outcome]))
    heads = ("what is asked", "private\nmodel", "best free\nguess", "which is", "gain", "is it\nsure?")
    print_table(f"CRPS on {scores.windows} test weeks, {budget}: less is better", heads, rows, words=(0, 3, 5))
    count = {word: sum(row[-1] == word for row in rows) for word in SURE.values()}
    typer.echo(
        "A free guess needs no training and no data but the week itself. Against the best of them, the private model is"
    )
    typer.echo(
        f"surely better at {count['better']} of {len(rows)} questions and surely worse at {count['worse']}; at the others "
        + ("the 95 % interval includes 0." if scores.resamples else "there are too few test weeks to say.")
    )
