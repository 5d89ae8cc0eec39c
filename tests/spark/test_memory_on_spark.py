"""The budget of memory reaches the workers of Spark, by both exchanges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tests.driver.scene import Row, memory, rows_of
from tidegate import memory as budget_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS: list[Row] = [(t, "abc"[t % 3], t) for t in range(1, 25)]


@pytest.mark.parametrize("exchange", ["shared", "shuffle"])
def test_tasks_have_the_budget_of_their_query(spark: SparkSession, exchange: str) -> None:
    class Budgets(tg.Aggregator):
        """What the processes are allowed that fold and that finish; not for this one."""

        state: ClassVar = {"folding": pa.int64()}
        result: ClassVar = pa.string()

        def init(self, n: int) -> dict[str, Any]:
            return {"folding": np.zeros(n, np.int64)}

        def fold(self, state: dict[str, Any], groups: Any, *_: pa.Array) -> dict[str, Any]:
            return {"folding": np.full_like(state["folding"], budget_of.MEMORY.limit_bytes)}

        def merge(
            self, state: dict[str, Any], groups: Any, other: dict[str, Any]
        ) -> dict[str, Any]:
            np.maximum.at(state["folding"], groups, other["folding"])
            return state

        def finish(self, state: dict[str, Any]) -> pa.Array:
            return pa.array([f"{n} {budget_of.MEMORY.limit_bytes}" for n in state["folding"]])

    found = []
    for limit in ("300MB", 400 * 2**20, None):
        sink = tg.sink.memory()
        stream = tg.Session(spark).stream(memory(*ROWS, end=True), time="ts")
        made = stream.window("10 seconds").agg(said=tg.aggregate(Budgets(), "v"))
        made.start(sink=sink, memory_limit=limit, exchange=exchange, instances=2).wait()
        found.append({row[2] for row in rows_of(sink)})
    default = budget_of.MEMORY.limit_bytes  # the last query has put this process back to it
    assert found == [{f"{n} {n}"} for n in (100 * 2**20, 400 * 2**20 // 3, default)]
