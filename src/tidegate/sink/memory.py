"""Results inside this process: kept as tables, or handed to a function of the user's."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from tidegate.batch import BatchId, from_bytes, to_bytes
from tidegate.errors import SinkError
from tidegate.sink.protocol import Output
from tidegate.state.store import Store


class CallSink:
    """Gives every committed batch to a function, `function(table, batch)`.

    The batch is kept in the checkpoint until it has been given away, so after a crash the newest
    one is given again: the function must treat a batch number it has seen as a replacement.
    """

    def __init__(self, function: Callable[[pa.Table, int], None]) -> None:
        self.function = function
        self._store: Store | None = None
        self._output = "output"

    def open(self, schema: pa.Schema, store: Store, fresh: bool, output: str | None = None) -> None:
        self._store = store
        self._output = output or "output"

    def stage(self, batch: BatchId, output: Output) -> None:
        assert self._store is not None
        self._store.write(self._name(batch), to_bytes(output.rows))

    def parts(self, batch: BatchId) -> None:
        """Rows are kept here, so they have to come here."""

    def publish(self, batch: BatchId) -> None:
        assert self._store is not None
        if not self._store.files.exists(self._name(batch)):
            return  # another sink was given it
        rows = from_bytes(self._store.read(self._name(batch)))
        try:
            self.function(rows, int(batch))
        except Exception as error:
            name = getattr(self.function, "__qualname__", repr(self.function))
            raise SinkError(
                f"sink {name}",
                f"must accept batch {batch}",
                f"{type(error).__name__}: {error}",
                "The batch is committed and is given again at the next start.",
            ) from error
        self._store.delete(self._name(batch - 1))

    def _name(self, batch: int) -> str:
        return f"staged/{batch:08d}-{self._output}.arrow"

    def close(self) -> None:
        """Nothing is held open."""


class MemorySink:
    """Keeps every batch as a table; `table()` is the output sequence so far."""

    def __init__(self) -> None:
        self.batches: dict[int, Output] = {}
        self._staged: dict[int, Output] = {}
        self._schema: pa.Schema | None = None

    def open(self, schema: pa.Schema, store: Store, fresh: bool, output: str | None = None) -> None:
        self._schema = schema

    def stage(self, batch: BatchId, output: Output) -> None:
        self._staged = {batch: output}

    def parts(self, batch: BatchId) -> None:
        """Rows are kept here, so they have to come here."""

    def publish(self, batch: BatchId) -> None:
        if batch in self._staged:
            self.batches[batch] = self._staged.pop(batch)

    def close(self) -> None:
        """Nothing is held open."""

    def table(self) -> pa.Table:
        """All rows committed so far, in the output order."""
        if self._schema is None:
            raise SinkError(
                "memory sink", "must belong to a started query", "a sink not yet opened"
            )
        tables = [self.batches[b].rows for b in sorted(self.batches)]
        return pa.concat_tables([self._schema.empty_table(), *tables])
