"""What the policy `auto` changes on the engine beside instances: batches, and who splits keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.driver.scene import SCHEMA, loop_of, memory, plan_of, rows_of
from tests.driver.test_trigger import Watch, live_loop, run
from tests.operate.aggregate.test_split_keys import node_of
from tidegate.driver.batch_limit import BatchLimit
from tidegate.driver.manager import _checked
from tidegate.elastic.auto.policy import ByTarget
from tidegate.elastic.fixed import Fixed
from tidegate.elastic.policy import Decision
from tidegate.errors import CheckpointError, OptionError
from tidegate.model.observation import BatchCadence, Observation
from tidegate.plan.lowering.lower import lower
from tidegate.plan.lowering.rule import Choices
from tidegate.plan.options import PlanOptions
from tidegate.query.node.node import StreamDef
from tidegate.route.registry import partitioner_of
from tidegate.session.place import Place
from tidegate.session.planning import plan_for
from tidegate.sink.memory import MemorySink
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script

MEDIANS = "SELECT k, MEDIAN(v) AS m, COUNT(*) AS n FROM s [RANGE 10 SECONDS] GROUP BY k"
HOT = [(t / 4_000, "hot" if t % 5 else f"k{t % 97}", t % 89) for t in range(60_000)]


@dataclass(frozen=True)
class Asking:
    """Asks for what it is given after a batch, and notes what it sees."""

    after: dict[int, Decision]
    seen: list[Observation] = field(default_factory=list)
    name: str = "asking"

    def decide(self, observed: Any, memory: Any) -> Decision:
        self.seen.extend(observed)
        return self.after.get(observed[0].batch, Decision())


def test_a_trigger_that_is_longer_than_the_target_is_shortened(tmp_path: Path) -> None:
    clock = Watch(takes_s=0.03)
    loop = live_loop(
        clock,
        "rows=6000&pace=100",
        tmp_path,
        trigger_s=5.0,
        instances=1,
        policy=ByTarget(latency=2.0),
    )
    starts = run(loop, clock)
    apart = [round(b - a, 3) for a, b in pairwise(starts)]
    assert apart[:3] == [5.0, 5.0, 5.0]
    assert set(apart[3:-1]) == {1.0}
    assert loop.manifest.counters["rows_in"] == 6_000
    told = loop.summary.as_dict()["controller"]
    (decision,) = told["decisions"]
    assert decision["remedy"] == "change batches"
    assert decision["after"]["trigger_s"] == 1.0
    assert told["cannot"] is None


def test_batches_that_are_too_small_become_larger(tmp_path: Path) -> None:
    """A batch takes 30 ms however small it is, in which more rows come than it may have."""
    clock = Watch(takes_s=0.03)
    loop = live_loop(
        clock, "rows=40000&pace=2000", tmp_path, batch_rows=20, policy=ByTarget(latency=2.0)
    )
    run(loop, clock)
    told = loop.summary.as_dict()["controller"]
    assert told["decisions"][0]["remedy"] == "change batches"
    assert told["decisions"][0]["after"]["batch_rows"] in (40, 80, 160)
    assert loop.manifest.counters["rows_in"] == 40_000
    assert clock.now() < 25.0, "without it the last row is answered after a minute"


def test_what_a_policy_sees_of_batches_state_and_memory(tmp_path: Path) -> None:
    policy = Asking({1: Decision(cadence=BatchCadence(0.5, 7))})
    loop = loop_of(
        plan_of(MEDIANS), [memory(*HOT[:100], end=True)], tmp_path, batch_rows=10, policy=policy,
        clock=Watch(),
    )  # fmt: skip
    loop.run()
    cadences = [seen.cadence for seen in policy.seen]
    assert cadences[:3] == [BatchCadence(0.0, 10), BatchCadence(0.0, 10), BatchCadence(0.5, 7)]
    assert {seen.own_cadence for seen in policy.seen} == {BatchCadence(0.0, 10)}
    assert all(seen.state_bytes > 0 and seen.split is None for seen in policy.seen)
    assert all((seen.memory_bytes or 0) > 2**20 for seen in policy.seen)


def test_another_policy_begins_with_what_the_user_asked_for(tmp_path: Path) -> None:
    policy = Asking({0: Decision(cadence=BatchCadence(0.5, 7))})
    loop = loop_of(
        plan_of(MEDIANS), [memory(*HOT[:100], end=True)], tmp_path, batch_rows=10, policy=policy,
        clock=Watch(),
    )  # fmt: skip
    loop.step()
    assert loop.pipeline.cadence.now == BatchCadence(0.5, 7)
    loop.manager.use(Fixed())
    assert loop.pipeline.cadence.now == BatchCadence(0.0, 10)
    loop.close()


@pytest.mark.parametrize("instances", [3, 4])
def test_keys_are_split_once_that_is_allowed_and_the_rows_are_the_same(
    tmp_path: Path, instances: int
) -> None:
    found = {}
    for name, policy in {
        "hash": Asking({}),
        "standby": Asking({4: Decision(splits=True), 9: Decision(splits=False)}),
    }.items():
        plan = lower(node_of(MEDIANS), choices=Choices(partitioner=partitioner_of(name)))
        sink = MemorySink()
        loop = loop_of(
            plan, [memory(*HOT, end=True)], tmp_path / name, sink, instances=instances,
            batch_rows=4_000, policy=policy, buckets=64,
        )  # fmt: skip
        loop.run()
        found[name] = rows_of(sink)
        changes = loop.summary.as_dict()["partitioner_changes"]
        splits = [seen.split for seen in policy.seen if seen.subquery == "aggregate"]
        if name == "hash":
            assert set(splits) == {None}
            assert not changes
            continue
        assert [split.allowed for split in splits if split is not None] == (
            [False] * 5 + [True] * 5 + [False] * (len(splits) - 10)
        )
        assert any(split.splits for split in splits if split is not None)
        assert changes
        assert changes[0]["before"] == "hash"
    assert found["standby"] == found["hash"]


def test_a_latency_target_puts_the_partitioner_on_standby() -> None:
    for clause, options, found in (
        ("WITH LATENCY 2 SECONDS", PlanOptions(), "standby"),
        ("WITH LATENCY 2 SECONDS", PlanOptions(partitioner="hash"), "hash"),
        ("WITH LATENCY 2 SECONDS", PlanOptions(partitioner="cam"), "cam"),
        ("WITH PARTITIONER hash WITH LATENCY 2 SECONDS", PlanOptions(), "hash"),
        ("", PlanOptions(), "hash"),
    ):
        stream = StreamDef("s", ("memory:s",), "ts", 0, None, SCHEMA)
        outputs = bind(read_script(f"{MEDIANS} {clause}"), {"s": stream})
        plan = plan_for(outputs, Place("none"), options)
        operator: Any = plan.subqueries[0].operator
        assert operator.partitioner.name == found, clause


def test_the_cadence_of_batches_keeps_to_what_comes_out() -> None:
    """Larger batches are asked for, and rows multiply: what comes out goes before it."""
    limit = BatchLimit(1_000_000, by_output=True, first_rows=8_192)
    limit.allow(2_000_000)
    assert (limit.rows, limit.asked_rows) == (8_192, 2_000_000)
    asked = BatchLimit(100)
    asked.allow(400)
    assert asked.rows == 400


@pytest.mark.parametrize(
    "cadence", [BatchCadence(-1.0), BatchCadence(0.0, 0), BatchCadence(float("inf")), 5]
)
def test_a_cadence_that_batches_cannot_have_is_refused(cadence: Any) -> None:
    with pytest.raises(OptionError, match="decide: "):
        _checked(Decision(cadence=cadence))


@pytest.mark.parametrize(
    ("clauses", "found"),
    [
        (("", "WITH LATENCY 2 SECONDS", ""), "hash"),
        (("WITH LATENCY 2 SECONDS", "", "WITH LATENCY 1 SECOND"), "standby"),
    ],
)
def test_a_checkpoint_goes_on_as_it_began_with_a_latency_target_or_without(
    tmp_path: Path, clauses: tuple[str, ...], found: str
) -> None:
    """A target may come and go while a query is stopped: its state decides who places."""
    stream, sink, seen = StreamDef("s", ("memory:s",), "ts", 0, None, SCHEMA), MemorySink(), []
    for clause in clauses:
        outputs = bind(read_script(f"{MEDIANS} {clause}"), {"s": stream})
        loop = loop_of(
            plan_for(outputs, Place("none")), [memory(*HOT[:9_000], end=True)], tmp_path, sink,
            batch_rows=2_000, instances=None,
        )  # fmt: skip
        operator: Any = loop.plan.subqueries[0].operator
        seen.append(operator.partitioner.name)
        loop.step()
        loop.close()
    assert seen == [found] * 3


def test_a_partitioner_that_is_asked_for_is_not_taken_from_the_checkpoint(tmp_path: Path) -> None:
    stream, sink = StreamDef("s", ("memory:s",), "ts", 0, None, SCHEMA), MemorySink()
    asked = ("WITH LATENCY 2 SECONDS", PlanOptions()), ("", PlanOptions(partitioner="hash"))
    begun, other = (
        plan_for(bind(read_script(f"{MEDIANS} {clause}"), {"s": stream}), Place("none"), options)
        for clause, options in asked
    )
    source = memory(*HOT[:9_000], end=True)
    loop = loop_of(begun, [source], tmp_path, sink, batch_rows=2_000, instances=None)
    loop.step()
    loop.close()
    with pytest.raises(CheckpointError, match="- partitioner standby"):
        loop_of(other, [source], tmp_path, sink, batch_rows=2_000, instances=None)


@pytest.mark.parametrize(("function", "by_tuple"), [("MEDIAN(v)", 1.0), ("AVG(v)", 0.0)])
def test_whether_the_work_of_instances_follows_the_tuples(function: str, by_tuple: float) -> None:
    """Map tasks fold a mean into a row for each group; instances keep each value of a median."""
    query = f"SELECT k, {function} AS m FROM s [RANGE 1 SECOND] GROUP BY k"
    stream = StreamDef("s", ("memory:s",), "ts", 0, None, SCHEMA)
    plan = plan_for(bind(read_script(query), {"s": stream}), Place("none"))
    assert plan.subqueries[0].operator.operation.by_tuple == by_tuple
