"""The paper's figures are drawn from kept curves."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from made_results import result
from tamedit_paper.grid.measures import Runs
from tamedit_paper.tables.figures import draw, file_name
from tamedit_paper.tables.labels import FIGURES, figure


def made(label: str, seeds: int, some: slice = slice(None)) -> Runs:
    cells = figure(label).cells()[some]
    return Runs({cell: [result(cell, seed, norms={"cond": 1.0 + seed}) for seed in range(seeds)] for cell in cells})


def lines(path: Path) -> int:
    """How many curves an SVG has: paths that are no frame and no tick."""
    root = ElementTree.parse(path).getroot()
    groups = [one for one in root.iter() if (one.get("id") or "").startswith("line2d_")]
    return len(groups)


# One of each kind: the others differ in the number of panels alone, and drawing is slow.
KINDS = ["fig:grad_norm_distribution", "fig:clipping-behaviour-extended", "fig:training-loss-curves"]


@pytest.mark.parametrize("label", KINDS)
def test_png_and_svg_of_several_seeds(label: str, tmp_path: Path) -> None:
    paths = draw(figure(label), made(label, 2), tmp_path)
    assert [path.name for path in paths] == [f"{file_name(label)}.png", f"{file_name(label)}.svg"]
    assert paths[0].read_bytes().startswith(b"\x89PNG")
    more, fewer = lines(paths[1]), lines(draw(figure(label), made(label, 1), tmp_path / "one")[1])
    panels, each = figure(label).panels, {"norms": 6, "clipping": 1, "losses": 1}[figure(label).kind]
    drawn = sum(len(panel) for _, panel in panels) * each
    assert more - fewer == 2 * drawn  # two thin lines more for every thick one


@pytest.mark.parametrize("label", FIGURES)
def test_without_runs_there_is_no_figure(label: str, tmp_path: Path) -> None:
    assert draw(figure(label), Runs({}), tmp_path) == []
    assert not list(tmp_path.iterdir())


def test_a_panel_without_runs_says_so(tmp_path: Path) -> None:
    label = "fig:grad_norm_distribution_extented"
    svg = draw(figure(label), made(label, 1, slice(0, 1)), tmp_path)[1].read_text(encoding="utf-8")
    assert svg.count("(not run)") == 3


def test_the_clipping_rate_is_written_in_its_panel(tmp_path: Path) -> None:
    label = "fig:clipping-behaviour-extended"
    svg = draw(figure(label), made(label, 1), tmp_path)[1].read_text(encoding="utf-8")
    assert svg.count("DP-aware: p_clip 0.500") == 4


def test_runs_without_privacy_have_no_clipping_line(tmp_path: Path) -> None:
    label = "fig:grad_norm_distribution_no-dp"
    svg = draw(figure(label), made(label, 1), tmp_path)[1].read_text(encoding="utf-8")
    assert ">C<" not in svg
