"""What every sink does for the loop, between collected batches and the outside world."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from tidegate.batch import BatchId
from tidegate.sink.part import PartWriter
from tidegate.state.store import Store


@dataclass(frozen=True)
class Output:
    """One batch of results, in the output order, with its side outputs.

    `late` has one table per stream: the stream's columns and why the tuple was late. `rejected`
    has one row per tuple that had no readable time or could not be parsed. Where tasks have
    written the rows already, `written` is how many they are, and `rows` only the last of them.
    """

    rows: pa.Table
    late: Mapping[str, pa.Table] = field(default_factory=dict)
    rejected: pa.Table | None = None
    written: int | None = None

    @property
    def count(self) -> int:
        """How many rows the batch has."""
        return self.rows.num_rows if self.written is None else self.written


class Sink(Protocol):
    """Takes each batch in two steps, so that a crash at any point loses and repeats nothing.

    `stage` makes the batch durable but invisible and comes before the commit. `publish` makes it
    visible and comes after the commit; it is called again after a restart, for the newest
    committed batch, and must then have the same effect as once.
    """

    def open(self, schema: pa.Schema, store: Store, fresh: bool, output: str | None = None) -> None:
        """Check that results can be written; `fresh` says that no batch was committed before.

        `output` is which of several outputs of a query this is for.
        """

    def stage(self, batch: BatchId, output: Output) -> None: ...

    def parts(self, batch: BatchId) -> PartWriter | None:
        """What tasks may write the rows of a batch with, before it is staged; None: they cannot."""

    def publish(self, batch: BatchId) -> None: ...

    def close(self) -> None: ...
