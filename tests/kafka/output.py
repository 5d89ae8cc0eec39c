"""An output on a topic, driven call by call as a run drives it, by as many runs as wanted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from tests.sink.output import SCHEMA, rows, started
from tests.state.mapping import mappings
from tidegate.batch import BatchId
from tidegate.driver.outlet import StoreKeep
from tidegate.sink.kafka.sink import KafkaSink
from tidegate.sink.protocol import Opening
from tidegate.sink.receipt import Part, Receipt
from tidegate.sink.registry import of
from tidegate.state.identity import new_identity
from tidegate.state.manifest import Manifest

WINDOW_END = "1970-01-01T00:00:0{}.000000Z"


def batch_rows(batch: int) -> pa.Table:
    """Two rows that no other batch has."""
    return rows((batch, "a", 1), (batch, "b", 2))


def meant(batches: int) -> list[dict[str, object]]:
    """What a reader must see of the first batches."""
    return [
        {"window_end": WINDOW_END.format(batch), "k": k, "v": v}
        for batch in range(batches)
        for k, v in (("a", 1), ("b", 2))
    ]


class TopicOutput:
    """The checkpoint and the topic of one output, and the sinks of its runs."""

    def __init__(self, folder: Path, uri: str) -> None:
        self.store = started(folder)
        self.identity = new_identity()
        self.uri = uri
        self.runs: list[KafkaSink] = []

    def opening(self, owner: int, schema: pa.Schema = SCHEMA) -> Opening:
        latest = self.store.latest()
        newest = None if latest is None else BatchId(latest.batch)
        keep = StoreKeep(self.store)
        return Opening(schema, None, newest, keep, owner, checkpoint=self.identity)

    def start(self, uri: str | None = None) -> KafkaSink:
        """A new run: it opens the sink, and publishes the newest batch again."""
        for _ in self.starting(uri):
            pass
        return self.runs[-1]

    def starting(self, uri: str | None = None) -> Iterator[str]:
        """The same, with a stop after each call."""
        sink = of(uri or self.uri)
        assert isinstance(sink, KafkaSink)
        self.runs.append(sink)
        sink.open(self.opening(len(self.runs)))
        yield "open"
        latest = self.store.latest()
        if latest is not None:
            found = [Receipt.from_dict(r) for r in latest.outputs[""]]
            sink.publish(BatchId(latest.batch), found)
            yield "publish again"

    def writing(self, sink: KafkaSink, batch: int, table: pa.Table | None = None) -> Iterator[str]:
        """One batch, with a stop after each call."""
        writer = sink.begin(BatchId(batch))
        yield "begin"
        receipt = writer.write(Part(), batch_rows(batch) if table is None else table)
        yield "write"
        self.store.publish(Manifest(batch, mappings(0), 0, outputs={"": (receipt.to_dict(),)}))
        yield "commit"
        sink.publish(BatchId(batch), [receipt])
        yield "publish"

    def write(self, sink: KafkaSink, batch: int, table: pa.Table | None = None) -> None:
        for _ in self.writing(sink, batch, table):
            pass

    def go_on(self, batches: int, uri: str | None = None) -> Iterator[str]:
        """A new run up to so many batches, with a stop after each call."""
        yield from self.starting(uri)
        latest = self.store.latest()
        for batch in range(0 if latest is None else latest.batch + 1, batches):
            yield from self.writing(self.runs[-1], batch)

    def close(self) -> None:
        for sink in self.runs:
            sink.close()
