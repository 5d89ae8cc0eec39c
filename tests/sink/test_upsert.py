"""Sinks that keep the newest row of each key: what comes to them, and what they hold."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.sink.output import SCHEMA, rows, stage, started
from tidegate.batch import BatchId
from tidegate.driver.outlet import StoreKeep
from tidegate.sink import memory
from tidegate.sink.batch_output import HeldParts
from tidegate.sink.memory import NewestSink
from tidegate.sink.protocol import Opening, Upserting
from tidegate.sink.receipt import Part
from tidegate.sink.upsert import DELETE, OP, UPSERT, ChangeParts, applied, newest

KEY = ("window_end", "k")


def changes(*values: tuple[str, int, str | None, float | None]) -> pa.Table:
    """Rows after what is to be done with each."""
    return rows(*(v[1:] for v in values)).append_column(
        OP, pa.array([v[0] for v in values], pa.string())
    )


def values(table: pa.Table) -> list[float | None]:
    found: list[float | None] = table.column("v").to_pylist()
    return found


def test_of_each_key_the_last_row_comes_in_the_order_of_the_rows() -> None:
    given_rows = rows(
        (1, "a", 1), (1, None, 2), (2, "a", 3), (1, "a", 4), (1, None, 5), (3, "b", 6)
    )
    assert values(newest(given_rows, KEY)) == [3, 4, 5, 6]
    assert newest(SCHEMA.empty_table(), KEY) == SCHEMA.empty_table()
    nan = float("nan")
    numbers = pa.table({"f": [nan, 1.0, nan], "n": [1, 2, 3]})
    assert newest(numbers, ["f"])["n"].to_pylist() == [2, 3]


def test_changes_replace_add_and_remove_rows() -> None:
    held = rows((1, "a", 1), (1, "b", 2), (1, "c", 3))
    found = applied(
        held,
        changes(
            (UPSERT, 1, "b", 4), (DELETE, 1, "a", None), (UPSERT, 2, "a", 5), (DELETE, 9, "z", None)
        ),
        KEY,
    )
    assert values(found) == [3, 4, 5]
    assert found.schema == SCHEMA


def test_a_part_of_changes_has_each_key_once_and_late_tuples_as_they_are() -> None:
    held = HeldParts()
    writer = ChangeParts(held, KEY)
    late = rows((1, "a", 1), (1, "a", 1))
    assert writer.write(Part(), rows((1, "a", 1), (1, "a", 2))).rows == 1
    writer.write(Part(side="late", stream="s"), late)
    output = held.output()
    assert output.rows == changes((UPSERT, 1, "a", 2))
    assert output.late == {"s": late}


def opened(store_at: Path) -> NewestSink:
    sink = memory(newest=True)
    assert isinstance(sink, NewestSink)
    assert isinstance(sink, Upserting)
    keep = StoreKeep(started(store_at))
    sink.open(Opening(SCHEMA, None, None, keep, key=KEY))
    return sink


def test_memory_holds_the_newest_of_what_is_published(tmp_path: Path) -> None:
    sink = opened(tmp_path)
    assert sink.table() == SCHEMA.empty_table()
    for batch, came in enumerate(([(1, "a", 1), (1, "b", 2)], [(1, "a", 3)], [(1, "c", 4)])):
        receipts = stage(sink, batch, changes(*((UPSERT, *row) for row in came)))
        sink.publish(BatchId(batch), receipts)
        sink.publish(BatchId(batch), receipts)
    stage(sink, 3, changes((DELETE, 1, "a", None)))
    assert values(sink.table()) == [2, 3, 4]
    assert repr(sink) == "NewestSink(3 rows)"
    assert sink.batches == {}


COME = st.tuples(
    st.sampled_from([UPSERT, UPSERT, DELETE]), st.integers(0, 2), st.sampled_from("ab")
)


@given(st.lists(st.lists(COME, max_size=6), max_size=6))
def test_the_table_is_what_changes_one_by_one_leave(
    batches: list[list[tuple[str, int, str]]],
) -> None:
    """Whenever changes that wait are applied."""
    held: dict[tuple[int, str], int] = {}
    table, waiting, number = SCHEMA.empty_table(), [], 0
    for batch in batches:
        made = []
        for op, end, k in batch:
            number += 1
            held.pop((end, k), None)
            if op == UPSERT:
                held[end, k] = number
            made.append((op, end, k, number))
        waiting.append(changes(*made))
        if number % 2:
            table, waiting = applied(table, pa.concat_tables(waiting), KEY), []
    if waiting:
        table = applied(table, pa.concat_tables(waiting), KEY)
    assert values(table) == list(held.values())
