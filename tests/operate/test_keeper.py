"""What is needed of state that dies in its order."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tidegate.operate.keeper import OrderHorizon
from tidegate.state.segment.segment import Segment, write_segment
from tidegate.state.store import Store

HORIZON = OrderHorizon("ts", 7)


@pytest.mark.parametrize(
    ("times", "live", "passed", "whole"),
    [
        ([4, 6], [False, False], True, False),
        ([6, 7], [False, True], False, False),
        ([7, 8], [True, True], False, True),
    ],
)
def test_rows_are_needed_from_the_horizon_on(
    tmp_path: Path, times: list[int], live: list[bool], passed: bool, whole: bool
) -> None:
    rows = pa.table({"bucket": pa.array([0, 0], pa.int32()), "ts": times})
    segment = stored(tmp_path, rows)
    assert HORIZON.live(rows, segment).tolist() == live
    assert (HORIZON.passed(segment), HORIZON.whole(segment)) == (passed, whole)


def stored(folder: Path, rows: pa.Table) -> Segment:
    store = Store.open(folder)
    store.create({})
    return write_segment(store, "a", rows, order="ts", tag=0)
