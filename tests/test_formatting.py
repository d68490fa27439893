"""Numbers and tables as people read them."""

import math

import pytest

from tamedit.formatting import best, counted, deep, epsilon, percent, print_table, score, significant


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234.4, "1,234"),
        (0.12345, "0.123"),
        (-12.34, "-12.3"),
        (1.2e-7, "1.20e-07"),
        (0, "0"),
        (None, "–"),
        (math.nan, "–"),
    ],
)
def test_significant_digits(value: float | None, text: str) -> None:
    assert significant(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.8301, "1.84"), (54_401.0, "54,500"), (8.0, "8"), (1.175e7, "1.18e+07"), (math.inf, "∞"), (None, "∞")],
)
def test_epsilon_is_rounded_up(value: float | None, text: str) -> None:
    assert epsilon(value) == text


def test_scores() -> None:
    assert score(None) == "–"
    assert score(0.12345) == "0.1235"
    assert score(1.2e-5) == "1.2e-05"
    assert score(0.1234, 0.0011) == "0.1234 ± 0.0011"
    assert score(0.1234, 2e-5) == "0.1234 ± 2.0e-05"
    assert score(0.123, as_percent=True) == "12.3%"
    assert score(0.123, 0.004, as_percent=True) == "12.3 ± 0.4 %"


def test_words_about_numbers() -> None:
    assert (counted(1, "meter"), counted(1200, "meter")) == ("1 meter", "1,200 meters")
    assert (percent(0.123), percent(None)) == ("12.3", "–")
    assert deep({"a": {"b": 1}}, "a", "b") == 1
    assert deep({"a": None}, "a", "b") is None


def test_a_table(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    rows = [["[red]load[/red]", 1234.5, None], [best("second"), 1200, "0.5 ± 0.1"]]
    print_table("title [1]", ("name [0]", "number", "score"), rows)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].strip() == "title [1]"
    assert lines[2].split("┃")[1].strip() == "name [0]"
    assert [cell.strip() for cell in lines[4].split("│")[1:-1]] == ["[red]load[/red]", "1,234", "–"]
    assert [cell.strip() for cell in lines[5].split("│")[1:-1]] == ["second", "1,200", "0.5 ± 0.1"]
    assert lines[5].split("│")[2].endswith("1,200 "), "numbers stand right"


def test_columns_of_words_are_found(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("", ("", "x", "why"), [["a", 1.0, "because"], ["b", None, "so"]], words=None)
    last = next(line for line in capsys.readouterr().out.splitlines() if "so" in line.split("│")[-2:][0])
    assert last.split("│")[3] == " so      "
    assert last.split("│")[2].endswith("– ")


@pytest.mark.parametrize("width", [60, 72, 80])
def test_a_table_that_is_too_wide_is_folded_and_not_cut(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    heads = ("measure", "real", "synth.", "95 %", "train", "simul.", "hours")
    print_table("", heads, [["autocorr., 1 week", "0.0617", "0.0500", "0.044 … 0.085", "0.057", "0.069", "-0.007"]])
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith(("│", "┃"))]
    assert all(len(row) <= width and row[-1] in "│┃" for row in rows)
    assert "│ autocorr., 1 week │" in "\n".join(rows)


def test_a_table_that_just_fits_breaks_no_word(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The demo's last table on a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    heads = ("what is asked", "private model", "best free guess", "which is", "gain", "is surely")
    row = ("cold start, one season known", 0.112, 0.121, "draws from the distribution", "+15.9%", "not sure")
    print_table("", heads, [row], words=(0, 3, 5))
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines())
    shown = set(out.replace("│", " ").replace("┃", " ").split())
    assert {word for text in (*heads, *map(str, row)) for word in text.split()} <= shown
