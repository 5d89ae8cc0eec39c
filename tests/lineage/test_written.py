"""What events say that a run has written: rows and bytes of results, and of nothing beside them."""

from __future__ import annotations

from tidegate.driver.lineage.event import Written

ROWS = [{"rows": 3, "bytes": 30}, {"rows": 2, "bytes": 20}]
SIDES = [{"rows": 7, "bytes": 70}]


def test_side_outputs_come_after_the_rows_and_are_not_counted() -> None:
    written = Written()
    written.add(5, [*ROWS, *SIDES])
    written.add(0, SIDES)
    assert (written.rows, written.bytes) == (5, 50)


def test_bytes_are_left_out_where_a_sink_cannot_tell() -> None:
    written = Written()
    written.add(3, [{"rows": 3, "bytes": None}])
    assert (written.rows, written.bytes) == (3, None)
