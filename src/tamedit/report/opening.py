"""The top of the report, what the data looks like, and the privacy statement."""

import math

from tamedit.figures.report_figures import MOST_ROWS, PANELS, embedded, profile, season, shown_lines, stretch
from tamedit.formatting import counted, deep, percent, significant
from tamedit.formatting import epsilon as shown
from tamedit.privacy.statement import PROTECTS_NOBODY, UNIT_WORDS
from tamedit.report.findings import Findings
from tamedit.report.page import Html, figure, head, join, listed, paragraph, table, tag
from tamedit.report.performance import coverage_said, verdict
from tamedit.runs.folder import NOT_PRIVATE

ACCOUNTANTS = {"PLD": " (privacy loss distributions)", "RDP": " (Rényi differential privacy)"}
CHANNELS = 12  # rows of the table of channels; the rest is counted


def top(found: Findings) -> Html:
    """Title, warning, and four numbers."""
    return join(
        [
            tag("h1", f"Report of {found.name}"),
            paragraph(
                "A model that fills gaps in time series and forecasts them. Data: ", found.config.source, class_="lead"
            ),
            tag(
                "div",
                tag("strong", "This report is not private. "),
                "It shows readings from the test data, and measurements of training that were taken without noise. Keep it where "
                "the data may be kept; it must not leave with the model. ",
                tag("a", "The privacy statement", href="#privacy"),
                " says what is guaranteed, and for what.",
                class_="warning",
                role="note",
            ),
            tag("dl", *(_card(*card) for card in _cards(found)), class_="cards"),
        ]
    )


def _card(what: str, number: str, more: str) -> Html:
    return tag("div", tag("dt", what), tag("dd", number), tag("dd", more, class_="more"), class_="card")


def _cards(found: Findings) -> list[tuple[str, str, str]]:
    epsilon = deep(found.privacy, "epsilon", "headline")
    if not found.privacy.get("private"):
        privacy = ("Privacy", "none", "trained without a guarantee")
    elif found.privacy.get("test_only"):
        privacy = ("Privacy", "none", "a test run with a known seed")
    else:
        unit = found.privacy["unit"]
        whole = (
            "all readings of one meter"
            if unit == "series"
            else f"one {unit}" + ("" if unit == "window" else " of one meter")
        )
        privacy = ("Privacy", f"ε = {shown(epsilon)}", f"for {whole}, δ = {found.privacy['delta']:g}")
    scores = []
    for task, name in (
        ("imputation", "Gap filling"),
        ("forecast", f"Forecast, {counted(found.evaluation.horizon, 'step')}"),
    ):
        against = verdict(found.evaluation, task)
        scores.append((name, *(("–", "nothing to score") if against is None else (against.headline, against.detail))))
    return [privacy, *scores, ("Truth inside the intervals", *coverage_said(found.curves))]


def data_section(found: Findings) -> Html:
    """Facts, channels, a stretch and the season's profile."""
    facts, test = found.facts, found.test
    rows: list[list[Html | str]] = [
        ["Source", found.config.source, "a named data set, or a file"],
        ["Meters", f"{facts['meters']:,}", "series that are read side by side"],
        ["Rows", f"{facts['rows']:,}", f"time stamps of all meters, one every {facts['step']}"],
        ["Span", f"{facts['start']} to {facts['end']}", facts["timezone"] or "time stamps as written, no time zone"],
        ["Season", counted(facts["period"], "step"), "how often the pattern is expected to repeat"],
        [
            "Missing",
            f"{percent(facts['missing_share'], 2)} %" if facts["missing_share"] else "none",
            "share of all readings",
        ],
        ["Gaps", _gaps(facts["gaps"]), "runs of rows in which a reading is missing"],
        [
            "Test part",
            f"{len(test):,} rows of {counted(len(test.meters), 'meter')}",
            "never learned from; all scores and pictures below",
        ],
    ]
    if facts["covariates"]:
        rows.append(["Covariates", ", ".join(facts["covariates"]), "known at every step, also ahead"])
    kept = facts["channels"][:CHANNELS]
    channels = [
        [
            one["name"],
            *(significant(one[key], 4) for key in ("minimum", "median", "maximum")),
            percent(one["missing_share"]),
        ]
        for one in kept
    ]
    left = len(facts["channels"]) - len(kept)
    heads = [
        "Channel",
        *(head(what, "the data's units") for what in ("Minimum", "Median", "Maximum")),
        head("Missing", "% of readings"),
    ]
    return join(
        [
            table("The data in brief", ["", "Value", "Meaning"], rows, text=(1, 2)),
            table("Channels, over all rows", heads, channels),
            paragraph(f"{counted(left, 'more channel')} not listed.", class_="note") if left else None,
            _pictures(found),
        ]
    )


def _gaps(gaps: dict[str, object]) -> str:
    if not gaps["count"]:
        return "none"
    return f"{gaps['count']:,}, the longest of {gaps['longest']:,} steps from {gaps['longest_from']}"


