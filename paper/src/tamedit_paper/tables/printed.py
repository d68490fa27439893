"""The numbers that the paper prints, as it prints them, and where it disagrees with itself. None was computed here.

A row is written in the order of the table's columns; the keys of rows and columns are those of `tables`.
"""

from dataclasses import dataclass

ROWS: dict[str, dict[str, str]] = {
    "tab:main-results-extended": {
        "Non-DP": "0.584 1.174% 0.476 0.208 0.767 1.484e-4",
        "DP-vanilla σ=0.03": "3.034 5.673% 2.391 0.556 0.736 7.848e-4",
        "DP-aware σ=0.03": "1.804 3.541% 1.411 0.296 0.684 2.900e-4",
        "DP-vanilla σ=0.05": "3.498 9.339% 3.110 0.567 0.643 1.650e-3",
        "DP-aware σ=0.05": "2.019 4.970% 1.987 0.423 0.636 8.558e-4",
        "DP-vanilla σ=0.1": "5.787 11.674% 4.702 1.637 0.833 1.902e-2",
        "DP-aware σ=0.1": "2.718 5.267% 2.122 0.671 0.757 3.240e-3",
        "DP-vanilla σ=0.2": "6.812 12.645% 5.148 1.646 0.794 1.592e-2",
        "DP-aware σ=0.2": "4.689 8.406% 3.442 1.262 0.732 1.052e-2",
    },
    "tab:grad-norms-multi-m": {
        "DP-vanilla σ=0.03": "25.0 17.8 31.1 -- -- 58.4 49.5 76.5 -- --",
        "DP-aware σ=0.03": "24.6 16.4 29.7 0.955 0.921 57.5 43.7 72.0 0.949 0.883",
        "DP-vanilla σ=0.05": "24.1 19.6 31.4 -- -- 62.4 62.4 89.2 -- --",
        "DP-aware σ=0.05": "24.2 18.9 30.9 0.984 0.964 55.6 55.5 77.3 0.867 0.889",
        "DP-vanilla σ=0.1": "23.8 21.4 32.1 -- -- 62.8 68.3 92.7 -- --",
        "DP-aware σ=0.1": "24.4 20.3 31.2 0.972 0.949 54.9 57.4 83.1 0.896 0.840",
        "DP-vanilla σ=0.2": "20.3 21.7 30.0 -- -- 57.0 64.5 86.6 -- --",
        "DP-aware σ=0.2": "20.3 20.4 28.9 0.963 0.940 47.4 54.8 71.9 0.830 0.850",
    },
    "tab:clipping_stats": {
        "DP-vanilla σ=0.03": "0.561 0.73 0.18 0.86 1.00",
        "DP-aware σ=0.03": "0.556 0.75 0.22 0.88 1.00",
        "DP-vanilla σ=0.2": "0.589 0.70 0.12 0.82 1.00",
        "DP-aware σ=0.2": "0.585 0.72 0.15 0.84 1.00",
    },
    "tab:ablation-forecast": {
        "vanilla": "1.00 0.567 0.723",
        "only c": "0.95 0.510 0.691",
        "only AdaLN": "0.93 0.495 0.677",
        "full": "0.87 0.423 0.636",
    },
    "tab:boundop-mini": {
        "tanh": "0.423 0.636 8.558e-4",
        "soft_clamp_band": "0.425 0.639 8.70e-4",
        "hard_clamp": "0.452 0.662 9.45e-4",
        "clamp_ste": "0.467 0.674 9.90e-4",
    },
    "tab:forecasting-full": {
        "Non-DP": "0.155 0.208 1.90% 0.861 0.980 0.767 0.605 0.215 1.48e-2",
        "DP-vanilla σ=0.03": "0.430 0.556 4.85% 0.422 1.122 0.736 0.820 0.260 3.90e-2",
        "DP-aware σ=0.03": "0.235 0.296 3.10% 0.741 1.025 0.684 0.700 0.230 2.70e-2",
        "DP-vanilla σ=0.05": "0.448 0.567 5.10% 0.383 1.081 0.643 0.840 0.270 4.80e-2",
        "DP-aware σ=0.05": "0.325 0.423 4.00% 0.603 1.052 0.636 0.810 0.258 4.10e-2",
        "DP-vanilla σ=0.1": "1.280 1.637 12.9% -0.105 1.555 0.833 1.458 0.390 1.90e-1",
        "DP-aware σ=0.1": "0.520 0.671 6.10% 0.353 1.256 0.757 0.982 0.310 9.00e-2",
        "DP-vanilla σ=0.2": "1.310 1.646 13.4% -0.122 1.480 0.794 1.386 0.370 1.70e-1",
        "DP-aware σ=0.2": "1.000 1.262 10.1% 0.052 1.347 0.732 1.205 0.330 1.35e-1",
    },
    "tab:inter-full": {
        "Non-DP": "0.476 0.584 1.17% 0.775 0.900 0.660 0.560 0.190 1.20e-2",
        "DP-vanilla σ=0.03": "2.391 3.034 5.67% -0.950 1.210 0.820 0.760 0.240 3.20e-2",
        "DP-aware σ=0.03": "1.411 1.804 3.54% -0.250 1.030 0.740 0.670 0.220 2.40e-2",
        "DP-vanilla σ=0.05": "3.110 3.498 9.34% -1.400 1.260 0.835 0.790 0.250 3.80e-2",
        "DP-aware σ=0.05": "1.987 2.019 4.97% -0.600 1.090 0.760 0.700 0.230 2.90e-2",
        "DP-vanilla σ=0.1": "4.702 5.787 11.67% -4.100 1.520 0.910 1.080 0.310 9.50e-2",
        "DP-aware σ=0.1": "2.122 2.718 5.27% -1.100 1.280 0.820 0.860 0.260 5.80e-2",
        "DP-vanilla σ=0.2": "5.148 6.812 12.65% -5.200 1.600 0.930 1.250 0.340 1.20e-1",
        "DP-aware σ=0.2": "3.442 4.689 8.41% -2.200 1.430 0.870 1.050 0.300 8.50e-2",
    },
    "tab:main-results-bts": {
        "Non-DP": "0.310 2.35% 0.210 0.245 0.610 2.10e-4",
        "DP-vanilla": "0.780 5.90% 0.520 0.655 0.880 1.85e-3",
        "DP-aware": "0.560 4.10% 0.380 0.465 0.780 9.60e-4",
    },
    "tab:main-results-cts": {
        "Non-DP": "0.355 2.80% 0.240 0.295 0.640 2.60e-4",
        "DP-vanilla": "0.945 6.80% 0.625 0.805 0.920 2.15e-3",
        "DP-aware": "0.685 4.90% 0.455 0.565 0.820 1.20e-3",
    },
    "tab:boundop-pp-forecast": {
        "tanh": "0.423 0.636 8.558e-4 1.262 0.732 1.052e-2",
        "soft_clamp_band": "0.425 0.639 8.70e-4 1.270 0.737 1.070e-2",
        "hard_clamp": "0.452 0.662 9.45e-4 1.310 0.752 1.120e-2",
        "clamp_ste": "0.467 0.674 9.90e-4 1.330 0.760 1.150e-2",
    },
    "tab:boundop-pp-impute": {
        "tanh": "2.019 4.97% 1.987 4.689 8.41% 3.442",
        "soft_clamp_band": "2.025 4.99% 1.995 4.710 8.44% 3.460",
        "hard_clamp": "2.120 5.22% 2.070 4.860 8.70% 3.560",
        "clamp_ste": "2.180 5.35% 2.120 4.950 8.85% 3.620",
    },
    "tab:clipping-rate": {
        "DP-vanilla σ=0.03": "0.561 0.73 0.18 0.86 1.00 1.00",
        "DP-aware σ=0.03": "0.554 0.75 0.22 0.88 1.00 1.00",
        "DP-vanilla σ=0.05": "0.570 0.72 0.16 0.84 1.00 1.00",
        "DP-aware σ=0.05": "0.568 0.73 0.18 0.85 1.00 1.00",
        "DP-vanilla σ=0.1": "0.582 0.71 0.14 0.83 1.00 1.00",
        "DP-aware σ=0.1": "0.578 0.72 0.16 0.84 1.00 1.00",
        "DP-vanilla σ=0.2": "0.589 0.70 0.12 0.82 1.00 1.00",
        "DP-aware σ=0.2": "0.582 0.72 0.15 0.84 1.00 1.00",
    },
    "tab:tightness-forecast": {
        "Loose": "0.92 0.452 0.661",
        "Medium": "0.87 0.423 0.636",
        "Tight": "0.80 0.441 0.651",
        "Too tight": "0.73 0.562 0.750",
    },
    "tab:nonprivate-expressiveness": {
        "Non-DP": "0.584 0.66 1.48e-4 0.208 0.77 1.48e-4",
        "Loose": "0.590 0.67 1.52e-4 0.212 0.62 1.55e-4",
        "Medium": "0.583 0.66 1.48e-4 0.207 0.77 1.48e-4",
        "Tight": "0.600 0.68 1.60e-4 0.218 0.63 1.62e-4",
        "Too tight": "0.720 0.78 2.30e-4 0.290 0.75 2.40e-4",
    },
    "tab:clip-norm": {
        "DP-vanilla C=0.5": "1.00 2.726 0.978",
        "DP-aware C=0.5": "0.87 1.145 0.826",
        "DP-vanilla C=1": "1.00 1.673 0.833",
        "DP-aware C=1": "0.89 0.671 0.757",
        "DP-vanilla C=2": "1.00 1.344 0.787",
        "DP-aware C=2": "0.89 0.446 0.664",
    },
    "tab:tightness-interp": {
        "Loose": "0.92 2.231 2.170",
        "Medium": "0.87 2.019 1.987",
        "Tight": "0.80 2.672 2.246",
        "Too tight": "0.73 3.626 3.179",
    },
    "tab:component-ablation-interp": {
        "vanilla": "1.00 3.498 3.110",
        "only c": "0.95 3.998 3.070",
        "only AdaLN": "0.93 2.337 2.112",
        "full": "0.89 2.019 1.987",
    },
    "tab:runtime-step-time": {
        "Non-DP": "0.100 0.047 0.201 1.00",
        "DP-vanilla": "0.168 0.105 0.350 1.68",
        "DP-aware": "0.169 0.108 0.351 1.69",
    },
}


