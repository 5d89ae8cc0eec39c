"""The outcomes of the instances become one batch, whatever the order they come in."""

from __future__ import annotations

import pyarrow as pa

from tests.runtime.scene import COUNTS, PASSED, plan_of, table
from tidegate.batch import to_bytes
from tidegate.runtime.gather import gather
from tidegate.runtime.job import LATE, REJECTED, Outcome, Parcel
from tidegate.schema import TIME


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


def test_windows_are_merged_by_end_and_key_and_hidden_columns_go() -> None:
    plan = plan_of(COUNTS)
    one = windows((10, "b", 1), (20, None, 2), (20, "b", 3))
    two = windows((10, "a", 4), (20, "a", 5))
    output = gather(plan, [Outcome(0, one), Outcome(1, two)])
    assert output.rows.schema == plan.schema
    assert output.rows.column("v").to_pylist() == [4, 1, 2, 5, 3]
    assert (output.late, output.rejected) == ({}, None)


def test_a_limit_counts_over_all_instances() -> None:
    plan = plan_of(
        "SELECT k, SUM(v) AS v, COUNT(*) AS n FROM s [RANGE 10 SECONDS] GROUP BY k LIMIT 2"
    )
    parts = [windows((10, "b", 1), (10, "d", 2)), windows((10, "a", 3), (10, "c", 4))]
    output = gather(plan, [Outcome(i, t) for i, t in enumerate(parts)])
    assert output.rows.column("k").to_pylist() == ["a", "b"]


def test_ranges_of_time_follow_each_other() -> None:
    plan = plan_of(PASSED)
    parts = [table((1, "a", 1)), table(), table((2, "b", 2))]
    output = gather(plan, [Outcome(i, t) for i, t in enumerate(parts)])
    assert output.rows.column("v").to_pylist() == [1, 2]


def test_side_outputs_are_in_the_order_of_their_splits() -> None:
    def parcel(split: int, kind: int, value: int) -> Parcel:
        return Parcel(0, split, kind, to_bytes(pa.table({"v": [value]})), "s" if value else "a")

    outcomes = [
        Outcome(0, table(), {}, (parcel(2, LATE, 2), parcel(4, REJECTED, 4))),
        Outcome(1, table(), {}, (parcel(1, LATE, 1), parcel(3, REJECTED, 3), parcel(5, LATE, 0))),
    ]
    output = gather(plan_of(PASSED), outcomes)
    assert list(output.late) == ["a", "s"]
    assert output.late["s"].column("v").to_pylist() == [1, 2]
    assert output.rejected is not None
    assert output.rejected.column("v").to_pylist() == [3, 4]
