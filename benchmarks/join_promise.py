"""Whether counts, sums and means over a join with thinned sides are as near as is promised.

    python benchmarks/join_promise.py                400 windows of each case
    python benchmarks/join_promise.py --windows 50   a quick look

Windows are simulated: keys with so many tuples in a quarter of the join's window on either side, at
random times; the first k of each quarter are kept, others with probability p. What is computed of
the pairs is what `tidegate.query.clause.pairs` has the engine compute. Told are the shares of
windows that are off by more than the error, and of those that their intervals do not hold, with
the error as the least width and without it. Results go to benchmarks/results/.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from measure import write_report

Floats = npt.NDArray[np.float64]

KEYS = {"one key": (60,), "two keys": (80, 40), "six keys": (80, 30, 15, 8, 4, 2)}
VALUES: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "normal": lambda draw, n: draw.normal(10, 2, n),
    "log-normal": lambda draw, n: draw.lognormal(1, 1, n),
}
NAMES = ("count", "sum", "mean")


@dataclass(frozen=True)
class Way:
    """How many tuples are certain, what the others are kept with, and what is promised."""

    first: int
    rate: float
    error: float
    confidence: float


WAYS = {"as promised": Way(39, 0.5, 0.2, 0.9), "30 tuples": Way(30, 0.2, 0.1, 0.9)}


def window(
    draw: np.random.Generator, keys: tuple[int, ...], way: Way, values: Callable[..., Floats]
) -> Floats:
    """By count, sum and mean: what is true, what is estimated, half of the interval."""
    from tidegate.approx.student import deviate
    from tidegate.query.node.join import SIGNS

    true, estimated, signed = np.zeros(2), np.zeros(2), np.zeros((2, SIGNS))
    for per_pane in keys:
        (t, p, kept, s), (u, q, held, r) = (side(draw, per_pane, way, SIGNS) for _ in range(2))
        pairs = (np.abs(t[:, None] - u) <= 1) & (np.maximum(t[:, None], u) >= 0)
        there = pairs * kept[:, None] * held / (p[:, None] * q)
        for i, value in enumerate((np.ones(len(u)), values(draw, len(u)))):
            true[i] += (pairs * value).sum()
            weighed = there * value
            estimated[i] += weighed.sum()
            signed[i] += (weighed.sum(1) * np.sqrt(1 - p)) @ s
            signed[i] += (weighed.sum(0) * np.sqrt(1 - q)) @ r
    mean = estimated[1] / estimated[0]
    errors = (signed[0], signed[1], (signed[1] - mean * signed[0]) / estimated[0])
    width = float(deviate(1 - way.confidence, SIGNS))
    halves = [width * float(np.sqrt((e**2).mean())) for e in errors]
    return np.array([[*true, true[1] / true[0]], [*estimated, mean], halves]).T


def side(draw: np.random.Generator, per_pane: int, way: Way, signs: int) -> tuple[Floats, ...]:
    """Times from one window before to the end of this one, probabilities, who is kept, signs."""
    count = draw.poisson(per_pane * 8)
    times = np.sort(draw.uniform(-1, 1, count))
    pane = np.floor(times * 4)
    rank = np.arange(count) - np.searchsorted(pane, pane)
    probability = np.where(rank < way.first, 1.0, way.rate)
    kept = (draw.random(count) < probability).astype(float)
    return times, probability, kept, draw.choice([-1.0, 1.0], (count, signs))


def shares(found: Floats, way: Way) -> dict[str, dict[str, float]]:
    """Of windows by (window, function, what): how many are off, or outside of their intervals."""
    true, estimated, half = found[:, :, 0], found[:, :, 1], found[:, :, 2]
    off = np.abs(true - estimated)
    allowed = way.error * np.abs(estimated)
    told = {
        "off": off > way.error * np.maximum(np.abs(true), np.abs(estimated)),
        "outside": off > np.maximum(half, allowed),
        "outside_by_variance": off > half,
    }
    return {
        name: {what: float(flags[:, i].mean()) for what, flags in told.items()}
        for i, name in enumerate(NAMES)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--windows", type=int, default=400)
    given = parser.parse_args()
    report: dict[str, Any] = {}
    for label, way in WAYS.items():
        for keys, sizes in KEYS.items():
            for values, drawn in VALUES.items():
                draw = np.random.default_rng(len(report))
                found = [window(draw, sizes, way, drawn) for _ in range(given.windows)]
                case = f"{label}, {keys}, {values}"
                report[case] = shares(np.array(found), way)
                for name, told in report[case].items():
                    text = ", ".join(f"{what} {share:.1%}" for what, share in told.items())
                    print(f"{case}, {name}: {text}", flush=True)
    write_report("join_promise", {"windows": given.windows, "cases": report})


if __name__ == "__main__":
    main()
