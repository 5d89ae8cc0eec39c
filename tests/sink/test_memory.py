"""Results in this process: kept, or handed to a function."""

from __future__ import annotations

import zlib
from pathlib import Path

import pyarrow as pa
import pytest

from tests.sink.output import SCHEMA, commit, opened, rows, stage, started
from tidegate.batch import BatchId
from tidegate.errors import LostOutputError, SinkError
from tidegate.sink import call
from tidegate.sink.batch_output import BatchOutput
from tidegate.sink.call import CallSink
from tidegate.sink.memory import MemorySink
from tidegate.sink.receipt import Receipt
from tidegate.state.inspect import inspect
from tidegate.state.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return started(tmp_path)


def test_memory_shows_what_is_committed_in_order(store: Store) -> None:
    sink = MemorySink()
    with pytest.raises(SinkError, match="must belong to a started query"):
        sink.table()
    opened(sink, store)
    assert sink.table().schema == SCHEMA
    commit(sink, store, 0, rows((10, "a", 1.0)))
    stage(sink, 1, rows((20, "not committed", 1.0)))
    assert sink.table().column("k").to_pylist() == ["a"]
    receipts = stage(sink, 1, rows((20, "b", 1.0)))
    sink.publish(BatchId(1), receipts)
    sink.publish(BatchId(1), receipts)
    sink.close()
    assert sink.table().column("k").to_pylist() == ["a", "b"]


def newest_receipts(store: Store) -> list[Receipt]:
    """What the newest manifest says of the only output."""
    latest = store.latest()
    assert latest is not None
    return [Receipt.from_dict(fields) for fields in latest.outputs[""]]


class Taking:
    """Keeps what it is given, and refuses a batch when told to."""

    def __init__(self) -> None:
        self.given: list[tuple[int, list[str]]] = []
        self.refuses = False

    def __call__(self, table: pa.Table, batch: int) -> None:
        if self.refuses:
            raise ValueError("not now")
        self.given.append((batch, table.column("k").to_pylist()))


def test_a_function_gets_every_committed_batch_once(store: Store) -> None:
    take = Taking()
    sink = call(take)
    opened(sink, store)
    stage(sink, 0, rows((10, "not committed", 1.0)))
    assert take.given == []
    commit(sink, store, 0, rows((10, "a", 1.0)))
    commit(sink, store, 1, rows())
    sink.close()
    assert take.given == [(0, ["a"]), (1, [])]
    assert [e.name for e in store.files.list("staged")] == ["staged/00000001-output.00000000.arrow"]


def test_the_newest_batch_is_given_again_after_a_restart_with_its_number(store: Store) -> None:
    take = Taking()
    sink = CallSink(take)
    opened(sink, store)
    commit(sink, store, 0, rows((10, "a", 1.0)))
    receipts = commit(sink, store, 1, rows((20, "b", 1.0)))
    again = CallSink(take)
    opened(again, store)
    store.clean()
    again.publish(BatchId(1), receipts)
    assert take.given == [(0, ["a"]), (1, ["b"]), (1, ["b"])]


def test_a_function_that_raises_is_named_and_gets_the_batch_at_the_next_start(
    store: Store,
) -> None:
    take = Taking()
    take.refuses = True
    sink = CallSink(take)
    opened(sink, store)
    with pytest.raises(SinkError, match="must accept batch 0; got ValueError: not now") as caught:
        commit(sink, store, 0, rows((10, "a", 1.0)))
    (receipt,) = newest_receipts(store)
    assert "Taking" in caught.value.where
    assert isinstance(caught.value.__cause__, ValueError)
    take.refuses = False
    again = CallSink(take)
    opened(again, store)
    again.publish(BatchId(0), [receipt])
    assert take.given == [(0, ["a"])]


def test_a_batch_that_another_sink_was_given_is_not_missed(store: Store) -> None:
    receipts = commit(MemorySink(), store, 0, rows((10, "a", 1.0)))
    take = Taking()
    sink = CallSink(take)
    opened(sink, store)
    sink.publish(BatchId(0), receipts)
    commit(sink, store, 1, rows((20, "b", 1.0)))
    assert take.given == [(1, ["b"])]


