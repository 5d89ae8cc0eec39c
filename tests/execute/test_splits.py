"""Map tasks and time cuts follow from the gate's cut and what earlier subqueries gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from tests.driver.scene import PASSED, plan_of, table
from tidegate.batch import MAX_US, MIN_US
from tidegate.collect.order import TotalOrder
from tidegate.execute import delivery as edge
from tidegate.execute import splits
from tidegate.execute.delivery import Delivery
from tidegate.execute.job import Job, Piece
from tidegate.execute.runner import Draft
from tidegate.execute.splits import splits_of, time_span
from tidegate.gate.cut import Cut, SourceCut
from tidegate.gate.intake import Intake
from tidegate.gate.track import Slice
from tidegate.operate.stateless import Stateless
from tidegate.plan.physical import Edge, Subquery
from tidegate.route.mapping import even
from tidegate.schema import TIME
from tidegate.source.memory import MemorySource
from tidegate.source.registry import open_uri

TOLD = frozenset({0})
"""Of the inputs, the one that reports late and rejected tuples."""


def reading(*origins: int | Edge) -> Subquery:
    """A subquery with these inputs."""
    (plain,) = plan_of(PASSED).subqueries
    prefixes = tuple(replace(plain.prefixes[0], origin=o) for o in origins)
    return replace(plain, prefixes=prefixes, streams=plain.streams * len(origins))


ONE = reading(0)


def delivery(*tables: pa.Table, source: str = "before") -> Delivery:
    """What the instances of an earlier subquery put on an edge."""
    (port,) = ONE.ports
    return Delivery(source, TotalOrder(), port, tuple(Piece.of(port, t) for t in tables))


def cut_of(
    *sources: MemorySource, hold: bool = False, limit: int = 100, streams: Sequence[int] = ()
) -> Cut:
    intake = Intake(hold)
    for place, source in enumerate(sources):
        intake.add(streams[place] if streams else 0, source, 0)
    cut = intake.next_cut(limit, 0.0)
    assert cut is not None
    return cut


def completed(
    subquery: Subquery,
    cut: Cut,
    given: Mapping[Edge, Delivery],
    instances: int = 1,
    telling: frozenset[int] = TOLD,
) -> Job:
    """The job over a cut, with what other subqueries gave."""
    store: Any = None
    reads = splits_of(subquery, cut, telling, instances)
    mapping = even(8, instances)
    job = Job(0, subquery, reads, mapping, cut.previous_us, cut.frontier_us, {}, store)
    return Draft(job, time_span(subquery, cut)).completed(given)


def cuts(job: Job) -> tuple[int, ...]:
    """The event times that divide the tuples of a job without an operator."""
    assert isinstance(job.operator, Stateless)
    return job.operator.cuts_us


def memory(*times: float, id: str = "m") -> MemorySource:
    return MemorySource(table(*[(t, "k", int(t)) for t in times]), time="ts", id=id)


def late(split: splits.Split) -> list[bool]:
    count = split.stop - split.start
    if split.late is None:
        return [False] * count
    bits = np.unpackbits(np.frombuffer(split.late, np.uint8), count=count)
    return [bool(b) for b in bits]


def test_many_instances_get_as_many_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the map side of a batch of one file is not the work of one task."""
    monkeypatch.setattr(splits, "LEAST_SPLIT_ROWS", 3)
    cut = cut_of(memory(*range(24)), limit=24)
    made = {n: [s.stop - s.start for s in splits_of(ONE, cut, TOLD, n)] for n in (1, 2, 4, 16)}
    assert made == {1: [24], 2: [12] * 2, 4: [6] * 4, 16: [3] * 8}


def test_a_source_is_cut_into_splits_of_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splits, "SPLIT_ROWS", 3)
    cut = cut_of(memory(1, 2, 3, 4, 1, 5, 6, id="a"), memory(2, 3, id="b"))
    made = splits_of(ONE, cut, TOLD)
    ranges = [(s.index, s.source, s.order, s.start, s.stop) for s in made]
    assert ranges == [(0, "a", 0, 0, 3), (1, "a", 0, 3, 6), (2, "a", 0, 6, 7), (3, "b", 1, 0, 2)]
    assert made[0].late is None
    assert late(made[1]) == [False, True, False]
    read = [v for s in made[:3] for v in s.reader.read(["v"]).table.column("v").to_pylist()]
    assert read == [1, 2, 3, 4, 1, 5, 6]


