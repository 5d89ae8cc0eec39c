"""The outcomes of the instances become one batch, whatever the order they come in."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tests.driver.scene import COUNTS, PASSED, plan_of, table
from tidegate.batch import to_bytes
from tidegate.collect.order import TotalOrder
from tidegate.driver.outlet import collected, side_outputs
from tidegate.execute.job import LATE, REJECTED, Outcome, Parcel, Piece
from tidegate.plan.physical import Plan
from tidegate.schema import TIME
from tidegate.sink.batch_output import BatchOutput
from tidegate.sink.receipt import Receipt

RECEIPTS = (Receipt("part-00000", 4), Receipt("part-00001", 3), Receipt("part-00002", 5))


def windows(*rows: tuple[int, str | None, int]) -> pa.Table:
    """Rows as an instance gives them: in order of window and key, with the key hidden beside."""
    ends = pa.array([r[0] for r in rows], pa.int64()).cast(TIME)
    keys = pa.array([r[1] for r in rows], pa.string())
    values = pa.array([r[2] for r in rows], pa.int64())
    return pa.table(
        {
            "window_start": ends,
            "window_end": ends,
            "k": keys,
            "v": values,
            "n": values,
            "~k000": keys,
        }
    )


def gathered(plan: Plan, tables: Sequence[pa.Table]) -> BatchOutput:
    """What the only output gets when the instances give it these tables."""
    (subquery,) = plan.subqueries
    (port,) = subquery.ports
    outcomes = [Outcome(i, (Piece.of(port, t),)) for i, t in enumerate(tables)]
    return collected(subquery.operator.order, 0, port, outcomes)


def test_windows_are_merged_by_end_and_key_and_hidden_columns_go() -> None:
    plan = plan_of(COUNTS)
    one = windows((10, "b", 1), (20, None, 2), (20, "b", 3))
    two = windows((10, "a", 4), (20, "a", 5))
    output = gathered(plan, [one, two])
    assert output.rows.schema == plan.subqueries[0].ports[0].schema
    assert output.rows.column("v").to_pylist() == [4, 1, 2, 5, 3]
    assert (output.late, output.rejected) == ({}, None)


def test_a_limit_counts_over_all_instances() -> None:
    plan = plan_of(
        "SELECT k, SUM(v) AS v, COUNT(*) AS n FROM s [RANGE 10 SECONDS] GROUP BY k LIMIT 2"
    )
    parts = [windows((10, "b", 1), (10, "d", 2)), windows((10, "a", 3), (10, "c", 4))]
    output = gathered(plan, parts)
    assert output.rows.column("k").to_pylist() == ["a", "b"]


def test_ranges_of_time_follow_each_other() -> None:
    plan = plan_of(PASSED)
    parts = [table((1, "a", 1)), table(), table((2, "b", 2))]
    output = gathered(plan, parts)
    assert output.rows.column("v").to_pylist() == [1, 2]


def test_side_outputs_are_in_the_order_of_their_splits() -> None:
    def parcel(split: int, kind: int, value: int) -> Parcel:
        return Parcel(0, split, kind, to_bytes(pa.table({"v": [value]})), "s" if value else "a")

    outcomes = [
        Outcome(0, (), {}, (parcel(2, LATE, 2), parcel(4, REJECTED, 4))),
        Outcome(1, (), {}, (parcel(1, LATE, 1), parcel(3, REJECTED, 3), parcel(5, LATE, 0))),
    ]
    late, rejected = side_outputs([outcomes])
    assert list(late) == ["a", "s"]
    assert late["s"].column("v").to_pylist() == [1, 2]
    assert rejected is not None
    assert rejected.column("v").to_pylist() == [3, 4]


def test_side_outputs_of_one_subquery_follow_those_of_an_earlier_one() -> None:
    def outcome(split: int, value: int) -> Outcome:
        parcel = Parcel(0, split, LATE, to_bytes(pa.table({"v": [value]})), "s")
        return Outcome(0, (), {}, (parcel,))

    late, rejected = side_outputs([[outcome(9, 1)], [outcome(0, 2)]])
    assert late["s"].column("v").to_pylist() == [1, 2]
    assert rejected is None


def test_rows_that_tasks_have_written_are_counted_and_not_merged() -> None:
    plan = plan_of(PASSED)
    (port,) = plan.subqueries[0].ports
    parts = [table((1, "a", 1)), table()]
    outcomes = [
        Outcome(i, (Piece.of(port, t),), receipts=given)
        for i, (t, given) in enumerate(zip(parts, (RECEIPTS[:2], RECEIPTS[2:])))
    ]
    output = collected(TotalOrder(), 0, port, outcomes)
    assert (output.receipts, output.count) == (RECEIPTS, 12)
    assert output.rows.column("v").to_pylist() == [1]


def test_each_port_gets_its_own_pieces() -> None:
    (port,) = plan_of(PASSED).subqueries[0].ports
    outcome = Outcome(0, tuple(Piece.of(port, table((v, "a", v))) for v in (1, 2)))
    found = [
        collected(TotalOrder(), i, port, [outcome]).rows.column("v").to_pylist() for i in (0, 1)
    ]
    assert found == [[1], [2]]
