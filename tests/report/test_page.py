"""What the page says: every section, the numbers of the evaluation, nothing of a name as markup, nothing fetched."""

import json
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from reading import HOSTILE, Page

from tamedit.data.loading import load_split
from tamedit.data.reader import read
from tamedit.data.series import Series
from tamedit.evaluation.evaluate import Row, evaluate
from tamedit.evaluation.labels import LABELS
from tamedit.evaluation.metrics import PATHS
from tamedit.evaluation.reliability import Curve
from tamedit.evaluation.task_table import TASKS
from tamedit.figures.plots import date_axis
from tamedit.figures.report_figures import embedded, profile, season, stretch
from tamedit.formatting import percent, significant
from tamedit.privacy.entries import read as read_ledger
from tamedit.privacy.statement import side_by_side
from tamedit.report.findings import Findings, find
from tamedit.report.write import html
from tamedit.runs.folder import load_run
from tamedit.tasks.model import Model

SECTIONS = ["data", "privacy", "training", "gradients", "pictures", "scores", "calibration"]


@pytest.fixture(scope="module", params=["plain", "private"])
def page(request: pytest.FixtureRequest) -> Page:
    return Page(request.getfixturevalue(f"{request.param}_page"))


def test_every_section_is_there_and_the_contents_lead_to_it(page: Page) -> None:
    assert list(page.sections) == SECTIONS
    places = {own["id"] for _, own in page.tags if "id" in own}
    links = [own["href"] for own in page.of("a")]
    assert {f"#{name}" for name in SECTIONS} <= set(links)
    assert {link.removeprefix("#") for link in links} <= places
    assert "This report is not private." in page.words
    assert "must not leave with the model" in page.words


def test_figures_are_whole_and_have_words_beside_them(page: Page) -> None:
    pictures = page.pictures()
    assert len(pictures) >= 6
    assert all(len(list(picture.iter())) > 20 for picture in pictures)
    alts = [own["alt"] for own in page.of("img")]
    assert all(len(alt) > 30 for alt in alts)
    assert len(set(alts)) == len(alts)


