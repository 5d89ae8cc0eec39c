"""Hands records to a producer, with headers that say which row of the output each one is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tidegate.batch import BatchId
from tidegate.sink.kafka.record import KEY, VALUE

if TYPE_CHECKING:
    from confluent_kafka import Producer

WRITER, BATCH = "tidegate.writer", "tidegate.batch"
SEQUENCE, STREAM = "tidegate.sequence", "tidegate.stream"
"""Headers of records, as texts: the transactional id of the output, the batch, the number of the
row in its batch from 0 on, and for late tuples their stream. Every record has the first three. The
records of all partitions, ordered by batch and sequence, are the output."""

BY_KEY = -1
"""The partition that the hash of the key names, as Java's clients compute it (murmur2)."""

Headers = list[tuple[str, str | bytes | None]]

_ROOM_S = 0.005


def origin(writer: str, batch: BatchId, stream: str = "") -> Headers:
    """The headers that all records of a part share."""
    fixed: Headers = [(WRITER, writer.encode()), (BATCH, b"%d" % batch)]
    return [*fixed, (STREAM, stream.encode())] if stream else fixed


def send(
    producer: Producer,
    topic: str,
    records: pa.Table,
    partitions: Iterable[int],
    headers: Headers,
    at_ms: int,
) -> None:
    """Queue records in their order, each for the next of the partitions.

    Costs a call for each record: the client's call for many takes neither headers nor timestamps.
    """
    produce, places, first = producer.produce, iter(partitions), 0
    # One list for all records: `produce` copies the headers, so only the last entry changes.
    named: Headers = [*headers, (SEQUENCE, b"")]
    for batch in records.to_batches():
        numbers = pa.array(np.arange(first, first + batch.num_rows)).cast(pa.string())
        columns = (batch.column(KEY), batch.column(VALUE), numbers.cast(pa.binary()))
        rows = zip(*(column.to_pylist() for column in columns), places, strict=False)
        for key, value, number, place in rows:
            named[-1] = (SEQUENCE, number)
            while True:
                try:
                    produce(topic, value, key, place, None, None, at_ms, named)
                    break
                except BufferError:  # the queue of the producer is full
                    producer.poll(_ROOM_S)
        first += batch.num_rows
