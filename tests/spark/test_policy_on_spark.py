"""A policy on Spark: what it sees of tasks in other processes, and that instances follow it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

import tidegate as tg
from tests.spark.test_graphs_on_spark import ROWS, stream
from tidegate.policy import Decision, Observation, Policy, Request, Scale
from tidegate.sink.memory import MemorySink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Breathing:
    """Asks for another number of instances after every third batch, as long as they do something.

    What it remembers is how often it has asked.
    """

    name = "breathing"

    def decide(self, observed: Sequence[Observation], memory: Mapping[str, Any]) -> Decision:
        (seen,) = observed
        asked = int(memory.get("asked", 0))
        busy = all(load.tuples and load.cpu_s > 0 for load in seen.instances)
        if seen.batch % 3 != 2 or not busy or not seen.slots:
            return Decision(memory={"asked": asked})
        wanted = 1 + seen.mapping.instances % 3
        why = f"breath {asked} with {seen.slots} slots"
        return Decision([Request(Scale(wanted), why=why)], {"asked": asked + 1})


LOADED = tg.policy.threshold(
    upper=1e-6, target=1e-6, lower=1e-9, improvement=0.0, batches=2, seconds=0.0, maximum=3
)
"""For which whatever instances do is too much."""


@pytest.mark.parametrize(
    ("policy", "instances", "why"),
    [
        (LOADED, [1, 3], "above 0.00: 1 -> 3 instances"),
        (Breathing(), [1, 2, 3, 1], "breath 2 with 2 slots"),
    ],
)
def test_a_policy_switches_a_query_on_spark(
    spark: SparkSession, policy: Policy, instances: list[int], why: str
) -> None:
    tables = []
    for session, told in ((tg.Session(master="none"), None), (tg.Session(spark), policy)):
        counts = stream(session).window("2 seconds").group_by("k", "v").agg(n=tg.count())
        sink = MemorySink()
        options = {"batch_rows": ROWS if told is None else ROWS // 12, "policy": told}
        query = counts.start(sink=sink, instances=1, **options)
        query.wait()
        tables.append(sink.table())
    assert tables[0].num_rows > 100
    assert tables[1].equals(tables[0])
    epochs = query.status()["epochs"]
    assert [e["instances"] for e in epochs] == instances
    assert {e["by"] for e in epochs[1:]} == {f"policy {policy.name}"}
    assert why in epochs[-1]["why"]
    assert all(e["buckets_moved"] > 0 for e in epochs[1:])
