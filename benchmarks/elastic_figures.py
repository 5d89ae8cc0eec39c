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

import argparse
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from chart import Chart, Line
from measure import PICTURES, write_report

from tidegate.elastic.threshold import Threshold
from tidegate.route.mapping import even
from tidegate.testing import DrivenBatch, drive, switches

Floats = npt.NDArray[np.float64]
SEED, BUCKETS, KEYS = 2012, 1_024, 10_000
INSTANCES, RATE, SERVICE_S, PERIOD = 15, 150_000, 60e-6, 60
MOST, RAMP = 14.0, 600
SECONDS = "seconds (simulated)"


def main() -> None:
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args()
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
    drifting = 1 if len({deviation for _, deviation in phases}) > 2 else 0
    word = ("mean", "deviation")[drifting]
    shown = [f"{word} {phase[drifting]:,}" if phase[0] else "all keys alike" for phase in phases]
    reports = [(f"mean {m}, deviation {d}" if m else "uniform") for m, d in phases]
    Chart(
        f"Uneven load of {INSTANCES} instances while keys drift every {PERIOD} seconds",
        "standard deviation of the utilisation",
        [
            Line.each_second(word, [one.imbalance for one in runs[word]])
            for word in ("not balanced", "balanced")
        ],
        levels=[("upper imbalance", limit)],
        marks=[(i * PERIOD, text) for i, text in enumerate(shown)],
        time=SECONDS,
    ).write(PICTURES / f"{name}.svg")
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


def period(run: Sequence[DrivenBatch], number: int) -> Sequence[DrivenBatch]:
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
    lines = {
        "instances": [
            Line.each_second(word, [one.instances for one in run], steps=True)
            for word, run in runs.items()
        ],
        "utilisation": [
            Line.each_second(word, [one.utilisation for one in run]) for word, run in runs.items()
        ],
    }
    lines["instances"].append(Line.each_second("load", [*up, *up[::-1]]))
    title = f"A load that grows to what {MOST:g} instances can do, and falls again"
    levels = [(word, thresholds[word]) for word in ("upper", "target", "lower")]
    Chart(title, "instances", lines["instances"], time=SECONDS).write(
        PICTURES / f"{name}-instances.svg"
    )
    Chart(title, "average utilisation", lines["utilisation"], levels, time=SECONDS).write(
        PICTURES / f"{name}-utilisation.svg"
    )
    return {
        "thresholds": thresholds,
        "most_load_in_instances": MOST,
        **{word: ramp_report(run, thresholds["target"]) for word, run in runs.items()},
    }


def ramp_report(run: Sequence[DrivenBatch], target: float) -> dict[str, Any]:
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


def moved(run: Sequence[DrivenBatch]) -> int:
    found = 0
    for one, other in pairwise(run):
        before, after = one.observed.mapping, other.observed.mapping
        found += int((before.owner_array != after.owner_array).sum())
    return found


def mean_of(values: Sequence[float]) -> float:
    return round(float(np.mean(values)), 4)


if __name__ == "__main__":
    main()
