"""Attacks on our own mechanism, and the lower bounds on ε that follow from how well they do.

    coins = toss(1000)
    finding = white_box(plan, coins)      # the real sampler, engine and noise; a run of gradient-space canaries
    print(finding)                        # the bounds beside the stated ε, and how to read them

A mechanism that keeps its promise gives bounds below the stated ε, except with the probability 1 − confidence.
"""

from tamedit.privacy.audit.claims import Claim, Gaussian
from tamedit.privacy.audit.dirac import DiracStep, along_canary, batch_size, observe, repeat
from tamedit.privacy.audit.finding import Finding, from_scores, per_step, toss, white_box
from tamedit.privacy.audit.one_run import guesses, one_run, one_run_curve
from tamedit.privacy.audit.repeated import Rates, held_out_rates, repeated_runs

__all__ = [
    "Claim",
    "DiracStep",
    "Finding",
    "Gaussian",
    "Rates",
    "along_canary",
    "batch_size",
    "from_scores",
    "guesses",
    "held_out_rates",
    "observe",
    "one_run",
    "one_run_curve",
    "per_step",
    "repeat",
    "repeated_runs",
    "toss",
    "white_box",
]
