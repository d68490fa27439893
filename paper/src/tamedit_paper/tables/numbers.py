"""Numbers as people read them: small and huge ones in scientific notation, ε without false precision."""

from math import floor, log10

from tamedit.evaluation.intervals import OverSeeds

SMALL, HUGE = 1e-2, 1e4


def shown(number: OverSeeds, percent: bool = False) -> str:
    """Mean ± half-width with decimals that fit the mean: 0.423 ± 0.011, (8.56 ± 0.21)e-4, 4.97 ± 0.10 %."""
    factor = 100.0 if percent else 1.0
    mean, half = number.mean * factor, None if number.half is None else number.half * factor
    if half is not None and half <= 1e-9 * max(abs(mean), 1.0):
        half = None  # the same for every seed
    ending = " %" if percent else ""
    size = abs(mean)
    if mean and not SMALL <= size < HUGE:
        exponent = floor(log10(size))
        scaled = f"{mean / 10.0**exponent:.2f}"
        body = scaled if half is None else f"({scaled} ± {half / 10.0**exponent:.2f})"
        return f"{body}e{exponent}{ending}"
    decimals = 3 if size < 10 else 2 if size < 100 else 1
    body = f"{mean:.{decimals}f}" + ("" if half is None else f" ± {half:.{decimals}f}")
    return body + ending


def plain(value: float) -> str:
    """A bare number with three significant digits."""
    return shown(OverSeeds(value, None, None, None, 1))


def epsilon(value: float | None) -> str:
    """ε with three digits at most before it becomes a word for "nothing is protected"."""
    if value is None:
        return "∞"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
