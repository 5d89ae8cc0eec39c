"""What share of a group's tuples a trimmed mean needs, by error and confidence: ShedPart's sizes.

    python benchmarks/sample_rates.py                   figure 53 of the dissertation
    python benchmarks/sample_rates.py --rows 200000     a quick look

Ten million values of each distribution of section 7.5.2.1: normal with means -10 to 85 and standard
deviations 10 to 25, two log-normal ones, and Zipf with exponents 0.5 to 4 over so many values as
there are tuples. The mean and the variance are those of all values, and the size is that of
`tidegate.approx.trim`, as balancing has it: equation 7.1 for a relative error, with the correction
for a finite population. No query runs. Results go to benchmarks/results/sample_rates.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from measure import write_report

from tidegate.approx.trim import sample_size

ROWS, SEED = 10_000_000, 7
ERRORS = (0.01, 0.05, 0.10, 0.15)
CONFIDENCES = (0.85, 0.90, 0.95, 0.99)
MEANS, DEVIATIONS = (10, 40, 70, -10, 85), (10, 15, 20, 25)
LOG_NORMALS = ((1.789, 2.366), (2.245, 1.133))
EXPONENTS = (0.5, 1.0, 1.5, 1.75, 2.0, 3.0, 4.0)

Floats = npt.NDArray[np.float64]


def streams(rows: int) -> Iterator[tuple[str, str, Floats]]:
    """The family, the name and the values of each distribution."""
    chance = np.random.default_rng(SEED)
    for mean in MEANS:
        for deviation in DEVIATIONS:
            name = f"mean {mean}, deviation {deviation}"
            yield "normal", name, chance.normal(mean, deviation, rows)
    for mu, sigma in LOG_NORMALS:
        yield "log-normal", f"mu {mu}, sigma {sigma}", chance.lognormal(mu, sigma, rows)
    for exponent in EXPONENTS:
        yield "zipf", f"exponent {exponent}", zipf(chance, exponent, rows)


def zipf(chance: np.random.Generator, exponent: float, rows: int) -> Floats:
    """Ranks 1 to `rows`, rank k as often as k ** -exponent says."""
    ranks = np.arange(1, rows + 1, dtype=np.float64)
    shares = ranks**-exponent
    return np.repeat(ranks, chance.multinomial(rows, shares / shares.sum()))


def rates(values: Floats) -> dict[str, dict[str, float]]:
    """The share of the values that is needed, by confidence and error."""
    tuples = np.array([len(values)])
    mean, variance = np.array([abs(values.mean())]), np.array([values.var(ddof=1)])
    return {
        f"{confidence:g}": {
            f"{error:g}": int(sample_size(tuples, tuples, mean, variance, error, confidence)[0])
            / len(values)
            for error in ERRORS
        }
        for confidence in CONFIDENCES
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=ROWS)
    asked = parser.parse_args()
    found: dict[str, dict[str, Any]] = {}
    for family, name, values in streams(asked.rows):
        found.setdefault(family, {})[name] = {
            "mean": float(values.mean()),
            "deviation": float(values.std()),
            "rates": rates(values),
        }
        at_99 = found[family][name]["rates"]["0.99"]
        print(f"{family}, {name}: " + ", ".join(f"{e}: {r:.4%}" for e, r in at_99.items()))
    write_report("sample_rates", {"rows": asked.rows, "families": found})


if __name__ == "__main__":
    main()
