"""Autoscaling on the real engine, with as many instances as a machine has cores for.

    python benchmarks/autoscale_engine.py                   phases of section 8.1, two minutes each
    python benchmarks/autoscale_engine.py --seconds 30 --policies model --experiments section8-1
    python benchmarks/autoscale_engine.py --cores 16 --most 12        loads that need up to ten

A scan join of two live streams follows the phases of the paper's section 8.1, or a trace like that
of a stock market, shortened to `--seconds` with a window as many times shorter. Rates are raised so
that the highest needs 0.85 of the instances that there may be. The policy `model` decides, and
beside it `threshold` with the same quotas; each run is a process of its own. `autoscale.py`
simulates the same. Results go to benchmarks/results/autoscale_engine.json, of other than two cores
to autoscale_engine-N.json, with the instances and the latency of every second.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import model_accuracy
import numpy as np
from measure import CORES, MASTER, common_arguments, give, in_child, percentiles, write_report
from model_accuracy import GUESS, WARM_S, factor_for, pilot_of
from model_run import STEP_S, Batch, held, run, shared, spread

from tidegate.model.join.experiment import EXPERIMENTS
from tidegate.model.join.trace import Trace
from tidegate.model.operation import Lookback

SECONDS, WINDOW_S, HIGHEST, MOST = 120.0, 60.0, 0.85, 2
POLICIES = {"model": "", "threshold": "&upper=0.8&target=0.75&lower=0.35"}
"""With what besides the most instances."""
CHOSEN = ("section8-1", "section8-2", "trades")
SATURATED_S = 2.0
"""Tuples that wait for longer than so say that there are too few instances."""


def trace_of(name: str, seconds: float, rate: float) -> tuple[Trace, Lookback]:
    """An experiment in `seconds`, with so many tuples a second a side at most."""
    whole = EXPERIMENTS[name]().trace
    window = Lookback(seconds=round(WINDOW_S * seconds / len(whole), 3))
    rates = held(whole.r[:, 0], seconds)
    warm = np.full(round(WARM_S / STEP_S), 0.1 * rates.mean())
    rates = np.concatenate((warm, rates)) * rate / float(whole.r.max())
    return shared(rates, rates, 1), window


def child(arguments: argparse.Namespace) -> None:
    """One run with one policy."""
    name, policy, rate = arguments.child.split("=")
    trace, window = trace_of(name, arguments.seconds, float(rate))
    most = arguments.most
    chosen = f"{policy}?maximum={most}{POLICIES[policy]}"
    ran = run(trace, window, Path(arguments.work), arguments.master, policy=chosen)
    status = ran.status
    give(
        {
            "saso": next(iter(status["saso"].values())),
            "predicted": (status["predicted"] or {}).get("over_run"),
            "window_s": window.seconds,
            **seconds_of(ran.batches, arguments.seconds, most),
            "switches": [
                {n: e[n] for n in ("batch", "instances", "before", "why", "control_ms")}
                for e in status["epochs"]
                if e.get("by", "").startswith("policy")
            ],
        }
    )


def seconds_of(batches: list[Batch], seconds: float, most: int) -> dict[str, Any]:
    """Instances and latency by second, and the share of those that were saturated.

    That is with tuples that waited long; `needlessly` where another instance could have been.
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
    return {
        "latency_ms": percentiles(known),
        "saturated_share": round(float(saturated.mean()), 4),
        "needlessly_share": round(float((saturated & (instances < most)).mean()), 4),
        "instances": instances.tolist(),
        "latency_s": [round(float(v), 4) if np.isfinite(v) else None for v in latency],
    }


def highest(costs: dict[str, float], window_s: float, instances: float) -> float:
    """The rate a side that needs so many instances."""
    pairs, moved = 2 * window_s * costs["comparison_s"] / instances, 2 * costs["tuple_s"]
    return (math.sqrt(moved**2 + 4 * pairs) - moved) / (2 * pairs)


def table(experiments: dict[str, Any]) -> Iterator[str]:
    """What the policies did, as the docs have it."""
    yield (
        "| load | policy | switches | settled within, s | overshoot | enough instances "
        "| mean latency, ms | worst second, ms |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for name, of in experiments.items():
        for policy in (policy for policy in POLICIES if policy in of):
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
    parser.add_argument("--most", type=int, default=MOST, help="instances")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--experiments", nargs="+", choices=EXPERIMENTS, default=list(CHOSEN))
    parser.add_argument("--policies", nargs="+", choices=POLICIES, default=list(POLICIES))
    parser.add_argument("--master", default=MASTER)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments)
        return
    options = ["--seconds", str(arguments.seconds), "--master", arguments.master]
    options += ["--most", str(arguments.most)]
    factor = factor_for(GUESS, pilot_of(1), arguments.seconds)
    costs = in_child(model_accuracy.__file__, "--child", f"pilot1={factor}=0", *options[:4])
    print(f"1 instance: {costs}", flush=True)
    found: dict[str, Any] = {}
    for name in arguments.experiments:
        window_s = trace_of(name, arguments.seconds, 1.0)[1].seconds
        rate = highest(costs, window_s, HIGHEST * arguments.most)
        found[name] = {"highest_rate": rate}
        for policy in arguments.policies:
            one = in_child(__file__, "--child", f"{name}={policy}={rate}", *options)
            found[name][policy] = one
            print(
                f"{name}, {policy}: {len(one['switches'])} switches, saturated "
                f"{one['saturated_share']:.1%}, with fewer than {arguments.most} instances "
                f"{one['needlessly_share']:.1%}, latency {one['latency_ms']['p50']:.0f} ms, in the "
                "worst second "
                f"{one['latency_ms']['max']:.0f} ms",
                flush=True,
            )
    write_report(
        "autoscale_engine" if CORES == 2 else f"autoscale_engine-{CORES}",
        {
            "seconds": arguments.seconds,
            "step_s": STEP_S,
            "most": arguments.most,
            "pilot": costs,
            "experiments": found,
        },
    )


if __name__ == "__main__":
    main()
