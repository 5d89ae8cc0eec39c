"""Connectors with one of their safeguards taken out, as courses must find it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from tests.simulation.connector.boundary import KILL, KILLED, LOST, REFUSED
from tests.simulation.mutant import nothing
from tidegate.sink.kafka.marker import Marker
from tidegate.sink.kafka.transaction import Transactions
from tidegate.sink.lake.delta import DeltaTarget
from tidegate.sink.lake.iceberg import IcebergTarget
from tidegate.sink.lake.sink import LakeSink
from tidegate.sink.lake.table import NOTHING, LakeError, LakeTable
from tidegate.sink.postgres.ledger import TableLedger
from tidegate.sink.postgres.sink import PostgresSink
from tidegate.source.kafka import feed, fetch
from tidegate.source.kafka.topic import Topic
from tidegate.source.lake.connector import LakeConnector


@dataclass(frozen=True)
class ConnectorMutant:
    """What is taken out, and the faults of calls that show it, some time or other."""

    name: str
    patch: Callable[[pytest.MonkeyPatch], None]
    faults: Collection[tuple[str, str]]


def unmarked_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the marker says is not compared with the batch."""

    def publish(self: Transactions, batch: int, fill: Any, absent: Any) -> None:
        self._claimed(absent)
        assert self._producer is not None
        self._transact(self._producer, Marker(batch, self._owner), fill)

    monkeypatch.setattr(Transactions, "publish", publish)


def marked_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """The marker has a transaction of its own, after that of the rows."""
    whole = Transactions._transact

    def transact(self: Transactions, producer: Any, marker: Marker, fill: Any) -> None:
        producer.begin_transaction()
        fill(producer)
        producer.commit_transaction(self._timeout_ms / 1000)
        whole(self, producer, marker, lambda producer: None)

    monkeypatch.setattr(Transactions, "_transact", transact)


def errors_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an error stands for is taken for offsets without a record."""
    place_of = fetch.place_of

    def beyond(message: Any, topic: Topic, partition: int, position: int) -> int:
        if message.error().code() == KafkaError._PARTITION_EOF:
            return place_of(message, topic, partition, position)
        return position + 1000

    for module in (fetch, feed):
        monkeypatch.setattr(module, "place_of", beyond)


def ledger_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which batch the ledger has is not looked at where one is written."""
    found = PostgresSink._found

    def without_batch(self: PostgresSink, *given: Any, **options: Any) -> Any:
        return replace(found(self, *given, **options), batch=None)

    monkeypatch.setattr(PostgresSink, "_found", without_batch)


def ledger_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger is written in a transaction of its own, after that of the rows."""
    write = TableLedger.write

    def committed(self: TableLedger, cursor: Any, *given: Any) -> None:
        cursor.connection.commit()
        write(self, cursor, *given)

    monkeypatch.setattr(TableLedger, "write", committed)


def batch_unread(kind: type[LakeTable]) -> Callable[[pytest.MonkeyPatch], None]:
    """Which batch the table has is not looked at."""
    look = kind.look

    def without_batch(self: Any) -> Any:
        state = look(self)
        return None if state is None else replace(state, batch=NOTHING)

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(kind, "look", without_batch)
        monkeypatch.setattr(LakeSink, "_check_continued", nothing)

    return patch


def batch_later(kind: type[LakeTable]) -> Callable[[pytest.MonkeyPatch], None]:
    """A commit adds the files, and another says which batch they are."""
    commit = kind.commit

    def twice(self: Any, batch: int | None, owner: int, files: Sequence[Any]) -> None:
        if batch is not None:
            commit(self, None, owner, files)
            self.look()
        commit(self, batch, owner, () if batch is not None else files)

    return lambda monkeypatch: monkeypatch.setattr(kind, "commit", twice)


def commit_believed(kind: type[LakeTable]) -> Callable[[pytest.MonkeyPatch], None]:
    """A commit that failed is taken for one whose answer was lost."""
    commit = kind.commit

    def believed(self: Any, *given: Any) -> None:
        with suppress(LakeError):
            commit(self, *given)

    return lambda monkeypatch: monkeypatch.setattr(kind, "commit", believed)


def unread_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A restart knows the version, but not the files before it that were not read."""
    resume = LakeConnector.resume

    def without(self: Any, listed: Sequence[str], unread: Sequence[str]) -> None:
        resume(self, listed, unread)
        self._again = ()

    monkeypatch.setattr(LakeConnector, "resume", without)


ENDS = (KILLED, LOST)

KAFKA_SINK = (
    ConnectorMutant(
        "a marker is not compared",
        unmarked_written_again,
        [("producer commit_transaction", kind) for kind in ENDS],
    ),
    ConnectorMutant(
        "a marker comes after the rows",
        marked_later,
        [("producer commit_transaction", kind) for kind in ENDS],
    ),
)
KAFKA_SOURCE = (
    ConnectorMutant("errors are passed over", errors_passed_over, [("consumer consume", LOST)]),
)
POSTGRES_SINK = (
    ConnectorMutant("the ledger is not read", ledger_unread, [("COMMIT", kind) for kind in ENDS]),
    ConnectorMutant("the ledger comes after", ledger_later, [("COMMIT", kind) for kind in ENDS]),
)
DELTA_SINK = (
    ConnectorMutant(
        "the batch is not read",
        batch_unread(DeltaTarget),
        [("delta create_write_transaction", kind) for kind in ENDS],
    ),
    # One that says its batch later would do no harm: a file that is added twice is there once.
    ConnectorMutant(
        "a commit that failed is believed",
        commit_believed(DeltaTarget),
        [("delta create_write_transaction", REFUSED)],
    ),
)
ICEBERG_SINK = (
    ConnectorMutant(
        "the batch is not read",
        batch_unread(IcebergTarget),
        [("catalog commit_table", kind) for kind in ENDS],
    ),
    ConnectorMutant(
        "the batch comes after",
        batch_later(IcebergTarget),
        [("catalog commit_table", kind) for kind in ENDS],
    ),
)
LAKE_SOURCE = (
    ConnectorMutant("files are forgotten", unread_forgotten, [("disk open_arrow", KILL)]),
)
