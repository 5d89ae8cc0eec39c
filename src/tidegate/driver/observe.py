"""What a committed batch showed of a subquery's load, between its outcomes and policies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tidegate.elastic.observation import InstanceLoad, Observation
from tidegate.execute.job import Job, Outcome
from tidegate.gate.backlog import Backlog
from tidegate.operate.bucket_work import divided


def observation(
    job: Job,
    outcomes: Sequence[Outcome],
    seconds: float,
    period_s: float,
    backlog: Backlog | None = None,
) -> Observation:
    """One batch of one subquery; `outcomes` are those of all its instances, in their order.

    What map tasks did is no instance's and moves with no bucket: each instance, and so each of its
    buckets, has an even part of it. Instances that only finish what they began before a switch have
    no buckets, and are left out.
    """
    mapping, buckets = job.mapping, np.zeros(job.mapping.buckets)
    map_cpu_s = sum(o.counts.get("map_cpu_us", 0) for o in outcomes) / 1e6 / mapping.instances
    loads = []
    for outcome in outcomes[: mapping.instances]:
        own_s, number = outcome.counts.get("cpu_us", 0) / 1e6, outcome.instance
        buckets += divided(own_s, outcome.bucket_work, mapping, number)
        buckets += divided(map_cpu_s, b"", mapping, number)
        loads.append(
            InstanceLoad(
                cpu_s=own_s + map_cpu_s,
                tuples=outcome.tuples,
                comparisons=outcome.counts.get("comparisons", 0),
                outputs=outcome.counts.get("outputs", 0),
            )
        )
    return Observation(
        subquery=job.subquery.name,
        batch=job.batch,
        seconds=seconds,
        period_s=period_s,
        mapping=mapping,
        instances=tuple(loads),
        buckets=buckets,
        backlog=waiting_rows(backlog),
    )


def waiting_rows(backlog: Backlog | None) -> int | None:
    """The tuples that wait; None where no source is live, or only bytes or files are known."""
    if backlog is None:
        return None
    rows, others = backlog.total["rows"], backlog.total["bytes"] + backlog.total["files"]
    return rows if rows or not others else None