def test_what_is_kept_for_a_function_is_verified_in_the_checkpoint(store: Store) -> None:
    sink = CallSink(Taking())
    opened(sink, store)
    commit(sink, store, 0, rows((10, "a", 1.0)))
    (name,) = (e.name for e in store.files.list("staged"))
    found = inspect(store, verify=True)["verified"]["outputs"][""]
    assert (found["checked"], found["parts"], found["problems"]) == (True, 1, [])
    store.write(name, b"x" + store.read(name)[1:])
    found = inspect(store, verify=True)["verified"]
    assert found["problems"] == [f"{store.files.full(name)}: other bytes than were written"]


@pytest.mark.parametrize("lost", [True, False], ids=["gone", "damaged"])
def test_a_batch_that_the_checkpoint_has_lost_is_missed(store: Store, lost: bool) -> None:
    take, kept = Taking(), "staged/00000000-output.00000000.arrow"
    sink = CallSink(take)
    opened(sink, store)
    receipts = stage(sink, 0, rows((10, "a", 1.0)))
    data = bytearray(store.read(kept))
    data[-90] ^= 1
    store.delete(kept) if lost else store.write(kept, bytes(data))
    with pytest.raises(LostOutputError, match="batch 0 must be in the checkpoint until") as caught:
        sink.publish(BatchId(0), receipts)
    assert f"got {'no' if lost else 'a damaged'} output.00000000.arrow" in str(caught.value)
    assert take.given == []


def test_the_receipt_of_a_batch_for_a_function_says_what_is_kept(store: Store) -> None:
    sink = CallSink(Taking())
    opened(sink, store)
    (receipt,) = stage(sink, 3, rows((10, "a", 1.0), (10, "b", 1.0)))
    kept = store.read("staged/00000003-output.00000000.arrow")
    assert (receipt.name, receipt.rows) == ("output.00000000.arrow", 2)
    assert (receipt.bytes, receipt.checksum) == (len(kept), zlib.crc32(kept))


SIDES = BatchOutput(
    rows((10, "a", 1.0)),
    {"rides": rows((1, "late", 0.0)), "a/b": rows((2, "later", 0.0))},
    pa.table({"_reason": ["no time"]}),
)


def test_functions_for_side_outputs_get_them_before_the_rows_and_again_after_a_restart(
    store: Store,
) -> None:
    """They were counted and nothing else."""
    given: list[tuple[object, ...]] = []

    def sink_of() -> CallSink:
        return call(
            lambda table, batch: given.append(("rows", batch, table.num_rows)),
            late=lambda table, batch, stream: given.append((stream, batch, table["k"].to_pylist())),
            rejected=lambda table, batch: given.append(("rejected", batch, table.num_rows)),
        )

    sink = sink_of()
    opened(sink, store, owner=1)
    receipts = commit(sink, store, 0, SIDES)
    expected = [
        ("rejected", 0, 1),
        ("a/b", 0, ["later"]),
        ("rides", 0, ["late"]),
        ("rows", 0, 1),
    ]
    assert given == expected
    again = sink_of()
    opened(again, store, owner=2)
    store.clean()
    again.publish(BatchId(0), receipts)
    assert given == expected * 2
    commit(again, store, 1, rows())
    assert given[8:] == [("rows", 1, 0)]
    assert [e.name for e in store.files.list("staged")] == ["staged/00000001-output.00000002.arrow"]


def test_side_outputs_that_no_function_takes_are_said_to_be_dropped(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    take = Taking()
    sink = call(take)
    opened(sink, store)
    for batch in range(3):
        commit(sink, store, batch, SIDES)
    assert [batch for batch, _ in take.given] == [0, 1, 2]
    assert len(store.files.list("staged")) == 1
    late, rejected = caplog.messages
    assert "rows that are late, from batch 0 on, are counted and dropped" in late
    assert "give rejected=function to tg.sink.call" in rejected


def test_a_function_for_side_outputs_that_raises_is_named(store: Store) -> None:
    def away(*given: object) -> None:
        raise ValueError("not now")

    sink = call(Taking(), late=away)
    opened(sink, store)
    with pytest.raises(SinkError, match="away: must accept batch 0; got ValueError: not now"):
        commit(sink, store, 0, SIDES)
