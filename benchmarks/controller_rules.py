"""The published rules of two other autoscalers as policies, to compare with; one subquery each.

They are written after the documentation of the systems, for instances in place of task managers and
nodes. What takes those systems a restart or a minute to get new machines costs nothing here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from tidegate.elastic.policy import Decision
from tidegate.elastic.request import Request, Scale
from tidegate.model.observation import Observation


@dataclass(frozen=True)
class FlinkRule:
    """The autoscaler of Flink's Kubernetes operator.

    Over a metric window it takes the rate at which tuples come, and the true processing rate: what
    an instance does in a second in which it is busy. Outside of the utilisation target and its
    boundary, parallelism is set so that it is met, with the backlog caught up within a given time,
    unless the last change is younger than the stabilisation interval. Defaults here are those of
    an example of AWS (a window of a minute); upstream they are 15 minutes and 5 minutes.
    """

    window_s: float = 60.0
    stabilisation_s: float = 60.0
    utilisation: float = 0.6
    boundary: float = 0.2
    catch_up_s: float = 300.0
    maximum: int = 36
    name: str = "flink"

    def decide(self, observed: Sequence[Observation], memory: Mapping[str, Any]) -> Decision:
        (seen,) = observed
        at_s = memory.get("at_s", 0.0) + seen.period_s
        came = sum(load.arrived or 0 for load in seen.inputs)
        busy_s = sum(load.cpu_s for load in seen.instances)
        row = [at_s, seen.period_s, came, busy_s, seen.taken]
        rows = [*memory.get("rows", ()), row]
        rows = [one for one in rows if one[0] > at_s - self.window_s]
        changed = memory.get("changed", 0.0)
        kept = {"at_s": at_s, "rows": rows, "changed": changed}
        _, seconds, arrived, busy, done = (sum(column) for column in zip(*rows, strict=True))
        if at_s - changed < self.stabilisation_s or not done or not busy:
            return Decision((), kept)
        instances = seen.mapping.instances
        rate = arrived / seconds + (seen.backlog or 0) / self.catch_up_s
        used = rate * busy / done / instances
        if abs(used - self.utilisation) <= self.boundary:
            return Decision((), kept)
        wanted = min(max(ceil(rate * busy / done / self.utilisation), 1), self.maximum)
        if wanted == instances:
            return Decision((), kept)
        request = Request(Scale(wanted), seen.subquery, why=f"utilisation {used:.2f}")
        return Decision([request], {**kept, "changed": at_s, "rows": []})


@dataclass(frozen=True)
class DatabricksRule:
    """Databricks' optimised autoscaling.

    Work that waits brings the cluster from where it is to its maximum in two steps; one that was
    underutilised over the last 40 seconds loses a percentage of its nodes. What counts as waiting
    and as underutilised is not published: a backlog of more than a second, and less than 0.6.
    """

    maximum: int = 36
    down_s: float = 40.0
    waiting_s: float = 1.0
    least: float = 0.6
    percent: float = 0.3
    name: str = "databricks"

    def decide(self, observed: Sequence[Observation], memory: Mapping[str, Any]) -> Decision:
        (seen,) = observed
        at_s = memory.get("at_s", 0.0) + seen.period_s
        changed, step = memory.get("changed", -1e9), memory.get("step", 0)
        instances = seen.mapping.instances
        rows = [*memory.get("rows", ()), [at_s, float(seen.utilisation.mean()), seen.period_s]]
        rows = [one for one in rows if one[0] > at_s - self.down_s]
        rate = max(seen.taken / max(seen.seconds, 1e-6), 1.0)
        kept = {"at_s": at_s, "rows": rows, "changed": changed, "step": step}
        if (seen.backlog or 0) / rate > self.waiting_s and at_s - changed > 2.0:
            wanted = self.maximum if step else max((instances + self.maximum) // 2, instances)
            return self._asked(seen, wanted, {**kept, "step": 1})
        used = sum(u * s for _, u, s in rows) / sum(s for *_, s in rows)
        if at_s - changed > self.down_s and used < self.least:
            wanted = max(int(instances * (1 - self.percent)), 1)
            return self._asked(seen, wanted, {**kept, "step": 0})
        return Decision((), kept)

    @staticmethod
    def _asked(seen: Observation, wanted: int, kept: dict[str, Any]) -> Decision:
        if wanted == seen.mapping.instances:
            return Decision((), kept)
        request = Request(Scale(wanted), seen.subquery, why="demand")
        return Decision([request], {**kept, "changed": kept["at_s"], "rows": []})
