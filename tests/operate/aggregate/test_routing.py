"""Which instance gets what, where a partitioner looks at what went before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import tidegate as tg
from tests.driver.scene import Row, compacted, loop_of, memory, rows_of
from tests.operate.aggregate.test_split_keys import node_of
from tidegate.driver.loop import Loop
from tidegate.errors import QueryError
from tidegate.execute.job import Job, Outcome
from tidegate.execute.local import LocalRunner
from tidegate.operate.aggregate.ledger import LEDGER
from tidegate.operate.instance_cache import forget
from tidegate.plan.explain import explain
from tidegate.plan.lowering.lower import lower
from tidegate.plan.lowering.rule import Choices
from tidegate.query.output import Output
from tidegate.route.registry import partitioner_of
from tidegate.sink.memory import MemorySink

COUNTED = "SELECT k, COUNT(*) AS n FROM s [RANGE 100 SECONDS] GROUP BY k"
SLIDING = "SELECT k, COUNT(*) AS n FROM s [RANGE 20 SECONDS SLIDE 5 SECONDS] GROUP BY k"
ROWS: list[Row] = [(t / 10, f"k{t * t % 37}", t) for t in range(600)]


class Watching(LocalRunner):
    """Notes how much each instance of an aggregate was dealt, and the parts that were merged."""

    def __init__(self, key: str = "aggregate") -> None:
        self.key = key
        self.dealt: Counter[int] = Counter()
        self.parts: list[tuple[Any, str]] = []

    def run(self, job: Job) -> list[Outcome]:
        outcomes = super().run(job)
        if job.subquery.key == self.key:
            for outcome in outcomes:
                self.dealt[outcome.instance] += outcome.tuples
                rows = outcome.pieces[0].load()
                key = "k0" if "k0" in rows.column_names else "k"
                ends = rows.column("window_end").to_pylist()
                self.parts += zip(ends, rows.column(key).to_pylist(), strict=True)
        return outcomes

    @property
    def split(self) -> list[tuple[Any, str]]:
        """The windows and keys that came in several parts."""
        return [place for place, parts in Counter(self.parts).items() if parts > 1]


def watched(
    sql: str,
    name: str,
    folder: Path,
    rows: Sequence[Row] = ROWS,
    partial: str | None = "instance",
    **options: Any,
) -> tuple[Loop, Watching, MemorySink]:
    choices = Choices(partitioner=partitioner_of(name), partial=partial)
    sink, executor = MemorySink(), Watching()
    plan = lower(node_of(sql), choices=choices)
    loop = loop_of(plan, [memory(*rows, end=True)], folder, sink, **options)
    loop.runner = executor
    return loop, executor, sink


def test_tuples_of_one_heavy_key_are_shared(tmp_path: Path) -> None:
    """Where `hash` has one instance do all of it."""
    rows: list[Row] = [(t / 10, "heavy", t) for t in range(100)]
    shares = {}
    for name in ("hash", "shuffle", "pk", "cam"):
        loop, executor, sink = watched(COUNTED, name, tmp_path / name, rows, batch_rows=30)
        loop.run()
        assert [line[-1] for line in rows_of(sink)] == [100]
        shares[name] = sorted(executor.dealt.values())
    assert shares == {"hash": [0, 100], "shuffle": [50, 50], "pk": [50, 50], "cam": [0, 100]}


@pytest.mark.parametrize("sql", [COUNTED, SLIDING])
@pytest.mark.parametrize("batch_rows", [17, 600])
def test_a_key_stays_where_it_is_from_batch_to_batch(
    sql: str, batch_rows: int, tmp_path: Path
) -> None:
    """Also in windows that slide over the time at which a partitioner begins anew."""
    loop, executor, _ = watched(sql, "cam", tmp_path, instances=4, batch_rows=batch_rows)
    loop.run()
    assert len(executor.parts) >= 19
    assert executor.split == []
    assert max(executor.dealt.values()) < 1.2 * 600 / 4


def test_a_key_stays_where_it_is_in_the_rows_of_another_aggregate(tmp_path: Path) -> None:
    """Each batch of which has another job to come from."""
    inner = "SELECT k, COUNT(*) AS n FROM s [RANGE 2 SECONDS] GROUP BY k"
    sql = f"SELECT k, MAX(n) AS n FROM ({inner}) [RANGE 100 SECONDS] GROUP BY k"
    loop, _, _ = watched(sql, "cam", tmp_path, instances=3, batch_rows=40)
    loop.runner = executor = Watching("aggregate2")
    loop.run()
    assert len(executor.parts) == 19
    assert sum(executor.dealt.values()) > 300


def test_many_small_batches_leave_few_segments(tmp_path: Path) -> None:
    """What they have noted is compacted, and says the same."""
    rows: list[Row] = [(t / 100, f"k{t * t % 89}", t) for t in range(400)]
    loop, executor, _ = watched(COUNTED, "cam", tmp_path / "a", rows, instances=3, batch_rows=8)
    most = 0
    while loop.step() is not None:
        compacted(loop)
        most = max(most, len(loop.manifest.operators[f"aggregate/{LEDGER}"]))
        forget()  # as where every batch has another process
    assert most < 25
    whole, at_once, _ = watched(COUNTED, "cam", tmp_path / "b", rows, instances=3, batch_rows=400)
    whole.run()
    assert at_once.dealt == executor.dealt
    assert sorted(at_once.parts) == sorted(executor.parts)


def test_decisions_about_tuples_do_not_depend_on_the_cut_or_a_restart(tmp_path: Path) -> None:
    found = []
    for place, batch_rows in enumerate((600, 41, 7)):
        folder = tmp_path / str(place)
        loop, executor, _ = watched(COUNTED, "lm", folder, instances=3, batch_rows=batch_rows)
        loop.step()
        dealt, parts = executor.dealt, executor.parts
        loop.close()
        loop, executor, _ = watched(COUNTED, "lm", folder, instances=3, batch_rows=batch_rows)
        executor.dealt, executor.parts = dealt, parts
        loop.run()
        found.append((executor.dealt, sorted(executor.parts)))
    assert found[1:] == found[:1] * 2
    assert sum(found[0][0].values()) == 600


def test_what_is_remembered_goes_with_its_window(tmp_path: Path) -> None:
    """Not with the tuples that were ever read."""
    rows: list[Row] = [(t / 2, f"k{t % 40}", t) for t in range(400)]
    sql = "SELECT k, COUNT(*) AS n FROM s [RANGE 10 SECONDS] GROUP BY k"
    loop, _, _ = watched(sql, "cam", tmp_path, rows, batch_rows=20)
    sizes = []
    while loop.step() is not None:
        segments = loop.manifest.operators[f"aggregate/{LEDGER}"]
        sizes.append(sum(s.rows for s in segments))
    assert len(sizes) > 15
    assert max(sizes) < 100
    assert sizes[-1] == 0


def test_the_summary_says_what_splitting_has_cost(tmp_path: Path) -> None:
    told = {}
    for name in ("hash", "cam", "shuffle"):
        loop, executor, _ = watched(COUNTED, name, tmp_path / name, instances=3, batch_rows=100)
        summary = loop.run()
        said = summary.as_dict()
        told[name] = said["groups_merged"], said["parts_merged"], said["groups_split"]
        assert said["parts_merged"] in (0, len(executor.parts))
        assert ("merged 19 groups from" in summary.text()) == (name != "hash")
    assert told["hash"] == (0, 0, 0)
    assert told["cam"] == (19, 19, 0)
    groups, parts, split = told["shuffle"]
    assert (groups, split) == (19, 19)
    assert parts > 40
    assert "merged 19 groups from 57 parts; 19 were split" in summary.text()


def test_partials_are_weighted_by_their_tuples(tmp_path: Path) -> None:
    """One key has half of the tuples, and counts as much as all others."""
    rows: list[Row] = [(t / 10, "heavy" if t % 2 else f"k{t}", t) for t in range(400)]
    loop, executor, _ = watched(COUNTED, "shuffle", tmp_path, rows, "map", batch_rows=1000)
    loop.run()
    assert sum(executor.dealt.values()) == 201
    assert min(executor.dealt.values()) < 10


def test_partials_are_placed_in_the_order_of_their_first_tuples(tmp_path: Path) -> None:
    """And not of their keys: the first takes three tuples to one instance, the others follow."""
    rows: list[Row] = [(t / 10, key, t) for t, key in enumerate("zzzab")]
    loop, executor, _ = watched(COUNTED, "shuffle", tmp_path, rows, "map", batch_rows=10)
    loop.run()
    assert executor.dealt == {0: 1, 1: 2}


def test_after_a_switch_tuples_go_to_the_instances_there_are(tmp_path: Path) -> None:
    rows: list[Row] = [(t / 10, "heavy", t) for t in range(100)]
    switched = {"instances": 1, "batch_rows": 20, "switches": {2: 3}}
    loop, executor, _ = watched(COUNTED, "shuffle", tmp_path, rows, **switched)
    loop.run()
    assert executor.dealt == {0: 60, 1: 20, 2: 20}


class Middle(tg.Aggregator):
    state: ClassVar = {"n": pa.int64()}
    result: ClassVar = pa.int64()


class Mergeable(Middle):
    def merge(self, state: Any, groups: Any, other: Any) -> Any:
        return state


class Counting(tg.Process):
    output: ClassVar = {"n": "bigint"}

    def on_tuple(self, tuple: Any, keys: Any) -> list[dict[str, int]]:
        return [{"n": 1}]


def plain_stream() -> tg.Stream:
    return tg.Session(master="none").stream(memory(*ROWS, end=True), time="ts", name="s")


def stream_of(name: str | None, call: Any, **window: Any) -> tg.Stream:
    windowed = plain_stream().window(**(window or {"range": "1 minute"})).group_by("k")
    return (windowed if name is None else windowed.partition(name)).agg(n=call)


@pytest.mark.parametrize(
    ("name", "call", "unit"),
    [
        ("cam", tg.count(), "partials, weighted by their tuples; a key may be at several"),
        ("pk?d=3", tg.median("v"), "tuples; a key may be at several instances"),
        ("pk", tg.count_distinct("v"), "tuples; a key may be at several instances"),
        ("shuffle", tg.aggregate(Mergeable(), "v"), "tuples; a key may be at several instances"),
    ],
)
def test_explain_says_what_is_routed(name: str, call: Any, unit: str) -> None:
    text = stream_of(name, call).explain()
    assert f"routed: {unit}" in text
    assert f"shuffle by {name}" in text
    assert "merge: merge windows by k" in text
    assert ("read + panes: Arrow task" in text) == unit.startswith("partials")
    plain = stream_of(None, call).explain()
    assert "routed:" not in plain
    assert "merge windows" not in plain
    assert "routed: tuples, by their key" in stream_of(None, call).explain(partial="instance")


def test_an_aggregate_may_name_its_own() -> None:
    """In a query with several, and whatever the run asks for."""
    sql = (
        "SELECT k, MAX(n) AS n FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 2 SECONDS] GROUP BY k "
        "HAVING COUNT(*) > 1 WITH PARTITIONER 'PK?d=3') [RANGE 8 SECONDS] GROUP BY k "
        "ORDER BY n LIMIT 3 WITH PARTITIONER cam"
    )
    node = node_of(sql)
    plan = lower(node, choices=Choices(partitioner=partitioner_of("shuffle")))
    assert [s.key for s in plan.subqueries] == ["aggregate", "merge", "aggregate2", "merge2"]
    used = [s.operator.partitioner.text for s in plan.subqueries]
    assert used == ["pk?d=3", "hash", "cam", "hash"]
    assert "count(*), partitioner pk?d=3" in explain([Output(None, node)], plan)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: stream_of("pk", tg.aggregate(Middle(), "v")).explain(),
            "aggregate Middle: needs a method merge where pk splits keys; got none. Write one",
        ),
        (
            lambda: stream_of("cam", tg.count(), rows=5).explain(),
            r"partitioner cam: may split the tuples of a key only .*; got \[ROWS 5\]. Use hash",
        ),
        (lambda: stream_of("lm?p=2", tg.count()), r"partition lm\?p: must be from 0 .* got 2"),
        (
            lambda: stream_of("auto", tg.aggregate(Middle(), "v")).explain(),
            "aggregate Middle: needs a method merge where auto splits keys; got none. Write one",
        ),
        (
            lambda: plain_stream().process(Counting, keys="k").explain(partitioner="cam"),
            "--partitioner: is for aggregates; got cam for a query without one. Leave it out: a "
            "process has all tuples of a key at one instance. A mergeable process over",
        ),
        (lambda: stream_of("auto?d=0", tg.count()), r"partition auto\?d: must be at least 1 .*0"),
    ],
)
def test_what_cannot_be_is_told_before_it_runs(make: Any, message: str) -> None:
    with pytest.raises((QueryError, tg.OptionError, tg.UnavailableError), match=message):
        make()