@dataclass(frozen=True)
class Note:
    """A place where the paper disagrees with itself; the numbers (label, row, place in the row) carry its mark."""

    text: str
    labels: tuple[str, ...]
    numbers: tuple[tuple[str, str, int], ...] = ()


NOTES: tuple[Note, ...] = (
    Note(
        "DP-vanilla at σ = 0.05 has a forecast dist_JS of 0.643 in the main tables and the text, and of 0.723 in the "
        "component ablation.",
        ("tab:main-results-extended", "tab:forecasting-full", "tab:ablation-forecast"),
        (
            ("tab:main-results-extended", "DP-vanilla σ=0.05", 4),
            ("tab:forecasting-full", "DP-vanilla σ=0.05", 5),
            ("tab:ablation-forecast", "vanilla", 2),
        ),
    ),
    Note(
        "DP-vanilla at σ = 0.1 has a forecast RMSE of 1.637 in the main tables and of 1.673 in the table of C.",
        ("tab:main-results-extended", "tab:forecasting-full", "tab:clip-norm"),
        (
            ("tab:main-results-extended", "DP-vanilla σ=0.1", 3),
            ("tab:forecasting-full", "DP-vanilla σ=0.1", 1),
            ("tab:clip-norm", "DP-vanilla C=1", 1),
        ),
    ),
    Note(
        "DP-aware at σ = 0.05 has ρ_emp 0.87 in three tables and 0.89 in the interpolation ablation of the same run.",
        ("tab:ablation-forecast", "tab:tightness-forecast", "tab:tightness-interp", "tab:component-ablation-interp"),
        (
            ("tab:ablation-forecast", "full", 0),
            ("tab:tightness-forecast", "Medium", 0),
            ("tab:tightness-interp", "Medium", 0),
            ("tab:component-ablation-interp", "full", 0),
        ),
    ),
    Note(
        "p_clip of DP-aware is 0.556 (σ = 0.03) and 0.585 (σ = 0.2) in the text's table, 0.554 and 0.582 in the appendix's.",
        ("tab:clipping_stats", "tab:clipping-rate"),
        (
            ("tab:clipping_stats", "DP-aware σ=0.03", 0),
            ("tab:clipping_stats", "DP-aware σ=0.2", 0),
            ("tab:clipping-rate", "DP-aware σ=0.03", 0),
            ("tab:clipping-rate", "DP-aware σ=0.2", 0),
        ),
    ),
    Note(
        "ρ_emp at p99 and σ = 0.03 is printed as 0.949; the printed S_total give 72.0 / 76.5 = 0.941.",
        ("tab:grad-norms-multi-m",),
        (("tab:grad-norms-multi-m", "DP-aware σ=0.03", 8),),
    ),
    Note(
        "“Only mildly affects S_other”: at p99 the printed S_other falls as much as S_cond at σ = 0.05 (to 0.891 and 0.889 of "
        "vanilla's) and more at σ = 0.2 (0.832 and 0.850).",
        ("tab:grad-norms-multi-m",),
        (("tab:grad-norms-multi-m", "DP-aware σ=0.05", 5), ("tab:grad-norms-multi-m", "DP-aware σ=0.2", 5)),
    ),
    Note(
        "ρ_emp at σ = 0.1 is 0.896 in the table of norms and 0.89, not 0.90, in the table of C.",
        ("tab:grad-norms-multi-m", "tab:clip-norm"),
        (("tab:grad-norms-multi-m", "DP-aware σ=0.1", 8), ("tab:clip-norm", "DP-aware C=1", 0)),
    ),
    Note(
        "“Gains are largest in the low-noise regime”: the printed RMSE gain most at σ = 0.1, by 53 % (imputation) and 59 % "
        "(forecast), against 41 % and 47 % at σ = 0.03.",
        ("tab:main-results-extended",),
    ),
    Note(
        "“Each component provides a measurable gain”: bounding c alone raises the printed imputation RMSE, 3.498 to 3.998.",
        ("tab:component-ablation-interp",),
        (("tab:component-ablation-interp", "only c", 1),),
    ),
    Note(
        "Medium is in bold as the best forecast dist_JS with 0.77, while Loose has 0.62, Tight 0.63 and Too tight 0.75.",
        ("tab:nonprivate-expressiveness",),
        (("tab:nonprivate-expressiveness", "Medium", 4),),
    ),
    Note(
        "Non-DP has a worse forecast dist_JS (0.767) than every private run at σ ≤ 0.05.",
        ("tab:main-results-extended", "tab:forecasting-full"),
        (("tab:main-results-extended", "Non-DP", 4), ("tab:forecasting-full", "Non-DP", 5)),
    ),
    Note(
        "RMSE and R2 of one test set are tied by its variance, R2 = 1 − RMSE² / Var, and the rows give different ones: "
        "forecasts 0.31 (Non-DP) and 0.53 (DP-vanilla, σ = 0.03), imputation 1.5 and 4.7.",
        ("tab:forecasting-full", "tab:inter-full"),
        (
            ("tab:forecasting-full", "Non-DP", 3),
            ("tab:forecasting-full", "DP-vanilla σ=0.03", 3),
            ("tab:inter-full", "Non-DP", 3),
            ("tab:inter-full", "DP-vanilla σ=0.03", 3),
        ),
    ),
    Note(
        "The sources of the panels are named after other noise multipliers: 0.02 for σ = 0.2.",
        ("fig:grad_norm_distribution_extented",),
    ),
    Note(
        "The panels for σ = 0.03, 0.05, 0.1 and 0.2 carry the labels 0.001, 0.003, 0.007 and 0.01.",
        ("fig:training-loss-curves",),
    ),
)


