"""Figures 20 and 21 of StreamCloud on the engine, with as many instances as there are cores for.

    python benchmarks/elastic_engine.py --cores 16 --instances 12
    python benchmarks/elastic_engine.py --instances 2 --seconds 2    a quick look

Tuples arrive in real time, and each keeps a core busy for a fixed time, as in `elastic_ramp.py`.

20  All instances, busy for 0.6 of the time. First all keys are alike, then they are normally
    distributed, with another mean in each period. With and without balancing: the standard
    deviation of the utilisation of the instances, batch by batch.
21  One instance, and a load that grows to what 0.65 of them can do and falls again, each in two
    periods. Individual and load-aware provisioning: how many switches, how far from the target the
    utilisation is on average, and the latency.

Results go to benchmarks/results/elastic_engine.json.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from elastic_ramp import KEYS, SERVICE_S, THRESHOLDS, TRIGGER_S, Load, Run, ramp, run, warm_up
from measure import CORES, MASTER, common_arguments, write_report

import tidegate as tg
from tidegate.elastic.threshold import Threshold

BUSY, MOST = 0.6, 0.65
"""The load of figure 20 and the highest of figure 21, of all instances."""
MEANS, DEVIATION = (None, 200, 400, 600, 800), 12
SECONDS = 8.0


def drift(period_s: float, instances: int) -> Load:
    """The same load at all times, of keys that change with each period."""

    def keys_at(at_s: float, chance: np.random.Generator, rows: int) -> Any:
        mean = MEANS[min(int(at_s / period_s), len(MEANS) - 1)]
        if mean is None:
            return chance.integers(0, KEYS, rows)
        return np.rint(chance.normal(mean, DEVIATION, rows)).astype(np.int64)

    return Load(len(MEANS) * period_s, lambda _: BUSY * instances, keys_at)


def uneven(ran: Run, period_s: float) -> dict[str, Any]:
    """How far apart the instances were, after the first period and in the later half of each."""
    found = [one for one in ran.seen if period_s < one.at_s <= len(MEANS) * period_s]
    if not found:
        raise SystemExit("no batch ended after the first period: longer ones are needed.")
    late = [one for one in found if one.at_s % period_s > period_s / 2] or found
    limit = Threshold().imbalance
    return {
        "imbalance": _mean([one.imbalance for one in found]),
        "imbalance_second_half": _mean([one.imbalance for one in late]),
        "above_limit": _mean([one.imbalance > limit for one in found]),
        "utilisation": _mean([one.utilisation for one in found]),
        "switches": len(ran.switches),
        "latency_ms": ran.summary["latency_ms"],
        "at_s": [round(one.at_s, 2) for one in ran.seen],
        "imbalances": [round(one.imbalance, 4) for one in ran.seen],
    }


def provisioned(ran: Run) -> dict[str, Any]:
    """Instances over the ramp, and how close to the target they kept the utilisation."""
    busy = [one for one in ran.seen if one.instances > 1] or ran.seen
    target = THRESHOLDS["target"]
    return {
        "switches": len(ran.switches),
        "most_instances": max(one.instances for one in ran.seen),
        "distance_from_target": _mean([abs(one.utilisation - target) for one in busy]),
        "latency_ms": ran.summary["latency_ms"],
        "at_s": [round(one.at_s, 2) for one in ran.seen],
        "instances": [one.instances for one in ran.seen],
    }


def _mean(values: list[Any]) -> float:
    return round(float(np.mean(values)), 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    common_arguments(parser)
    parser.add_argument("--instances", type=int, default=CORES)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of a period")
    asked = parser.parse_args()
    instances, period_s = asked.instances, asked.seconds
    session = tg.Session(master=MASTER)
    warm_up(session, instances)
    held = {"minimum": instances, "maximum": instances}
    found: dict[str, Any] = {"balancing": {}, "provisioning": {}}
    for name, more in (("balanced", {}), ("not balanced", {"imbalance": 100.0})):
        load = drift(period_s, instances)
        ran = run(session, load, Threshold(**held, **more), instances, instances)
        found["balancing"][name] = uneven(ran, period_s)
        print(name, {k: v for k, v in found["balancing"][name].items() if k[-1] != "s"}, flush=True)
    for name in ("individual", "load-aware"):
        policy = Threshold(**{**THRESHOLDS, "maximum": instances}, provisioning=name)
        ran = run(session, ramp(2 * period_s, MOST * instances), policy, 1, instances)
        found["provisioning"][name] = provisioned(ran)
        print(name, len(ran.switches), "switches", flush=True)
    setup = {"instances": instances, "period_s": period_s, "trigger_s": TRIGGER_S}
    write_report("elastic_engine", {"service_s": SERVICE_S, **setup, **found})


if __name__ == "__main__":
    main()
