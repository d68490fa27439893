"""How much synthetic homes resemble real ones: measures, the table that sets them side by side, and alarms for leaks.

table = fidelity_table(held_out, {"model": homes, "other real homes": others})
print(table.frame())
"""

from tamedit.evaluation.fidelity.leaks import Alarms, leak_alarms
from tamedit.evaluation.fidelity.reference_fleets import independent_hours, simulated_homes
from tamedit.evaluation.fidelity.side_by_side import FidelityTable, Score, fidelity, fidelity_table

__all__ = [
    "Alarms",
    "FidelityTable",
    "Score",
    "fidelity",
    "fidelity_table",
    "independent_hours",
    "leak_alarms",
    "simulated_homes",
]
