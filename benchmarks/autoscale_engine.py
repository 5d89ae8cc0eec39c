"""Autoscaling on the real engine, for the two instances that this machine has cores for.

    python benchmarks/autoscale_engine.py                   phases of section 8.1, two minutes each
    python benchmarks/autoscale_engine.py --seconds 30 --policies model --experiments section8-1

A scan join of two live streams follows the phases of the paper's section 8.1, or a trace like that
of a stock market, shortened to `--seconds` with a window as many times shorter. Rates are raised so
that the highest needs 1.5 instances. The policy `model` decides, and beside it `threshold` with the
same quotas; each run is a process of its own. Beyond two instances see `autoscale.py`, which
simulates. Results go to benchmarks/results/autoscale_engine.json.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
from measure import MASTER, common_arguments, give, in_child, write_report
from model_accuracy import STEP_S, WARM_S, Setup, run, scaled_trace

from tidegate.model.experiment import EXPERIMENTS
from tidegate.model.trace import Trace
from tidegate.model.window import TimeWindow

SECONDS, WINDOW_S, HIGHEST = 120.0, 60.0, 1.5
POLICIES = {
    "model": "model?maximum=2",
    "threshold": "threshold?maximum=2&upper=0.8&target=0.75&lower=0.35",
}
CHOSEN = ("section8-1", "section8-2", "trades")
SATURATED_S = 2.0
"""Tuples that wait for longer than so say that there are too few instances."""


def trace_of(name: str, seconds: float, factor: float) -> tuple[Trace, TimeWindow]:
    """An experiment in `seconds`, with the highest rate at `factor` tuples a second a side."""
    whole = EXPERIMENTS[name]().trace
    window = TimeWindow(round(WINDOW_S * seconds / len(whole), 3))
    return scaled_trace(whole, seconds, factor / float(whole.r.max()), 1, warm=0.1), window


def child(arguments: argparse.Namespace) -> None:
    """One run with one policy, or the pilot."""
    name, policy, factor = arguments.child.split("=")
    trace, window = trace_of(name, arguments.seconds, float(factor))
    asked = None if policy == "pilot" else POLICIES[policy]
    batches, status = run(
        Setup(name), trace, window, Path(arguments.work), arguments.master, policy=asked
    )
    if policy == "pilot":
        (found,) = status["predicted"]["subqueries"].values()
        constants = found["constants"]
        give({n: constants[n]["value"] for n in ("comparison", "tuple_s")})
        return
    later = [b for b in batches if b.end_s > WARM_S]
    waits = [b.latency_sum_s / b.tuples for b in later if b.tuples]
    give(
        {
            "saso": next(iter(status["saso"].values())),
            "predicted": status["predicted"]["over_run"],
            "latency_ms": status["latency_ms"],
            "saturated_share": round(float(np.mean(np.array(waits) > SATURATED_S)), 4),
            "switches": [
                {n: e[n] for n in ("batch", "instances", "before", "why", "control_ms")}
                for e in status["epochs"]
                if e.get("by", "").startswith("policy")
            ],
        }
    )


def highest(costs: dict[str, float], window_s: float) -> float:
    """The rate a side that needs the wanted number of instances."""
    pairs, moved = 2 * window_s * costs["comparison"] / HIGHEST, 2 * costs["tuple_s"]
    return (math.sqrt(moved**2 + 4 * pairs) - moved) / (2 * pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    common_arguments(parser, rounds=1)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--experiments", nargs="+", choices=EXPERIMENTS, default=list(CHOSEN))
    parser.add_argument("--policies", nargs="+", choices=POLICIES, default=list(POLICIES))
    parser.add_argument("--master", default=MASTER)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments)
        return
    shared = ["--seconds", str(arguments.seconds), "--master", arguments.master]
    window_s = trace_of(arguments.experiments[0], arguments.seconds, 1.0)[1].seconds
    guess = highest({"comparison": 1.5e-8, "tuple_s": 2e-5}, window_s)
    pilot = f"{arguments.experiments[0]}=pilot={guess * 0.7}"
    costs = in_child(__file__, "--child", pilot, *shared)
    found: dict[str, Any] = {}
    for name in arguments.experiments:
        rate = highest(costs, trace_of(name, arguments.seconds, 1.0)[1].seconds)
        found[name] = {"highest_rate": rate}
        for policy in arguments.policies:
            one = in_child(__file__, "--child", f"{name}={policy}={rate}", *shared)
            found[name][policy] = one
            print(
                f"{name}, {policy}: {len(one['switches'])} switches, saturated "
                f"{one['saturated_share']:.1%}, p99 {one['latency_ms']['p99']:.0f} ms",
                flush=True,
            )
    write_report(
        "autoscale_engine",
        {"seconds": arguments.seconds, "step_s": STEP_S, "pilot": costs, "experiments": found},
    )


if __name__ == "__main__":
    main()