def test_nothing_is_fetched_and_nothing_runs(page: Page) -> None:
    assert not page.of("script")
    for name, own in page.tags:
        assert not any(key.startswith("on") for key in own)
        for key in ("src", "href", "srcset", "action", "style"):
            assert name == "link" or own.get(key, "#").startswith(("#", "data:image/svg+xml"))
    (link,) = page.of("link")
    assert link == {"rel": "icon", "href": "data:,"}
    (policy,) = (own["content"] for own in page.of("meta") if own.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; img-src data:;")


def test_every_table_names_its_units(page: Page) -> None:
    for table in page.tables:
        said = table.caption + " ".join(table.heads)
        assert any(word in said.lower() for word in ("unit", "%", "meaning")), table.caption
        assert all(len(row) == len(table.heads) for row in table.rows)


def test_scores_are_those_of_the_evaluation(plain: Findings, plain_page: str, smoke_run: Path, longer: str) -> None:
    _, split = load_split(longer, **load_run(smoke_run)[1].reading)
    fresh = evaluate(Model.load(smoke_run, "cpu"), split, samples=20, windows=8)
    assert fresh == plain.evaluation  # looking on changes nothing
    tables = {table.caption: table for table in Page(plain_page).tables}
    for task in fresh.tasks:
        name = TASKS[task].label.capitalize()
        for unit, said in (("z", "z-units"), ("original", "the data's units")):
            table = tables[f"{name}, {said}; means over channels"]
            assert [row[0] for row in table.rows] == list(LABELS.values())
            for row, values, method in zip(table.rows, table.values, LABELS, strict=True):
                own = getattr(fresh.of(task, method), unit)
                wanted = [own.rmse, own.mae, own.crps] + [own.coverage50, own.coverage90] * (unit == "z")
                assert values == [value for value in wanted if value is not None]
                assert row[1].removeprefix("best").startswith(significant(own.rmse))
                assert f"{significant(own.intervals['CRPS'][0])} to {significant(own.intervals['CRPS'][1])}" in row[3]
            for column, metric in enumerate(("rmse", "mae", "crps"), 1):
                least = min(getattr(getattr(fresh.of(task, method), unit), metric) for method in LABELS)
                marked = [row[column] for row in table.rows if row[column].startswith("best")]
                assert marked
                assert all(cell.startswith("best" + significant(least)) for cell in marked)


def test_the_verdict_is_the_paired_gain(plain: Findings, plain_page: str) -> None:
    """The same comparison as on the command line, whatever the two intervals by themselves look like."""
    words = Page(plain_page).sections["scores"]
    for task in plain.evaluation.tasks:
        found = plain.evaluation.smallest_gain(task, "CRPS")
        assert found is not None
        gain = found[1]
        assert gain.low is not None
        assert gain.high is not None
        assert f"lies from {significant(gain.low)} to {significant(gain.high)} (95 %, paired)" in words
        assert ("do not settle" in words.partition(f"to {significant(gain.high)} (95")[2][:80]) is (
            gain.low <= 0 <= gain.high
        )


def test_path_scores_are_those_of_the_evaluation(plain: Findings, plain_page: str) -> None:
    tables = {table.caption: table for table in Page(plain_page).tables}
    shown = [caption for caption in tables if "whole paths" in caption]
    assert len(shown) == 4  # forecast and cold start, two units; gaps of scattered steps have no paths
    for task in ("forecast", "cold_start_24"):
        for unit, said in (("z", "z-units"), ("original", "the data's units")):
            table = tables[f"{TASKS[task].label.capitalize()}, whole paths, {said}; means over channels"]
            for values, method in zip(table.values, LABELS, strict=True):
                own = getattr(plain.evaluation.of(task, method), unit)
                assert values == [own[metric.name] for metric in PATHS]


def test_the_glance_is_the_gain_over_the_free_distribution(plain: Findings, plain_page: str) -> None:
    (table,) = (one for one in Page(plain_page).tables if "free distribution's number" in one.caption)
    assert [row[0] for row in table.rows] == [TASKS[task].label for task in plain.evaluation.tasks]
    for task, row, values in zip(plain.evaluation.tasks, table.rows, table.values, strict=True):
        gains = [plain.evaluation.gain_over_bar(task, name) for name in ("CRPS", "path_total_CRPS", "path_peak_CRPS")]
        assert values == [gain.difference for gain in gains if gain is not None]
        for gain, cell in zip(gains, row[2:], strict=True):
            if gain is None:
                assert cell == "–"  # with its reason, as an abbreviation
            elif gain.outcome == "undecided":
                assert cell.startswith("no sure difference")
            else:
                assert f" % {gain.outcome}" in cell
    assert "Long gap is left out: it needs a window of 3 seasons" in Page(plain_page).sections["scores"]


def test_calibration_is_the_curve(plain: Findings, plain_page: str) -> None:
    (table,) = (one for one in Page(plain_page).tables if one.caption.startswith("Share of the truth inside"))
    assert table.heads[2:] == [f"{level} % intervals (% of cells)" for level in (50, 80, 90)]
    asked = [(task, method) for task in plain.evaluation.tasks for method in ("model", "free_distribution")]
    assert [row[:2] for row in table.rows] == [[TASKS[task].label, LABELS[method]] for task, method in asked]
    for key, values in zip(asked, table.values, strict=True):
        assert values == [plain.curves[key].at(level)[0] for level in (0.5, 0.8, 0.9)]
    said = Page(plain_page).sections["calibration"]
    assert f"the 90 % intervals hold {percent(plain.curves['forecast', 'model'].at(0.9)[0])} % of the truth" in said


def test_a_run_without_privacy_says_so(plain_page: str) -> None:
    said = Page(plain_page).sections
    assert "Trained without privacy" in said["privacy"]
    assert "train with a privacy budget (epsilon)" in said["privacy"]
    assert "recorded no gradients" in said["gradients"]
    assert "train it again with diagnose_every=1" in said["gradients"]


def test_a_private_run_shows_its_statement_by_unit(private: Findings, private_page: str, private_run: Path) -> None:
    said = Page(private_page).sections
    units = side_by_side(read_ledger(private_run))
    for line in units["day"]["statement"].splitlines():
        assert line in said["privacy"]
    (table,) = (one for one in Page(private_page).tables if one.caption.startswith("What the same training means"))
    assert len(table.rows) == len(units)
    for row, one in zip(table.rows, units.values(), strict=True):
        assert row[-1] == one["reason"]
        assert (row[2] == "–") == (one["epsilon"] is None)
    assert "the run's own unit" in next(row[0] for row in table.rows if row[0].startswith("one day"))
    assert "PLD" in said["privacy"]
    assert "This report, and everything else in the folder not-private" in said["privacy"]
    assert "clipping" in said["gradients"]
    assert private.comparison.summaries[0].clipping is not None


def test_names_from_the_data_never_become_markup(private_page: str) -> None:
    page = Page(private_page)
    assert not page.of("script")
    assert not page.of("b")
    assert not page.of("u")
    assert HOSTILE in page.words
    assert "Report of run $x$ <u>" in page.words
    assert "a&b<i>.csv" in page.words
    texts = ["".join(picture.itertext()) for picture in page.pictures()]
    assert any(HOSTILE in text for text in texts)  # as letters, not as a formula
    assert not any(element.tag.endswith(("script", "}b")) for picture in page.pictures() for element in picture.iter())


def test_attributes_and_half_characters_are_escaped(private: Findings, no_figures: None) -> None:
    """Hostile names wherever the page writes one: channels, covariates, the file, the folder. Meters stand in figures alone."""
    bad = '"><script>' + "\udcff"
    test = replace(private.test, targets=(bad,))
    facts = json.loads(json.dumps(private.facts))
    facts |= {"covariates": [bad], "timezone": bad, "step": bad}
    facts["channels"][0]["name"] = bad
    config = private.config.model_copy(update={"source": bad})
    text = html(replace(private, run=Path(bad), test=test, facts=facts, config=config))
    page = Page(text)
    assert not page.of("script")
    assert any('"><script>?' in own["alt"] for own in page.of("img"))
    assert text.encode().decode() == text
    assert 'Report of "><script>?' in page.words
    assert 'Data: "><script>?' in page.words
    rows = {row[0]: row[1:] for table in page.tables for row in table.rows}
    assert rows["Source"][0] == rows["Covariates"][0] == rows["Span"][1] == '"><script>?'
    assert rows["Rows"][1].endswith('one every "><script>?')
    assert '"><script>?' in rows  # the channel


def test_the_same_findings_make_the_same_page(plain: Findings, plain_page: str) -> None:
    assert html(plain) == plain_page


def test_a_folder_without_its_record_or_ledger_is_still_reported(private: Findings, no_figures: None) -> None:
    said = Page(html(replace(private, comparison=None, units={}, privacy=private.model.spec.privacy))).sections
    assert "no log of the training's losses" in said["training"]
    assert "recorded no gradients" in said["gradients"]
    assert "ledger of this run is not in its folder" in said["privacy"]
    assert "differentially private" in said["privacy"]


def test_a_guarantee_that_means_nothing_is_called_so(private: Findings, no_figures: None) -> None:
    def page(**changed: object) -> Page:
        return Page(html(replace(private, privacy=private.privacy | changed)))

    assert (
        "promises hardly anything" in page(epsilon=private.privacy["epsilon"] | {"headline": 60.0}).sections["privacy"]
    )
    assert "δ this large" in page(protection="hardly any").sections["privacy"]
    tested = page(test_only=True)
    assert "can be computed from its seed" in tested.sections["privacy"]
    assert "a test run with a known seed" in tested.words


def test_what_is_seldom_there_or_missing_is_said(private: Findings, no_figures: None) -> None:
    """Undefined names in a template are errors, so every branch is walked through once."""
    (channel,) = private.facts["channels"]
    facts = private.facts | {"channels": [channel] * 13, "gaps": {"count": 0}, "missing_share": 0.0, "covariates": []}
    summary = replace(private.comparison.summaries[0], clipping=None, not_finite=2, time=None)
    comparison = replace(private.comparison, summaries=[summary])
    blank = replace(
        private.evaluation, by_meter=True, rows=tuple(_with_crps(row, None) for row in private.evaluation.rows)
    )
    odd = replace(private, facts=facts, comparison=comparison, evaluation=blank, bands={}, test=every("3D", 100))
    said = Page(html(odd)).sections
    assert "1 more channel not listed." in said["data"]
    assert "Readings this far apart have no season" in said["data"]
    assert "2 gradients had entries that are not finite" in said["gradients"]
    assert "This run clips nothing" in said["gradients"]
    assert "nothing to show" in said["pictures"]
    assert "Nothing could be scored." in said["scores"]
    assert "all windows of a meter together" in said["scores"]
    exact = replace(private.evaluation, block=4, rows=tuple(_with_crps(row, 0.0) for row in private.evaluation.rows))
    page = Page(html(replace(private, evaluation=exact)))
    assert "A free guess is exact here." in page.sections["scores"]
    assert "4 neighbours at a time" in page.sections["scores"]
    assert f"to {LABELS['free_distribution']}, which is exact" in page.words


def _with_crps(row: Row, crps: float | None) -> Row:
    return replace(row, z=replace(row.z, values={**row.z.values, "CRPS": crps}))


@pytest.mark.parametrize("windows", [1, 4])
def test_few_windows_and_four_samples_are_enough(smoke_run: Path, windows: int) -> None:
    """They make a page, and it does not say who is better."""
    page = Page(html(find(smoke_run, samples=4, windows=windows, device="cpu")))
    assert "too few windows to say which is better" in page.sections["scores"]
    assert "too few windows for an interval" in page.sections["scores"]
    assert not [claim for claim in ("surely", "% better", "% worse") if claim in page.words]
    assert "too few windows to sayagainst the best free guess" in page.words  # the tile and its second line
    assert page.tables[-1].heads[2:] == ["50 % intervals (% of cells)"]


def every(step: str, rows: int, timezone: str | None = None) -> Series:
    times = pd.date_range("2024-01-01", periods=rows, freq=step, tz=timezone)
    return read(pd.DataFrame({"time": times, "x": np.arange(rows) % 5 + 1.0}), time="time")


@pytest.mark.parametrize(
    ("step", "rows", "label"),
    [
        ("15min", 900, "hour of the day"),
        ("h", 400, "hour of the day"),
        ("D", 400, "day of the week"),
        ("MS", 60, "month of the year"),
    ],
)
def test_data_of_any_rhythm_is_drawn(step: str, rows: int, label: str) -> None:
    series = every(step, rows, "Europe/London" if step == "h" else None)
    assert season(series)[1] == label
    for draw in (stretch, profile):
        assert embedded(lambda path, draw=draw: draw(series, path)).startswith("data:image/svg+xml;base64,")


def test_without_a_season_there_is_no_profile() -> None:
    assert season(every("3D", 100)) is None


def test_a_reliability_curve_agrees_with_the_scores(plain: Findings) -> None:
    for (task, method), curve in plain.curves.items():
        own = plain.evaluation.of(task, method).z
        assert isinstance(curve, Curve)
        assert curve.at(0.5) == (pytest.approx(own.coverage50), pytest.approx(own.intervals["coverage50"]))
        assert curve.at(0.9) == (pytest.approx(own.coverage90), pytest.approx(own.intervals["coverage90"]))


def test_dates_of_any_span_find_their_ticks() -> None:
    """Without matplotlib's warning, which a report would print."""
    from matplotlib.figure import Figure

    axis, first = Figure().add_subplot(), pd.Timestamp("2024-01-01")
    date_axis(axis)
    for minutes in np.geomspace(10, 5e6, 400):
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message="AutoDateLocator was unable")
            last = first + pd.Timedelta(int(minutes), "min")
            found = axis.xaxis.get_major_locator().get_locator(first.to_pydatetime(), last.to_pydatetime())
        assert found is not None
