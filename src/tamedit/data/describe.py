"""What a series contains, in numbers: range, step, gaps, channels; plain values, ready for JSON or a table."""

from typing import Any

import numpy as np

from tamedit.data.series import Series

_BARS = "▁▂▃▄▅▆▇█"


def describe(series: Series, width: int = 28) -> dict[str, Any]:
    """Facts of a series; numbers that do not exist (a channel without a reading) are None."""
    missing = np.isnan(series.values)
    return {
        "rows": len(series),
        "meters": len(series.meters),
        "start": str(series.distinct_times.min()),
        "end": str(series.distinct_times.max()),
        "timezone": None if series.times.tz is None else str(series.times.tz),
        "step": series.spoken_step,
        "period": series.period,
        "missing_share": float(missing.mean()),
        "gaps": _gap_facts(series, missing),
        "channels": [_channel(series, channel, width) for channel in range(len(series.targets))],
        "covariates": list(series.covariate_names),
        "panel": _panel(series, missing) if len(series.meters) > 1 else None,
        "notes": [*series.notes, *series.findings],
        "inferred": list(series.notes),
        "findings": list(series.findings),
    }


def gaps(missing: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(first row, length) of every run of missing rows; a run ends where its meter ends."""
    begins = np.zeros(len(missing) + 1, dtype=bool)
    begins[offsets] = True
    before = np.concatenate([[False], missing])
    after = np.concatenate([missing, [False]])
    starts = after & (~before | begins)
    stops = before & (~after | begins)
    first = np.flatnonzero(starts)
    return first, np.flatnonzero(stops) - first


def sparkline(values: np.ndarray, width: int = 28) -> str:
    """A line of small bars: averages of `width` equal pieces, a space where a piece has no reading."""
    pieces = np.array_split(np.asarray(values, dtype=np.float64), min(width, len(values)))
    counts = np.array([np.isfinite(piece).sum() for piece in pieces])
    means = np.array([np.nansum(piece) for piece in pieces]) / np.maximum(counts, 1)
    if not counts.any():
        return " " * len(pieces)
    low, high = means[counts > 0].min(), means[counts > 0].max()
    level = (means - low) / (high - low) if high > low else np.full(len(means), 0.5)
    bars = [_BARS[min(7, max(0, int(8 * one)))] for one in level]
    return "".join(bar if count else " " for bar, count in zip(bars, counts, strict=True))


def _gap_facts(series: Series, missing: np.ndarray) -> dict[str, Any]:
    """Gaps: rows at which some target is missing."""
    first, lengths = gaps(np.asarray(missing.any(axis=1)), series.offsets)
    if len(first) == 0:
        return {"count": 0, "longest": 0, "longest_from": None, "longest_meter": None}
    longest = int(np.argmax(lengths))
    row = int(first[longest])
    meter = series.meters[int(np.searchsorted(series.offsets, row, side="right")) - 1]
    return {
        "count": len(first),
        "longest": int(lengths[longest]),
        "longest_from": str(series.times[row]),
        "longest_meter": meter or None,
    }


def _channel(series: Series, channel: int, width: int) -> dict[str, Any]:
    column = series.values[:, channel]
    known = column[~np.isnan(column)].astype(np.float64)
    return {
        "name": series.targets[channel],
        **_spread(known),
        "missing_share": 1 - len(known) / max(1, len(column)),
        "plot": sparkline(column[: int(series.offsets[1])], width),
    }


def _spread(numbers: np.ndarray) -> dict[str, float | None]:
    if len(numbers) == 0:
        return {"minimum": None, "median": None, "maximum": None}
    return {"minimum": float(numbers.min()), "median": float(np.median(numbers)), "maximum": float(numbers.max())}


def _panel(series: Series, missing: np.ndarray) -> dict[str, dict[str, float | None]]:
    """How meters differ: rows, share missing, and the mean of the first target."""
    starts = series.offsets[:-1]
    known = ~missing[:, 0]
    sums = np.add.reduceat(np.where(known, series.values[:, 0], 0.0).astype(np.float64), starts)
    counts = np.add.reduceat(known.astype(np.int64), starts)
    return {
        "rows": _spread(series.lengths.astype(np.float64)),
        "share missing": _spread(1 - counts / series.lengths),
        f"mean of {series.targets[0]}": _spread((sums / np.maximum(counts, 1))[counts > 0]),
    }
