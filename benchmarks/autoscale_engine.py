"""Autoscaling on the real engine, with as many instances as a machine has cores for.

    python benchmarks/autoscale_engine.py                   phases of section 8.1, two minutes each
    python benchmarks/autoscale_engine.py --seconds 30 --policies model --experiments section8-1
    python benchmarks/autoscale_engine.py --cores 16 --most 12 --seconds 240
                                                            loads that need 2 to 10 instances or so
    python benchmarks/autoscale_engine.py --cores 3 --most 3 --beside 5 --policies model
                                                            five runs at once, on 15 cores

A scan join of two live streams follows the phases of the paper's section 8.1, or a trace like that
of a stock market, shortened to `--seconds` with a window as many times shorter. The policy `model`
decides, and beside it `threshold` with the same quotas; each run is a process of its own.

Pilot runs with 1, 2, 4 ... instances measure first what each number sustains. What is not divided
among instances bounds the load, so the highest rate is one that `--most` of them were measured to
bear: they are busy for at most 0.85 of the time, the driver's part included, and the policies need
at most 0.85 of them. Phases lie between 0.45 of that rate and all of it, so that most need more
than one instance of two; trades are as they are. The join is by distance: it takes instances ten
times as long to compare as the paper's band, of which the results cost nearly all of the time, and
the driver's part of results is not divided among instances.

A run that is 20 seconds later than its load is stopped, and says how much of the load was left.
`autoscale.py` simulates the same. Results go to benchmarks/results/autoscale_engine.json, of other
than two cores to autoscale_engine-N.json, with the rate, the instances, what they compared, their
latency and how busy they were in every second.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from measure import (
    CORES,
    MASTER,
    beside,
    beside_argument,
    common_arguments,
    give,
    in_child,
    percentiles,
    write_report,
)
from model_accuracy import RISE_S, WARM_S, factor_for, pilot_of, piloted
from model_run import DISTANCE, LATE_S, STEP_S, Batch, held, run, shared, spread

from tidegate.cli.command.sustainable import counts_up_to
from tidegate.model.control.controller import UPPER
from tidegate.model.join.experiment import EXPERIMENTS
from tidegate.model.join.trace import Trace
from tidegate.model.operation import Floats, Lookback

SECONDS, WINDOW_S, MOST = 120.0, 60.0, 2
HIGHEST = 0.85
"""The highest load: the share of the time, and the part of the instances that policies need."""
LOWEST = {"trades": 0.0}
PHASES_FROM = 0.45
"""The lowest rate as a share of the highest: by experiment, and of all others."""
FIRST_GUESS = {"comparison_s": 1.6e-9, "tuple_s": 1e-5}
ENDING_S = 120.0
"""How much longer than its load and LATE_S a process may take, before it is killed."""
Costs = Mapping[int, Mapping[str, float]]
"""Of a comparison and of a tuple, by the number of instances that they were measured with."""
POLICIES = {"model": "", "threshold": "&upper=0.8&target=0.75&lower=0.35"}
"""With what besides the most instances."""
CHOSEN = ("section8-1", "section8-2", "trades")
SATURATED_S = 2.0
"""Tuples that wait for longer than so say that there are too few instances."""


def trace_of(name: str, seconds: float, rate: float) -> tuple[Trace, Lookback]:
    """An experiment in `seconds`, with so many tuples a second a side at most."""
    whole = EXPERIMENTS[name]().trace
    window = Lookback(seconds=round(WINDOW_S * seconds / len(whole), 3))
    lowest = LOWEST.get(name, PHASES_FROM)
    rates = lowest + (1 - lowest) * held(whole.r[:, 0], seconds) / float(whole.r.max())
    warm = np.full(round(WARM_S / STEP_S), 0.1 * rates.mean())
    rates = np.concatenate((warm, rates)) * rate
    return shared(rates, rates, 1), window


def child(arguments: argparse.Namespace) -> None:
    """A pilot with some instances, or one run with one policy."""
    name, policy, text = arguments.child.split("=")
    rate, work, seconds = float(text), Path(arguments.work), arguments.seconds
    if name == "pilot":
        setup = pilot_of(int(policy))
        give(piloted(setup, seconds, rate, work, arguments.master, DISTANCE))
        return
    trace, window = trace_of(name, seconds, rate)
    most = arguments.most
    chosen = f"{policy}?maximum={most}{POLICIES[policy]}"
    ran = run(
        trace,
        window,
        work,
        arguments.master,
        policy=chosen,
        # No more than come in two seconds, so that a policy is asked while it is behind.
        batch_rows=round(4 * rate),
        predicate=DISTANCE,
    )
    status = ran.status
    give(
        {
            "left_s": ran.left_s(trace),
            "saso": next(iter(status["saso"].values())),
            "predicted": (status["predicted"] or {}).get("over_run"),
            "window_s": window.seconds,
            "tuples_per_second": rates_of(trace),
            **seconds_of(ran.batches, arguments.seconds, most),
            "switches": [
                {n: e[n] for n in ("batch", "instances", "before", "why", "control_ms")}
                for e in status["epochs"]
                if e.get("by", "").startswith("policy")
            ],
        }
    )


def seconds_of(batches: list[Batch], seconds: float, most: int) -> dict[str, Any]:
    """By second the instances, their latency, what they compared and the share of CPU they used.

    And the share of seconds that were saturated, that is with tuples that waited long;
    `needlessly` where another instance could have been.
    """
    edges = np.arange(WARM_S, WARM_S + seconds + 1e-9)
    answered = spread(batches, np.array([float(b.answered) for b in batches]), edges)
    waited = spread(batches, np.array([b.latency_sum_s for b in batches]), edges)
    with np.errstate(invalid="ignore", divide="ignore"):
        latency = waited / answered
    ends = np.array([b.end_s for b in batches])
    running = np.minimum(np.searchsorted(ends, edges[:-1]), len(batches) - 1)
    instances = np.array([batches[place].sample.instances for place in running])
    saturated = latency > SATURATED_S
    known = latency[np.isfinite(latency)] * 1e3
    compared, cpu_s = (
        spread(batches, np.array([float(amount) for amount in amounts]), edges)
        for amounts in (
            [b.sample.comparisons for b in batches],
            [b.sample.cpu_s for b in batches],
        )
    )
    return {
        "seconds": list(range(len(edges) - 1)),
        "comparisons_per_second": compared.round().tolist(),
        "cpu": (cpu_s / instances).round(4).tolist(),
        "latency_ms": percentiles(known),
        "saturated_share": round(float(saturated.mean()), 4),
        "needlessly_share": round(float((saturated & (instances < most)).mean()), 4),
        "instances": instances.tolist(),
        "latency_s": [round(float(v), 4) if np.isfinite(v) else None for v in latency],
    }


def rates_of(trace: Trace) -> list[float]:
    """Tuples of both sides that come in each second."""
    both = (trace.r.sum(axis=1) + trace.s.sum(axis=1))[round(WARM_S / STEP_S) :]
    found: list[float] = both.reshape(-1, round(1 / STEP_S)).mean(axis=1).round().tolist()
    return found


def highest(costs: Mapping[str, float], window_s: float, most: int) -> float:
    """The rate a side of the highest load that so many instances bear, by costs with all of them.

    Instances have the time that is left beside the tuples; policies keep UPPER of that.
    """
    pairs, moved = 2 * window_s * costs["comparison_s"] / most, 2 * costs["tuple_s"]
    of_time = (math.sqrt(moved**2 + 4 * pairs * HIGHEST) - moved) / (2 * pairs)
    pairs /= UPPER * HIGHEST
    return min(of_time, (math.sqrt(moved**2 + 4 * pairs) - moved) / (2 * pairs))


def needed(trace: Trace, window: Lookback, costs: Costs, most: int) -> Floats:
    """The fewest instances that bear each second of an experiment, by their measured costs."""
    rates = trace.r[:, 0]
    kept = window.contents(rates, STEP_S)
    found = np.full(len(rates), most)
    for count in range(most, 0, -1):
        comparison_s, tuple_s = (
            np.interp(count, list(costs), [of[name] for of in costs.values()])
            for name in ("comparison_s", "tuple_s")
        )
        found[2 * rates * (tuple_s + kept * comparison_s / count) <= 1.0] = count
    seconds = found[round(WARM_S / STEP_S) :].reshape(-1, round(1 / STEP_S))
    return seconds.max(axis=1)


def judged(one: dict[str, Any], few: Floats) -> dict[str, Any]:
    """A run beside the instances that its load needs by measurement."""
    were = np.array(one["instances"])[: len(few)]
    return {
        "enough": round(float((were >= few).mean()), 4),
        "too_many": round(float(np.maximum(were - few, 0).mean()), 2),
        "needed": few.tolist(),
    }


def costs_of(
    counts: list[int], seconds: float, options: list[str], cpus: Sequence[int] | None
) -> dict[int, dict[str, float]]:
    """Pilots with each number of instances; each goes by what the one before it has measured."""
    known, found = FIRST_GUESS, dict[int, dict[str, float]]()
    for count in counts:
        factor = factor_for(known, pilot_of(count), seconds)
        limit_s = WARM_S + RISE_S + LATE_S + ENDING_S
        child_of = f"pilot={count}={factor}"
        known = in_child(__file__, "--child", child_of, *options, limit_s=limit_s, cpus=cpus)
        found[count] = known
        print(f"{count} instances: {known}", flush=True)
    return found


def table(experiments: dict[str, Any]) -> Iterator[str]:
    """What the policies did, as the docs have it."""
    yield (
        "| load | policy | switches | settled within, s | overshoot | enough instances "
        "| mean latency, ms | worst second, ms |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for name, of in experiments.items():
        for policy in (policy for policy in POLICIES if "saso" in of.get(policy, ())):
            one = of[policy]["saso"]
            settled = "-" if one["settling_s"] is None else f"{one['settling_s']:.1f}"
            latency = [one[f"latency_{kind}_s"] * 1e3 for kind in ("mean", "max")]
            yield (
                f"| `{name}` | {policy} | {one['switches']} | {settled} | {one['overshoot']} "
                f"| {one['enough']:.0%} | {latency[0]:,.0f} | {latency[1]:,.0f} |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    common_arguments(parser)
    beside_argument(parser)
    parser.add_argument("--most", type=int, default=MOST, help="instances")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--experiments", nargs="+", choices=EXPERIMENTS, default=list(CHOSEN))
    parser.add_argument("--policies", nargs="+", choices=POLICIES, default=list(POLICIES))
    parser.add_argument("--master", default=MASTER)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments)
        return
    seconds, most = arguments.seconds, arguments.most
    options = ["--seconds", str(seconds), "--master", arguments.master]
    options += ["--most", str(most)]
    # Pilots have as many cores as a run has.
    cpus = sorted(os.sched_getaffinity(0))[:CORES] if arguments.beside > 1 else None
    costs = costs_of(counts_up_to(most), seconds, options, cpus)
    found, few = dict[str, Any](), dict[str, Floats]()
    for name in arguments.experiments:
        window_s = trace_of(name, seconds, 1.0)[1].seconds
        rate = highest(costs[most], window_s, most)
        few[name] = needed(*trace_of(name, seconds, rate), costs, most)
        found[name] = {"highest_rate": rate, "window_s": window_s}
        said = f"up to {rate:,.0f} tuples/s a side need {few[name].min()} to {few[name].max()}"
        print(f"{name}: {said}", flush=True)

    def one(run: str, cpus: Sequence[int] | None) -> Any:
        name, policy = run.split("=")
        limit_s = WARM_S + seconds + LATE_S + ENDING_S
        child_of = f"{run}={found[name]['highest_rate']}"
        try:
            did = in_child(__file__, "--child", child_of, *options, limit_s=limit_s, cpus=cpus)
        except subprocess.TimeoutExpired:
            print(f"{name}, {policy}: killed after {limit_s:.0f} s", flush=True)
            return {"killed_after_s": limit_s}
        did |= {"measured": judged(did, few[name])}
        print(told(name, policy, did, most), flush=True)
        return did

    runs = [f"{name}={policy}" for name in found for policy in arguments.policies]
    for run_of, did in zip(runs, beside(arguments.beside, one, runs), strict=True):
        name, policy = run_of.split("=")
        found[name][policy] = did
    write_report(
        "autoscale_engine" if CORES == 2 else f"autoscale_engine-{CORES}",
        {
            "seconds": seconds,
            "step_s": STEP_S,
            "most": most,
            "beside": arguments.beside,
            "pilots": costs,
            "experiments": found,
        },
    )


def told(name: str, policy: str, one: dict[str, Any], most: int) -> str:
    """A run in one line."""
    left = f", fell behind: {one['left_s']:.0f} s of the load left" if one["left_s"] else ""
    return (
        f"{name}, {policy}: {len(one['switches'])} switches, enough instances in "
        f"{one['measured']['enough']:.0%} of the seconds, {one['measured']['too_many']:.1f} too "
        f"many, saturated {one['saturated_share']:.1%}, with fewer than {most} "
        f"{one['needlessly_share']:.1%}, latency {one['latency_ms']['p50']:.0f} ms, in the worst "
        f"second {one['latency_ms']['max']:.0f} ms{left}"
    )


if __name__ == "__main__":
    main()
