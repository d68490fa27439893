"""The order of a home's readings in time, changed until its correlations are those of u, its readings left as they are.

A path is x_t = c_t g_t with the level c of its weeks and the ratios g. The ratios keep their values and get another order,

    ranks of g' = ranks of log g_t + a ε_t + b η_{t mod season},      ε, η independent standard normals of the home,

ε makes single hours less alike, and η is a habit of the home: the same hours again, every day. With v the variance of log g and
m = (v + a² + b²) / v, noise leaves of the correlations with the step before, r₁, and with a season before, r_s, about

    r₁ / m,     (r_s + b² / v) / m.

So m = r₁ / (wanted r₁), at least 1, and b² / v = m (wanted r_s) − r_s, within [0, m − 1]. The correlations are measured again and
a and b corrected, ROUNDS times. Correlations can be lowered only: a home that is to be smoother than it is stays as it is.
"""

import numpy as np
from jaxtyping import Float, Int64

from tamedit.streams import example_keys, normals

ROUNDS = 3
MOST = 4.0  # m: beyond it nothing of the home's own order would be left


def in_order_of(values: Float[np.ndarray, "H T *K"], order: Float[np.ndarray, "H T *K"]) -> Float[np.ndarray, "H T *K"]:
    """The values of each home and channel, rearranged in time so that their ranks are those of `order`."""
    ranks = np.argsort(np.argsort(order, axis=1, kind="stable"), axis=1, kind="stable")
    return np.asarray(np.take_along_axis(np.sort(values, axis=1), ranks, axis=1))


def with_habits(
    ratios: Float[np.ndarray, "H T"],
    carrier: Float[np.ndarray, "H T"],
    wanted: Float[np.ndarray, "H 2"],
    place: Int64[np.ndarray, " T"],
    rows: int,
    numbers: Int64[np.ndarray, " H"],
    seed: int,
) -> Float[np.ndarray, "H T"]:
    """The ratios in another order.

    Args:
        carrier: what the ratios are multiplied by.
        wanted: correlations of a piece of `rows` with itself one step and one season earlier, as `privacy.population` has them.
        place: of each row within a season.
        numbers: of the homes, by which they have noise of their own.
    """
    season = int(place.max()) + 1
    noise = normals(example_keys(seed, "habits", 0, numbers), ratios.shape[1] + season).numpy().astype(np.float64)
    single, habit = noise[:, : ratios.shape[1]], noise[:, ratios.shape[1] :][:, place]
    logs = np.log(np.maximum(ratios, 1e-9))
    scale = np.sqrt(np.maximum(logs.var(axis=1, keepdims=True), 1e-12))
    more, habitual = np.zeros(len(ratios)), np.zeros(len(ratios))  # m − 1 and b² / v
    found = ratios
    for _ in range(ROUNDS):
        near, far = _correlations(carrier * found, rows, season)
        near, far = near * (1.0 + more), far * (1.0 + more) - habitual  # as without noise
        whole = np.clip(near / np.maximum(wanted[:, 0], 1e-3), 1.0, MOST)
        more = whole - 1.0
        habitual = np.clip(whole * wanted[:, 1] - far, 0.0, more)
        moved = np.sqrt(more - habitual)[:, None] * single + np.sqrt(habitual)[:, None] * habit
        found = np.where(more[:, None] > 0.0, in_order_of(ratios, logs + scale * moved), ratios)
    return np.asarray(found)


def _correlations(
    path: Float[np.ndarray, "H T"], rows: int, season: int
) -> tuple[Float[np.ndarray, " H"], Float[np.ndarray, " H"]]:
    """Mean over the pieces of a home of the correlations with one step and one season earlier; 0 where nothing varies."""
    rows = min(rows, path.shape[1])
    pieces = path[:, : path.shape[1] // rows * rows].reshape(len(path), -1, rows)
    apart = pieces - pieces.mean(axis=2, keepdims=True)
    variance = np.maximum((apart**2).mean(axis=2), 1e-300)

    def at(lag: int) -> Float[np.ndarray, " H"]:
        if lag >= rows:
            return np.zeros(len(path))
        return np.asarray(((apart[:, :, lag:] * apart[:, :, :-lag]).mean(axis=2) / variance).mean(axis=1))

    return at(1), at(season)