@pytest.mark.parametrize(
    ("stop", "breaks", "bounds"),
    [
        (10, None, [0, 4, 8, 10]),
        (10, [], [0, 4, 10]),  # one row group: the task that decodes it reads up to twice as many
        (8, [], [0, 8]),
        (12, [6], [0, 6, 12]),
        (12, [2, 4, 6, 8, 10], [0, 4, 8, 12]),
        (12, [3, 6, 9], [0, 3, 6, 9, 12]),
        (30, [2, 28], [0, 2, 6, 10, 14, 18, 22, 28, 30]),
    ],
)
def test_splits_begin_where_decoding_may_begin(
    stop: int, breaks: list[int] | None, bounds: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(splits, "SPLIT_ROWS", 4)
    assert splits._bounds(0, stop, breaks, 4) == bounds


def test_row_groups_and_blocks_are_read_by_one_task(tmp_path: Path) -> None:
    rows = pa.table({"ts": pa.array(range(10), TIME), "v": range(10)})
    pq.write_table(rows, tmp_path / "a.parquet", row_group_size=4)
    csv.write_csv(rows, tmp_path / "a.csv")
    for name, breaks in (("a.parquet", [4, 8]), ("a.csv", [])):
        source = open_uri(str(tmp_path / name), "s", "ts", follow=False).discover()[0]
        assert source.extend(10) == 10
        assert source.breaks(0, 10) == breaks


def test_tuples_that_waited_are_in_the_split_but_are_not_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(splits, "SPLIT_ROWS", 2)
    fast, slow = memory(10, 11, 12, id="fast"), memory(1, id="slow")
    intake = Intake(hold=True)
    for source in (fast, slow):
        intake.add(0, source, 0)
    intake.next_cut(100, 0.0)
    fast.append(table((13, "k", 13)))
    cut = intake.next_cut(100, 0.0)
    assert cut is not None
    made = [s for s in splits_of(ONE, cut, TOLD) if s.source == "fast"]
    assert [(s.start, s.new_from, s.stop) for s in made] == [(0, 3, 2), (2, 3, 4)]


def test_an_empty_cut_has_no_splits() -> None:
    assert splits_of(ONE, Cut((), 0, MIN_US, MAX_US, True), TOLD) == ()


def test_a_stream_that_two_inputs_read_is_told_of_by_one() -> None:
    cut = cut_of(memory(1, 2, 3, id="a"))
    made = splits_of(reading(0, 0), cut, TOLD)
    assert [(s.index, s.input, s.start, s.new_from, s.stop) for s in made] == [
        (0, 0, 0, 0, 3),
        (1, 1, 0, 3, 3),
    ]


def test_an_input_gets_its_stream_only() -> None:
    cut = cut_of(memory(1, 2, id="a"), memory(3, id="b"), streams=(0, 1))
    assert [s.source for s in splits_of(reading(1), cut, TOLD)] == ["b"]
    both = splits_of(reading(1, 0), cut, TOLD)
    assert [(s.input, s.source) for s in both] == [(0, "b"), (1, "a")]


def test_an_edge_is_read_in_spans_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge, "SPAN_ROWS", 2)
    given = {Edge(0, 1): delivery(table((1, "k", 1), (2, "k", 2)), table((3, "k", 3), (4, "k", 4)))}
    cut = cut_of(memory(7, id="a"))
    made = completed(reading(Edge(0, 1), 0), cut, given, telling=frozenset({1})).splits
    assert [(s.index, s.input, s.source, s.order) for s in made] == [
        (0, 0, "before", 0),
        (1, 0, "before", 0),
        (2, 1, "a", 0),
    ]
    assert [(s.start, s.new_from, s.stop) for s in made] == [(0, 2, 2), (2, 4, 4), (0, 0, 1)]
    assert made[0].late is None
    read = [s.reader.read(["v"]).table.column("v").to_pylist() for s in made]
    assert read == [[1, 2], [3, 4], [7]]


def test_an_edge_without_rows_has_no_splits() -> None:
    cut = Cut((), 0, MIN_US, MAX_US, True)
    assert completed(reading(Edge(0, 0)), cut, {Edge(0, 0): delivery(table())}).splits == ()


@dataclass
class Anything:
    order: int = 0
    source: MemorySource = field(default_factory=lambda: memory(1))


def cut_between(low: int, high: int, previous: int, reached: int) -> Cut:
    track: Any = Anything()
    part = SourceCut(0, track, Slice(0, 0, 1, None, 0, low, high))
    return Cut((part,), 1, previous, reached, False)


@pytest.mark.parametrize("instances", [1, 2, 3, 7])
def test_time_cuts_divide_the_ready_range_evenly(instances: int) -> None:
    found = cuts(completed(ONE, cut_between(0, 1000, MIN_US, MAX_US), {}, instances=instances))
    assert len(found) == instances - 1
    widths = np.diff([0, *found, 1000])
    assert widths.max() - widths.min() <= 1


def test_time_cuts_look_at_what_is_ready_only() -> None:
    assert cuts(completed(ONE, cut_between(0, 1000, 100, 300), {}, instances=2)) == (200,)
    whole = cut_between(MIN_US + 1, MAX_US - 1, MIN_US, MAX_US)
    assert cuts(completed(ONE, whole, {}, instances=2)) == (-1,)


def test_time_cuts_where_nothing_is_ready() -> None:
    assert cuts(completed(ONE, Cut((), 0, 5, 9, False), {}, instances=3)) == (MAX_US, MAX_US)
    assert cuts(completed(ONE, cut_between(7, 7, 5, 9), {}, instances=3)) == (7, 7)
    assert cuts(completed(ONE, cut_between(MAX_US, MIN_US, 5, 9), {}, instances=2)) == (MAX_US,)


def test_time_cuts_look_at_what_the_subquery_reads() -> None:
    cut = cut_between(0, 1_000_000, MIN_US, MAX_US)
    given = {
        Edge(0, 0): delivery(table((2, "k", 1)), table(), table((4, "k", 1))),
        Edge(0, 1): delivery(table((100, "k", 1))),
    }
    assert cuts(completed(reading(Edge(0, 0)), cut, given, instances=2)) == (3_000_000,)
    assert cuts(completed(reading(0, Edge(0, 0)), cut, given, instances=2)) == (2_000_000,)
    other = completed(reading(1), cut, given, instances=2)
    assert cuts(other) == (MAX_US,), "it reads another stream"
    nothing = {Edge(0, 0): delivery(table())}
    assert cuts(completed(reading(Edge(0, 0)), cut, nothing, instances=2)) == (MAX_US,)
