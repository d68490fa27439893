"""The page of synthetic homes beside real ones: the fidelity table, the leak alarms, and pictures. It is not private."""

from functools import partial
from pathlib import Path

import tamedit
from tamedit import formatting
from tamedit.data.series import Series
from tamedit.evaluation.fidelity import Alarms, FidelityTable
from tamedit.evaluation.fidelity.measures import MEASURES
from tamedit.figures.fleet_figures import fleet_shapes, fleet_weeks
from tamedit.figures.report_figures import embedded
from tamedit.files import write_text


def write_page(
    table: FidelityTable,
    alarms: Alarms | None,
    real: Series,
    synthetic: Series,
    target: str | None,
    out: Path,
    without: str | None = None,
) -> Path:
    """Write the page, all of it or nothing. `without`: why there are no alarms."""
    environment = formatting.templates()
    environment.filters["significant"] = formatting.significant
    text = environment.get_template("fidelity.html.j2").render(
        version=tamedit.__version__,
        table=table,
        measures=MEASURES,
        alarms=alarms,
        without=without,
        weeks=embedded(partial(fleet_weeks, real, synthetic, target=target)),
        shapes=embedded(partial(fleet_shapes, real, synthetic, target=target)),
    )
    write_text(out, text.encode("utf-8", "replace").decode("utf-8") + "\n")
    return out
