"""Private evolution: the distance to held-out homes of another region, by ε.

    python benchmarks/evolution.py --homes 200 --seeds 3

Energy distance in the public embedding (0: the same distribution). All homes are simulated: 200 private ones of a region that
the simulator does not know by itself, 200 others of that region for measuring. Noise as for the unit `series`, one vote per home.
"""

import argparse

import numpy as np

from tamedit.data.series import Series
from tamedit.data.simulate import Region, simulate
from tamedit.privacy.plan import calibrate
from tamedit.training.private.evolution import ROUNDS, evolve, evolved_homes
from tamedit.windows.cut import cut_blocks
from tamedit.windows.embedding import embedding

ELSEWHERE = Region(standby=1.6, habits=0.6, appliances=1.4, heating=1.5, heated=0.5, warmer=-3.0, later=1.5)
START, DAYS = "2024-01-01", 120


def vectors(series: Series) -> np.ndarray:
    load = series.values.reshape(len(series.meters), -1).astype(np.float64)
    return embedding(load, np.zeros(len(load), dtype=np.int64), 1)


def energy_distance(one: np.ndarray, other: np.ndarray) -> float:
    def apart(a: np.ndarray, b: np.ndarray) -> float:
        return float(np.linalg.norm(a[:, None] - b[None], axis=2).mean())

    return 2 * apart(one, other) - apart(one, one) - apart(other, other)


def evolved(homes: Series, sigma: float | None, rounds: int, seed: int) -> np.ndarray:
    noise = np.random.default_rng([seed, 1])

    def release(votes: np.ndarray, _: int) -> np.ndarray:
        if sigma is None:  # nobody votes
            return np.ones(votes.shape[1])
        return np.asarray(votes.sum(axis=0) + sigma * noise.standard_normal(votes.shape[1]))

    found = evolve(cut_blocks(homes, 168, None), release, rounds=rounds, noise_multiplier=sigma or 0.0, seed=seed)
    return vectors(evolved_homes(found, len(homes.meters), START, DAYS, seed))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--homes", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=3)
    chosen = parser.parse_args()
    private, held_out = (
        simulate(chosen.homes, 24 * DAYS, seed=seed, variety=0.3, region=ELSEWHERE, start=START) for seed in (3, 9)
    )
    there = vectors(held_out)
    print(f"another sample of that region: {energy_distance(vectors(private), there):.3f}")
    cases: dict[str, float | None] = {"no votes (the start)": None}
    cases |= {f"ε = {budget:g}": calibrate(budget, 1.0, ROUNDS, 1e-5) for budget in (1, 3, 8)} | {"no noise": 0.0}
    for name, sigma in cases.items():
        rounds = 1 if sigma is None else ROUNDS
        found = [energy_distance(evolved(private, sigma, rounds, seed), there) for seed in range(chosen.seeds)]
        print(f"{name}: {np.mean(found):.3f} ({min(found):.3f} to {max(found):.3f})")


if __name__ == "__main__":
    main()