def printed(label: str, row: str) -> tuple[str, ...]:
    """The paper's numbers of a row in the order of its columns; empty if the paper has no such row."""
    return tuple(ROWS.get(label, {}).get(row, "").split())


def gains(label: str, arms: list[tuple[str, str]], places: tuple[int, ...]) -> tuple[float, ...]:
    """The paper's effects 1 − aware / vanilla, for rows (vanilla, aware) and places in them."""
    return tuple(
        1 - _value(label, aware, place) / _value(label, vanilla, place) for vanilla, aware in arms for place in places
    )


def printed_reductions(column: int) -> tuple[float, ...]:
    """The paper's 1 − ρ at every σ, from a column of its table of gradient norms."""
    label = "tab:grad-norms-multi-m"
    return tuple(1 - _value(label, row, column) for row in ROWS[label] if row.startswith("DP-aware"))


def _value(label: str, row: str, place: int) -> float:
    return float(printed(label, row)[place].rstrip("%"))


def notes_of(label: str) -> list[Note]:
    """Where this table or figure disagrees with another, with the text, or with itself."""
    return [note for note in NOTES if label in note.labels]


def marked(label: str, row: str, place: int) -> bool:
    """Whether a printed number has a note."""
    return any((label, row, place) in note.numbers for note in NOTES)
