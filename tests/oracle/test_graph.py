"""The interpreter of whole queries against examples worked out by hand."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, ClassVar

import pyarrow as pa

from tests.oracle.graph import interpret
from tidegate import Process, col, count, first, last, left, right
from tidegate import sum as sum_
from tidegate.query.node.node import Input, StreamDef
from tidegate.query.stream import Stream
from tidegate.schema import TIME

SCHEMA = pa.schema([("ts", TIME), ("k", pa.int64()), ("v", pa.int64())])

Line = tuple[int | None, int | None, int | None]


def stream(name: str = "s", disorder_us: int = 0) -> Stream:
    definition = StreamDef(name, (), "ts", disorder_us, None, SCHEMA)
    return Stream(Input(definition), lambda node: None, lambda node: "")


def table(*lines: Line) -> pa.Table:
    times, *rest = ([line[i] for line in lines] for i in range(3))
    columns = [pa.array(times, pa.int64()).cast(TIME), *(pa.array(c, pa.int64()) for c in rest)]
    return pa.table(columns, schema=SCHEMA)


def rows(query: Stream, **sources: list[pa.Table]) -> list[tuple[Any, ...]]:
    """The only output of a query, its columns in order."""
    answer = interpret({"only": query.node}, sources)
    assert all(tuple(row) == query.columns for row in answer["only"])
    return [tuple(row.values()) for row in answer["only"]]


def test_tuples_of_one_time_come_by_input_then_source_then_number() -> None:
    a, b = stream("a"), stream("b")
    sources = {
        "a": [table((1, 1, 10), (1, 1, 11)), table((0, 1, 12), (1, 1, 13))],
        "b": [table((1, 2, 20))],
    }
    assert rows(b.union(a), **sources) == [
        (0, 1, 12),
        (1, 2, 20),
        (1, 1, 10),
        (1, 1, 11),
        (1, 1, 13),
    ]


def test_late_and_timeless_tuples_take_no_part() -> None:
    source = table((5, 1, 1), (3, 1, 2), (2, 1, 3), (None, 1, 4), (6, 1, 5))
    assert rows(stream(disorder_us=2), s=[source]) == [(3, 1, 2), (5, 1, 1), (6, 1, 5)]


def test_a_condition_that_is_null_does_not_hold() -> None:
    low, rest = stream().split(col("v") < 5)
    source = table((1, 1, 1), (2, 1, None), (3, 1, 9))
    assert rows(low, s=[source]) == [(1, 1, 1)]
    assert rows(rest, s=[source]) == [(2, 1, None), (3, 1, 9)]
    assert rows(stream().where(~(col("v") < 5)), s=[source]) == [(3, 1, 9)]


def test_windows_of_time_in_order_of_end_then_key() -> None:
    query = stream().window("4 us", slide="2 us").group_by("k").agg(n=count(), total=sum_("v"))
    source = table((1, 2, 1), (2, 2, 2), (2, None, None))
    assert rows(query, s=[source]) == [
        (-2, 2, 2, 1, 1),
        (0, 4, None, 1, None),
        (0, 4, 2, 2, 3),
        (2, 6, None, 1, None),
        (2, 6, 2, 1, 2),
    ]


def test_windows_of_tuples_of_each_group_in_order_of_what_completes_them() -> None:
    query = stream().window(rows=3, slide=2).group_by("k").agg(a=first("v"), total=sum_("v"))
    source = table(
        (1, 1, 1), (2, 2, 10), (2, 1, 2), (3, 2, 20), (3, 2, 30), (4, 1, 3), (5, 1, 4), (6, 1, 5)
    )
    assert rows(query, s=[source]) == [
        (2, 3, 2, 10, 60),
        (1, 4, 1, 1, 6),
        (4, 6, 1, 3, 12),
    ]


def test_a_window_takes_in_the_finer_ones_that_end_with_it() -> None:
    fine = stream().window("2 us").agg(n=count())
    coarse = fine.window("4 us").agg(windows=count(), n=sum_("n"), to=last("window_end"))
    source = table((0, 1, 1), (1, 1, 1), (3, 1, 1), (4, 1, 1))
    assert rows(fine, s=[source]) == [(0, 2, 2), (2, 4, 1), (4, 6, 1)]
    assert rows(coarse, s=[source]) == [(0, 4, 2, 3, 4), (4, 8, 1, 1, 6)]


def test_windows_of_tuples_over_windows_of_time() -> None:
    fine = stream().window("2 us").agg(n=count())
    source = table((0, 1, 1), (1, 1, 1), (3, 1, 1), (4, 1, 1))
    pairs = fine.window(rows=2, slide=1).agg(n=sum_("n"))
    assert rows(pairs, s=[source]) == [(1, 3, 3), (3, 5, 2)]


def test_a_window_stands_at_its_last_instant_in_a_union() -> None:
    fine = stream().window("2 us").group_by("k").agg(v=count())
    query = fine.union(stream(), stream().where(col("v") > 1))
    source = table((0, 7, 1), (1, 8, 2), (2, 9, 0))
    assert rows(query, s=[source]) == [
        (0, 7, 1),
        (1, 7, 1),
        (1, 8, 1),
        (1, 8, 2),
        (1, 8, 2),
        (2, 9, 0),
        (3, 9, 1),
    ]


def test_pairs_of_a_window_and_a_stream() -> None:
    fine = stream().window("2 us").agg(n=count())
    query = fine.join(stream(), within=("1 us", "0 us"), on=left.n > right.k)
    chosen = query.select(left.n, right.v, left.window_end)
    source = table((0, 1, 10), (1, 1, 11), (1, 2, 12), (2, 1, 13), (3, 9, 14))
    assert rows(chosen, s=[source]) == [
        (1, 3, 11, 2),
        (1, 3, 12, 2),
        (2, 3, 13, 2),
    ]


def test_the_last_tuples_of_a_stream_that_meets_itself() -> None:
    query = stream().join(stream(), rows=1, on=True).select(a=left.v, b=right.v)
    source = table((1, 1, 1), (1, 1, 2), (3, 1, 3))
    assert rows(query, s=[source]) == [(1, 2, 1), (1, 2, 2), (3, 3, 2), (3, 3, 3)]


def test_pairs_are_numbered_anew_for_what_is_above() -> None:
    pairs = stream("a").join(stream("b"), within="5 us", on=left.k == right.k)
    query = pairs.select(k=left.v, v=right.v).window(rows=2, slide=2).agg(a=first("k"), b=last("v"))
    sources = {"a": [table((1, 1, 1), (2, 1, 2), (9, 1, 3))], "b": [table((2, 1, 5), (9, 0, 6))]}
    assert rows(pairs.select(left.v, b=right.v), **sources) == [(2, 1, 5), (2, 2, 5)]
    assert rows(query, **sources) == [(2, 2, 1, 5)]


def test_the_first_rows_of_each_window_with_ties_in_order_of_the_key() -> None:
    sums = stream().window("4 us").group_by("k").agg(v=sum_("v"))
    source = table((0, 3, 5), (0, 1, 5), (1, 2, 9), (2, 4, None), (4, 6, 1), (5, 5, 1))
    assert rows(sums.top(2, by="v"), s=[source]) == [
        (0, 4, 2, 9),
        (0, 4, 1, 5),
        (4, 8, 5, 1),
        (4, 8, 6, 1),
    ]
    assert rows(sums.order_by("v").where(col("window_end") > col("window_start")), s=[source])[
        :4
    ] == [(0, 4, 4, None), (0, 4, 1, 5), (0, 4, 3, 5), (0, 4, 2, 9)]


def test_what_is_first_in_a_window_is_first_for_the_operator_above() -> None:
    sums = stream().window("4 us").group_by("k").agg(v=sum_("v"))
    query = sums.top(2, by="v").window("8 us").agg(a=first("k"), z=last("k"))
    source = table((0, 3, 5), (0, 1, 7), (1, 2, 9), (4, 6, 1))
    assert rows(query, s=[source]) == [(0, 8, 2, 6)]


def test_a_diamond_has_the_tuples_of_both_its_ways() -> None:
    small, rest = stream().split(col("v") < 5)
    query = rest.union(small).window(rows=4).agg(a=first("v"), n=count())
    source = table((1, 1, 1), (1, 1, 7), (2, 1, 8), (2, 1, 2))
    assert rows(rest.union(small), s=[source]) == [(1, 1, 7), (1, 1, 1), (2, 1, 8), (2, 1, 2)]
    assert rows(query, s=[source]) == [(1, 2, 7, 4)]


class Gaps(Process):
    """Tells every tuple of a key, and one instant later that it did."""

    output: ClassVar = {"v": "bigint"}

    def __init__(self) -> None:
        self.told = 0

    def on_tuple(self, tuple: Any, keys: list[Any]) -> list[dict[str, Any]]:
        self.told += 1
        self.wake(tuple.ts + timedelta(microseconds=1))
        return [{"v": tuple.v}]

    def on_frontier(self, ts: datetime) -> list[dict[str, Any]]:
        return [{"v": -self.told}]


def test_an_own_operator_stands_at_its_tuples_and_timers() -> None:
    own = stream().process(Gaps, keys="k")
    source = table((1, 1, 5), (1, 1, 6), (2, 1, 7), (4, 1, 8))
    assert rows(own, s=[source]) == [(1, 5), (1, 6), (2, 7), (2, -3), (3, -3), (4, 8), (5, -4)]
    query = own.window("3 us").agg(total=sum_("v"), z=last("v"))
    assert rows(query, s=[source]) == [(0, 3, 15, -3), (3, 6, 1, -4)]


def test_every_output_is_told_by_its_name() -> None:
    low, rest = stream().split(col("v") < 5)
    nodes = {"low": low.node, "rest": rest.window("10 us").agg(n=count()).node}
    assert interpret(nodes, {"s": [table((1, 1, 1), (2, 2, 8))]}) == {
        "low": [{"ts": 1, "k": 1, "v": 1}],
        "rest": [{"window_start": 0, "window_end": 10, "n": 1}],
    }
