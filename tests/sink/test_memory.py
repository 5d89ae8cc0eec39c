"""Results in this process: kept, or handed to a function."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.sink.output import SCHEMA, commit, rows, started
from tidegate.batch import BatchId
from tidegate.errors import SinkError
from tidegate.sink import call
from tidegate.sink.memory import CallSink, MemorySink
from tidegate.sink.protocol import Output
from tidegate.state.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return started(tmp_path)


def test_memory_shows_what_is_committed_in_order(store: Store) -> None:
    sink = MemorySink()
    with pytest.raises(SinkError, match="must belong to a started query"):
        sink.table()
    sink.open(SCHEMA, store, fresh=True)
    assert sink.table().schema == SCHEMA
    commit(sink, store, 0, rows((10, "a", 1.0)))
    sink.stage(BatchId(1), Output(rows((20, "not committed", 1.0))))
    assert sink.table().column("k").to_pylist() == ["a"]
    sink.stage(BatchId(1), Output(rows((20, "b", 1.0))))
    sink.publish(BatchId(1))
    sink.publish(BatchId(1))
    sink.close()
    assert sink.table().column("k").to_pylist() == ["a", "b"]


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
    sink.open(SCHEMA, store, fresh=True)
    sink.stage(BatchId(0), Output(rows((10, "not committed", 1.0))))
    assert take.given == []
    commit(sink, store, 0, rows((10, "a", 1.0)))
    commit(sink, store, 1, rows())
    sink.close()
    assert take.given == [(0, ["a"]), (1, [])]
    assert [e.name for e in store.files.list("staged")] == ["staged/00000001-output.arrow"]


def test_the_newest_batch_is_given_again_after_a_restart_with_its_number(store: Store) -> None:
    take = Taking()
    sink = CallSink(take)
    sink.open(SCHEMA, store, fresh=True)
    commit(sink, store, 0, rows((10, "a", 1.0)))
    commit(sink, store, 1, rows((20, "b", 1.0)))
    again = CallSink(take)
    again.open(SCHEMA, store, fresh=False)
    store.clean()
    again.publish(BatchId(1))
    assert take.given == [(0, ["a"]), (1, ["b"]), (1, ["b"])]


def test_a_function_that_raises_is_named_and_gets_the_batch_at_the_next_start(
    store: Store,
) -> None:
    take = Taking()
    take.refuses = True
    sink = CallSink(take)
    sink.open(SCHEMA, store, fresh=True)
    with pytest.raises(SinkError, match="must accept batch 0; got ValueError: not now") as caught:
        commit(sink, store, 0, rows((10, "a", 1.0)))
    assert "Taking" in caught.value.where
    assert isinstance(caught.value.__cause__, ValueError)
    take.refuses = False
    again = CallSink(take)
    again.open(SCHEMA, store, fresh=False)
    again.publish(BatchId(0))
    assert take.given == [(0, ["a"])]


def test_a_batch_that_another_sink_was_given_is_not_missed(store: Store) -> None:
    commit(MemorySink(), store, 0, rows((10, "a", 1.0)))
    take = Taking()
    sink = CallSink(take)
    sink.open(SCHEMA, store, fresh=False)
    sink.publish(BatchId(0))
    commit(sink, store, 1, rows((20, "b", 1.0)))
    assert take.given == [(1, ["b"])]
