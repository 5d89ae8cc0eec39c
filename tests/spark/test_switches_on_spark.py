"""Random switches of a query on Spark, with tasks that stay: the rows are those without any."""

from __future__ import annotations

import random
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tidegate as tg
from tests.conftest import LONG
from tests.property.steps import BUCKETS
from tests.property.switching import requests
from tests.seed import seeds
from tests.spark.test_graphs_on_spark import GRAPHS, ROWS, Runs, stream
from tidegate.elastic.handover import AUTO, SHARED, STATE, WINDOW
from tidegate.errors import OptionError
from tidegate.execute.spark import task_exchange as spark_shared
from tidegate.sink.memory import MemorySink
from tidegate.testing import Watched, disorder, visits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SWITCHES = 30 if LONG else 10
BATCHES = SWITCHES + 4
HANDED = (AUTO, STATE, WINDOW) if LONG else (AUTO,)


class Switching:
    """An observer that asks for something before most batches, once it knows whom to ask."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._query: tg.RunningQuery | None = None
        self._known = threading.Event()

    def of(self, query: tg.RunningQuery) -> tg.RunningQuery:
        self._query = query
        self._known.set()
        return query

    def __call__(self, step: str, batch: int) -> None:
        if step != "before gate" or batch == 0:
            return
        self._known.wait()
        assert self._query is not None
        names = list(self._query.status()["subqueries"])
        for request in requests(self._chance, names, 2, 0.9).get(1, ()):
            with suppress(OptionError):  # an instance that is not there
                self._query._loop.controls.ask(request)


def all_outputs(session: tg.Session, seen: str | None, handover: str) -> dict[str, tg.Stream]:
    """Windows, joins of all kinds, tuple windows, unions and own operators in one query.

    By window recreation only those that can be handed over so.
    """
    a = stream(session)
    on = (tg.left.v - tg.right.v).abs() <= 1
    near = a.join(a, on=on, within="200 milliseconds").select(v=tg.left.v, w=tg.right.v)
    last = a.join(a, on=on, rows=20).select(v=tg.left.v, w=tg.right.v)
    found = {**session.queries(GRAPHS, a=a), "near": near, "last": last}
    if handover == WINDOW:
        del found["pairs"]
        return found
    told = a.process(Runs if seen is None else Watched(Runs, seen), keys="k")
    return {**found, "told": told}


@pytest.mark.parametrize("handover", HANDED)
def test_random_switches_on_spark_change_nothing(
    handover: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P2 and P4, told by the objects of buckets in several processes, and the same rows."""
    monkeypatch.setattr(spark_shared, "SMALL_ROWS", 0)
    seen = str(tmp_path / "seen")
    for seed in seeds(1):
        tables = []
        for session, told in ((tg.Session(master="none"), None), (tg.Session(spark), seen)):
            streams = all_outputs(session, told, handover)
            sinks = {name: MemorySink() for name in streams}
            if told is None:
                session.start(streams, sinks=sinks, instances=1, batch_rows=ROWS).wait()
            else:
                switching = Switching(random.Random(f"on Spark {handover} {seed}"))
                query = session.start(
                    streams,
                    sinks=sinks,
                    instances=2,
                    buckets=BUCKETS,
                    batch_rows=ROWS // BATCHES,
                    observer=switching,
                    handover=handover,
                )
                assert switching.of(query).wait().finished
                epochs = [s["epoch"] for s in query.status()["subqueries"].values()]
                assert sum(epochs) >= SWITCHES
                handed = {e.get("handover") for e in query.status()["epochs"]}
                assert (SHARED if handover == AUTO else handover) in handed
            tables.append({name: sink.table() for name, sink in sinks.items()})
        still, switched = tables
        for name, table in still.items():
            assert table.num_rows > 10, name
            assert switched[name].equals(table), name
        if handover == WINDOW:
            continue
        calls = visits(seen)
        assert sum(len(c) for c in calls.values()) == ROWS
        assert len({v.process for c in calls.values() for v in c}) > 1
        assert disorder(calls) == []
