"""The manager over StreamCloud's loads, simulated: figures 20 (balancing) and 21 (provisioning).

    python benchmarks/elastic_figures.py

No query runs, and no clock is read: a tuple takes a fixed service time of CPU, batches are a second
long, an instance works for at most a second of each, and what is left waits. A switch takes effect
with the next batch and costs nothing. So this shows what is decided and how often, with more
instances than there are cores, and nothing of how fast a switch is (benchmarks/reconfigure.py).

20  Fifteen instances, 150,000 tuples a second with 10,000 keys. In the first minute all keys are
    alike, then they are normally distributed, with another mean (a) or standard deviation (b) every
    minute. With and without balancing; drawn from a seed.
21  One instance, and a load that grows in a straight line to what fourteen can do, and falls again;
    thresholds 0.5, 0.6 and 0.9 as in the paper. Individual and load-aware provisioning.

Results go to benchmarks/results/elastic_figures.json, plots to docs/elastic-*.svg.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from measure import HERE, write_report

from tidegate.elastic.threshold import Threshold
from tidegate.route.mapping import even
from tidegate.testing import Driven, drive, switches

Floats = npt.NDArray[np.float64]
DOCS = HERE.parent / "docs"
SEED, BUCKETS, KEYS = 2012, 1_024, 10_000
INSTANCES, RATE, SERVICE_S, PERIOD = 15, 150_000, 60e-6, 60
MOST, RAMP = 14.0, 600


def main() -> None:
    content: dict[str, Any] = {
        "simulated": {
            "service_s_per_tuple": SERVICE_S,
            "batch_s": 1.0,
            "switch_s": 0.0,
            "buckets": BUCKETS,
            "seed": SEED,
        }
    }
    means = [(None, None), *((mean, 100) for mean in (2_000, 4_000, 6_000, 8_000))]
    deviations = [(None, None), *((5_000, deviation) for deviation in (100, 75, 50, 25))]
    content["figure 20a, changing mean"] = balancing("elastic-drift-mean", means)
    content["figure 20b, changing deviation"] = balancing("elastic-drift-deviation", deviations)
    content["figure 21"] = provisioning("elastic-provisioning")
    write_report("elastic_figures", content)


def balancing(name: str, phases: Sequence[tuple[int | None, int | None]]) -> dict[str, Any]:
    """One part of figure 20: the same tuples with and without balancing."""
    generator = np.random.default_rng(SEED)
    load = [one for phase in phases for one in drawn(generator, *phase)]
    limit = Threshold().imbalance
    held = {"minimum": INSTANCES, "maximum": INSTANCES}
    runs = {
        "balanced": drive(Threshold(**held), load, mapping=even(BUCKETS, INSTANCES)),
        "not balanced": drive(
            Threshold(**held, imbalance=100.0), load, mapping=even(BUCKETS, INSTANCES)
        ),
    }
    reports = [(f"mean {m}, deviation {d}" if m else "uniform") for m, d in phases]
    chart(
        DOCS / f"{name}.svg",
        f"{INSTANCES} instances, keys drift every {PERIOD} s",
        "standard deviation of utilisation",
        {word: [one.imbalance for one in run] for word, run in runs.items()},
        level=("upper imbalance", limit),
        marks=[(i * PERIOD, text) for i, text in enumerate(reports)],
    )
    return {
        "instances": INSTANCES,
        "tuples_per_s": RATE,
        "upper_imbalance": limit,
        "periods": [
            {
                "keys": text,
                **{
                    word: {
                        "utilisation": mean_of([o.utilisation for o in period(run, i)]),
                        "imbalance": mean_of([o.imbalance for o in period(run, i)]),
                        "imbalance_second_half": mean_of(
                            [o.imbalance for o in period(run, i)[PERIOD // 2 :]]
                        ),
                    }
                    for word, run in runs.items()
                },
            }
            for i, text in enumerate(reports)
        ],
        **{
            f"{word}: part of time above upper imbalance": mean_of(
                [o.imbalance > limit for o in run]
            )
            for word, run in runs.items()
        },
        "switches": switches(runs["balanced"]),
        "buckets_moved": moved(runs["balanced"]),
    }


def period(run: Sequence[Driven], number: int) -> Sequence[Driven]:
    return run[number * PERIOD : (number + 1) * PERIOD]


def drawn(generator: np.random.Generator, mean: int | None, deviation: int | None) -> list[Floats]:
    """A minute of tuples: CPU seconds by bucket, of each second."""
    keys = np.arange(KEYS)
    if mean is None or deviation is None:
        shares = np.full(KEYS, 1 / KEYS)
    else:
        shares = np.exp(-0.5 * ((keys - mean) / deviation) ** 2)
        shares /= shares.sum()
    # Keys are in buckets by a hash; here by a permutation, the same for all periods.
    bucket = np.random.default_rng(SEED).permutation(KEYS) % BUCKETS
    tuples = generator.multinomial(RATE, shares, size=PERIOD)
    return [np.bincount(bucket, weights=one, minlength=BUCKETS) * SERVICE_S for one in tuples]


def provisioning(name: str) -> dict[str, Any]:
    """Figure 21: up and down, one instance at a time and as many as are needed."""
    up = np.linspace(0.2, MOST, RAMP)
    load = [np.full(BUCKETS, total / BUCKETS) for total in (*up, *up[::-1])]
    thresholds = {"upper": 0.9, "target": 0.6, "lower": 0.5, "maximum": 32}
    runs = {
        word: drive(Threshold(**thresholds, provisioning=word), load)
        for word in ("individual", "load-aware")
    }
    for what, of, level in (
        ("instances", lambda one: one.instances, None),
        ("mean utilisation", lambda one: one.utilisation, ("target", thresholds["target"])),
    ):
        chart(
            DOCS / f"{name}-{what.split()[-1]}.svg",
            f"a load of up to {MOST:g} instances, and back",
            what,
            {word: [of(one) for one in run] for word, run in runs.items()},
            level=level,
        )
    return {
        "thresholds": thresholds,
        "most_load_in_instances": MOST,
        **{word: ramp_report(run, thresholds["target"]) for word, run in runs.items()},
    }


def ramp_report(run: Sequence[Driven], target: float) -> dict[str, Any]:
    busy = [one for one in run if one.instances > 1]
    return {
        "switches_up": switches(run[: RAMP + 1]),
        "switches_down": switches(run[RAMP:]),
        "most_instances": max(one.instances for one in run),
        "instances_at_end": run[-1].instances,
        "mean_distance_from_target": mean_of([abs(one.utilisation - target) for one in busy]),
        "part_of_time_above_0.9": mean_of([one.utilisation > 0.9 for one in run]),
        "instance_seconds": sum(one.instances for one in run),
        "most_waiting_cpu_s": round(max(one.waiting_s for one in run), 4),
        "buckets_moved": moved(run),
    }


def moved(run: Sequence[Driven]) -> int:
    found = 0
    for one, other in pairwise(run):
        before, after = one.observed.mapping, other.observed.mapping
        found += int((before.owner_array != after.owner_array).sum())
    return found


def mean_of(values: Sequence[float]) -> float:
    return round(float(np.mean(values)), 4)


# matplotlib is no dependency: a line chart is a few elements of SVG.

WIDTH, HEIGHT, LEFT, TOP = 760, 260, 46, 40
COLOURS = ("#c0392b", "#1f6fb2")


def round_above(value: float) -> float:
    """The next number that divides by four into round ones."""
    size = 10.0 ** math.floor(math.log10(value))
    return next(size * one for one in (1, 2, 4, 6, 8, 10) if size * one >= value)


def chart(
    path: Path,
    title: str,
    what: str,
    lines: dict[str, Sequence[float]],
    level: tuple[str, float] | None = None,
    marks: Sequence[tuple[int, str]] = (),
) -> None:
    """One line for each name over the batches, a dashed one at a level, and marks above."""
    length = max(len(values) for values in lines.values())
    top = round_above(max([*map(max, lines.values()), level[1] if level else 0]))

    def x(at: float) -> float:
        return round(LEFT + at / length * (WIDTH - LEFT - 10), 1)

    def y(value: float) -> float:
        return round(HEIGHT - 30 - value / top * (HEIGHT - 30 - TOP), 1)

    def text(at_x: float, at_y: float, said: str, more: str = "") -> str:
        return f'<text x="{at_x}" y="{at_y}" {more}>{escape(said)}</text>'

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        text(LEFT, 14, f"{what}: {title}", 'font-weight="bold"'),
        f'<path d="M{LEFT} {TOP}V{y(0)}H{WIDTH - 10}" fill="none" stroke="#888"/>',
        text(WIDTH - 90, HEIGHT - 4, "seconds (simulated)", 'text-anchor="middle"'),
    ]
    for part in range(5):
        value = top * part / 4
        parts.append(text(LEFT - 4, y(value) + 4, f"{value:.3g}", 'text-anchor="end"'))
        at = length * part / 4
        parts.append(text(x(at), HEIGHT - 16, f"{at:.0f}", 'text-anchor="middle"'))
    for at, said in marks:
        parts.append(f'<path d="M{x(at)} {TOP}V{y(0)}" stroke="#ddd"/>')
        parts.append(text(x(at) + 3, TOP + 8, said, 'fill="#777" font-size="9"'))
    if level is not None:
        parts.append(
            f'<path d="M{LEFT} {y(level[1])}H{WIDTH - 10}" stroke="#555" stroke-dasharray="4 3"/>'
        )
        parts.append(text(WIDTH - 12, y(level[1]) - 4, level[0], 'text-anchor="end" fill="#555"'))
    for number, (word, values) in enumerate(lines.items()):
        points = " ".join(f"{x(i)},{y(value)}" for i, value in enumerate(values))
        colour = COLOURS[number]
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}"/>')
        parts.append(text(LEFT + 110 * number, 30, word, f'fill="{colour}"'))
    path.write_text("\n".join([*parts, "</svg>"]) + "\n", encoding="utf-8")
    print(f"written to {path}")


if __name__ == "__main__":
    main()
