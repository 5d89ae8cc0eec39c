"""Policies of a program: given at the start or while it runs, and for subqueries on one cloud."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import tidegate as tg
from tidegate.policy import Request, Scale

START = datetime(2024, 1, 1, tzinfo=UTC)
ROWS = [{"t": START + timedelta(seconds=i), "k": i % 5} for i in range(300)]


def most_of_each_minute(source: tg.MemorySource) -> tg.Stream:
    stream = tg.Session(master="none").stream(source, time="t")
    counts = stream.window("10 seconds").group_by("k").agg(n=tg.count())
    return counts.window("1 minute").agg(most=tg.max("n"))


def test_subqueries_on_the_same_instances_switch_together() -> None:
    source = tg.MemorySource(ROWS, time="t")
    source.end()
    sink = tg.sink.memory()
    script = tg.policy.scripted({2: [Request(Scale(3), "aggregate, aggregate2", why="room")]})
    query = most_of_each_minute(source).start(
        sink=sink, policy=script, strategy="query-cloud", instances=1, batch_rows=50
    )
    assert query.wait().finished
    status = query.status()
    assert {of["instances"] for of in status["subqueries"].values()} == {3}
    told = [(e["batch"], e["by"], e["why"]) for e in status["epochs"] if e["epoch"]]
    assert told == [(3, "policy scripted", "room")] * 2
    assert status["policy"] == {"name": "scripted", "failure": None, "remark": None}
    assert sink.table()["most"].to_pylist() == [2] * 5


def test_another_policy_while_it_runs() -> None:
    source = tg.MemorySource(ROWS[:150], time="t")
    query = most_of_each_minute(source).start(sink=tg.sink.memory(), instances=1, batch_rows=50)
    assert query.status()["policy"]["name"] == "fixed"
    query.use("threshold?maximum=2")
    assert query.status()["policy"]["name"] == "threshold"
    with pytest.raises(tg.OptionError, match="policy: must be a known word; got model1"):
        query.use("model1")
    source.append(ROWS[150:])
    source.end()
    assert query.wait().finished
    assert query.status()["policy"] == {"name": "threshold", "failure": None, "remark": None}
    with pytest.raises(tg.OptionError, match="use: needs a query that runs; got one that has fin"):
        query.use("fixed")


def test_over_input_that_is_not_live_the_model_says_that_it_has_no_rates(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = tg.MemorySource(ROWS, time="t")
    source.end()
    query = most_of_each_minute(source).start(
        sink=tg.sink.memory(), policy=tg.policy.model(maximum=4), instances=1, batch_rows=50
    )
    assert query.wait().finished
    (said,) = [r.getMessage() for r in caplog.records if "policy model" in r.getMessage()]
    assert said.startswith("policy model: it goes by the rates at which tuples arrive, and no ")
    assert query.status()["policy"]["remark"] in said
    assert {of["instances"] for of in query.status()["subqueries"].values()} == {1}
