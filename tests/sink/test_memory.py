"""Results in this process: kept, or handed to a function."""

from __future__ import annotations

import zlib
from pathlib import Path

import pyarrow as pa
import pytest

from tests.sink.output import SCHEMA, commit, opened, rows, stage, started
from tidegate.batch import BatchId
from tidegate.errors import SinkError
from tidegate.sink import call
from tidegate.sink.call import CallSink
from tidegate.sink.memory import MemorySink
from tidegate.sink.receipt import Receipt
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
    assert [e.name for e in store.files.list("staged")] == ["staged/00000001.0-output.arrow"]


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


def test_a_batch_that_is_gone_from_the_checkpoint_is_missed(store: Store) -> None:
    take = Taking()
    sink = CallSink(take)
    opened(sink, store)
    receipts = stage(sink, 0, rows((10, "a", 1.0)))
    store.delete("staged/00000000.0-output.arrow")
    with pytest.raises(SinkError, match="batch 0 must be in the checkpoint until") as caught:
        sink.publish(BatchId(0), receipts)
    assert "got no output.arrow of it" in str(caught.value)
    assert take.given == []


def test_the_receipt_of_a_batch_for_a_function_says_what_is_kept(store: Store) -> None:
    sink = CallSink(Taking())
    opened(sink, store)
    (receipt,) = stage(sink, 3, rows((10, "a", 1.0), (10, "b", 1.0)))
    kept = store.read("staged/00000003.0-output.arrow")
    assert (receipt.name, receipt.rows) == ("output.arrow", 2)
    assert (receipt.bytes, receipt.checksum) == (len(kept), zlib.crc32(kept))
