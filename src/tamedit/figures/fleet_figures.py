"""Real and synthetic homes side by side: weeks, daily profiles, load duration curves, levels."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator

from tamedit.data.series import Series
from tamedit.evaluation.fidelity.homes_grid import Fleet, fleets
from tamedit.evaluation.fidelity.portrait import Portrait
from tamedit.figures.plots import BLUE, INK, log_axis, plain, styled

WEEKS = 3
NAMES = ("real", "synthetic")
COLOURS = (INK, BLUE)


def fleet_weeks(real: Series, synthetic: Series, path: Path, target: str | None = None, seed: int = 0) -> None:
    """A week of some homes, drawn at random: real on the left, synthetic on the right, each on its own scale."""
    held, others = fleets(real, {"synthetic": synthetic}, target)
    with styled(1.25 * WEEKS + 0.5, path) as made:
        axes = made.subplots(WEEKS, 2, sharex=True)
        for column, one in enumerate((held, others["synthetic"])):
            weeks, home = one.home_weeks()
            for row, number in enumerate(_some_homes(home, seed)):
                axis = axes[row, column]
                axis.plot(np.arange(weeks.shape[1]) / one.period, weeks[number], color=COLOURS[column], lw=0.8)
                axis.margins(x=0.01)
                axis.set_ylim(bottom=min(0.0, float(weeks[number].min())))
            axes[0, column].set_title(f"{NAMES[column]} homes, a week each")
        for axis in axes[-1]:
            axis.set_xticks(np.arange(7) + 0.5, ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"))
        made.supylabel(plain(target or real.targets[0], 30), fontsize=9)


def fleet_shapes(real: Series, synthetic: Series, path: Path, target: str | None = None) -> None:
    """Daily profile, load duration curve and levels of homes, of both fleets in one panel each."""
    held, others = fleets(real, {"synthetic": synthetic}, target)
    both = (held, others["synthetic"])
    with styled(2.6, path) as made:
        profile, duration, level = made.subplots(1, 3)
        for name, colour, one in zip(NAMES, COLOURS, both, strict=True):
            portrait = Portrait(one)
            hours = np.arange(one.period) * 24 / one.period
            ends = np.nanquantile(portrait.daily_profile, [0.1, 0.9], axis=0)
            profile.fill_between(hours, *ends, color=colour, alpha=0.15, lw=0)
            profile.plot(hours, np.nanmean(portrait.daily_profile, axis=0), color=colour, lw=1.5, label=name)
            shares = np.linspace(0.002, 0.998, 200)
            duration.plot(100 * shares, np.nanquantile(one.values, 1 - shares), color=colour, lw=1.5)
            edges = np.linspace(*_level_ends(both), 16)
            logs = np.log10(np.maximum(portrait.level, 1e-9))
            level.hist(logs, edges, weights=np.full(len(logs), 100 / len(logs)), color=colour, alpha=0.4)
        profile.set(title="daily profile (over the level)", xlabel="hour of the day", xticks=range(0, 25, 6))
        duration.set(title="load duration curve", xlabel="share of time above (%)", yscale="log")
        log_axis(duration.yaxis)
        level.set(title="homes by level (%)", xlabel="log10 of the mean reading")
        level.xaxis.set_major_locator(MaxNLocator(4))
        handles, labels = profile.get_legend_handles_labels()
        made.legend(handles, labels, loc="outside upper right", ncols=2, fontsize=8)


def _some_homes(home: np.ndarray, seed: int) -> list[int]:
    """A random week of each of a few random homes."""
    order = np.random.default_rng(seed).permutation(len(home))
    first = pd.Series(order).groupby(home[order], sort=False).first()
    numbers = first.to_list()
    return [numbers[at % len(numbers)] for at in range(WEEKS)]


def _level_ends(both: tuple[Fleet, Fleet]) -> tuple[float, float]:
    logs = np.concatenate([np.log10(np.maximum(Portrait(one).level, 1e-9)) for one in both])
    return float(logs.min()) - 0.05, float(logs.max()) + 0.05