def _pictures(found: Findings) -> Html:
    test, lines = found.test, shown_lines(found.test)
    what = ", ".join(test.targets[channel] for _, channel in lines) if len(test.targets) > 1 else test.targets[0]
    some = len(lines) < (len(test.targets) if len(test.targets) > 1 else len(test.meters))
    of = f" ({len(lines)} of {len(test.targets) if len(test.targets) > 1 else len(test.meters)} shown)" if some else ""
    longest = min(14 * test.period, MOST_ROWS)
    pieces = [
        figure(
            embedded(lambda path: stretch(test, path)),
            f"Line chart of {what} at the beginning of the test part, {len(lines)} panel{'s' * (len(lines) > 1)}.",
            f"The first {longest if longest > 200 else 200:,} steps of the test part at most, in the data's own units{of}. "
            "Breaks in a line are missing readings.",
        )
    ]
    found_season = season(test)
    if found_season is None:
        pieces.append(paragraph("Readings this far apart have no season within which a profile could be drawn."))
    else:
        named = ", ".join(test.targets[:PANELS]) + (" and others" if len(test.targets) > PANELS else "")
        word = {"hour of the day": "daily", "day of the week": "weekly"}.get(found_season[1], "yearly")
        pieces.append(
            figure(
                embedded(lambda path: profile(test, path)),
                f"Chart of the {word} profile of {named}: median and middle ranges by {found_season[1]}.",
                f"The {word} profile of the test part over all meters, in the data's own units: where readings lie at each "
                f"{found_season[1]}.",
            )
        )
    return join(pieces)


def privacy_section(found: Findings) -> Html:
    """What is guaranteed, to whom, by what reckoning, and what is not."""
    said = found.privacy
    if not said.get("private"):
        return join(
            [
                tag("div", paragraph(tag("strong", str(said["statement"]))), class_="statement"),
                paragraph(
                    "Nothing is guaranteed to anyone whose readings are in the training data, so treat the model like the data. ",
                    "Train with ",
                    tag("code", "tamedit train … --epsilon 8"),
                    " for a model with a guarantee.",
                ),
            ]
        )
    lines = str(said["statement"]).splitlines()
    epsilon = deep(said, "epsilon", "headline")
    return join(
        [
            tag(
                "div", paragraph(tag("strong", lines[0])), *(paragraph(line) for line in lines[1:]), class_="statement"
            ),
            _meaning(found, epsilon),
            _units(found),
            tag("h3", "What the guarantee does not cover"),
            listed(
                [
                    *(f"{gap[:1].upper()}{gap[1:]}." for gap in said.get("not_covered", [])),
                    f"This report, and everything else in the folder {NOT_PRIVATE}: all of it was measured without noise.",
                    "Readings that are given to the model later, to be filled or continued: its answers depend on them.",
                    "Choices that someone made after looking at this report or at the data.",
                ]
            ),
        ]
    )


def _meaning(found: Findings, epsilon: float | None) -> Html:
    """ε in words, without making it sound better than it is."""
    said = found.privacy
    if said.get("test_only"):
        return paragraph("The noise of this run can be computed from its seed, so the numbers are for tests alone.")
    if epsilon is None or epsilon > PROTECTS_NOBODY:
        return paragraph(
            "An ε this large promises nothing that matters. Treat the model like the data it was trained on."
        )
    if not said.get("protects", True):
        return paragraph(
            "A δ this large for so few examples promises nothing that matters: publishing some of them outright would satisfy it."
        )
    odds = math.exp(epsilon)
    return paragraph(
        f"In words: whoever holds the model files and tries to find out whether {UNIT_WORDS.get(said['unit'], said['unit'])} was "
        f"in the training data can raise their odds by a factor of e^ε = {shown(odds)} at most, whatever else they know, "
        f"except with a probability of about δ = {said['delta']:g}. This is the worst case that the mathematics allows"
        + ("; what attacks reach in practice is usually less. " if epsilon >= 1 else ". ")
        + "Smaller is stronger: as a rule of thumb, below 1 is strong and above 10 is weak."
    )


def _units(found: Findings) -> Html | None:
    """ε for every unit, from the ledger."""
    if not found.units:
        return paragraph(
            "The ledger of this run is not in its folder, so this is what model.json says, and it could not be derived again.",
            class_="note",
        )
    rows: list[list[Html | str | None]] = []
    for unit, one in found.units.items():
        name = tag(
            "span",
            UNIT_WORDS[unit].split(" (")[0],
            *([tag("span", "the run's own unit", class_="range")] * (unit == found.privacy["unit"])),
        )
        if one["epsilon"] is None:
            rows.append([name, None, None, None, one["reason"]])
        else:
            pld, rdp = (deep(one, "epsilon", which) for which in ("headline", "rdp"))
            rows.append(
                [name, f"{one['contributions']:,}", shown(pld), None if rdp is None else shown(rdp), one["reason"]]
            )
    said = found.privacy
    heads = [
        "Protected unit",
        "Examples that it touches",
        f"ε at δ = {said['delta']:g}",
        "ε by RDP, for comparison",
        "Why",
    ]
    return join(
        [
            table(
                "What the same training means for other units (ε has no unit; smaller is stronger)",
                heads,
                rows,
                text=(4,),
            ),
            paragraph(
                f"Accountant: {said['accountant']}{ACCOUNTANTS.get(said['accountant'], '')}. "
                f"ε was derived anew from the ledger of {counted(said['steps'], 'step')} in this folder, not copied.",
                class_="note",
            ),
        ]
    )
