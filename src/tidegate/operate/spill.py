"""Collects rows that an instance makes step by step, on disk where they are many.

The rows are in memory until they take up too much. From then on they go to a file, which is mapped
at the end.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

import pyarrow as pa

from tidegate.batch import from_bytes
from tidegate.cancellation import between_pieces
from tidegate.errors import StateError
from tidegate.memory_limit import LIMIT
from tidegate.operate.operator import InstanceWork
from tidegate.state.files import reason
from tidegate.state.store import Store
from tidegate.storage import disk
from tidegate.storage.whole_file import temporary

SPILL_BYTES = 256 * 2**20
"""At most so much of the rows of one port is in memory."""

_SHARE = 8
"""All ports of all instances together may hold this fraction (1 / 8) of the process's limit."""


class _Tally(threading.local):
    sizes: list[int] | None = None


_TALLY = _Tally()


@contextmanager
def spilling() -> Iterator[list[int]]:
    """Collect the size of each spill that this thread writes in the block; blocks do not nest."""
    found: list[int] = []
    _TALLY.sizes = found
    try:
        yield found
    finally:
        _TALLY.sizes = None


class Spill:
    """The rows of one port. `name` is the prefix of the instance's files in this batch.

    `table` deletes the file after mapping it: the disk space is free again when the rows are
    dropped. If the process dies before, the store's next `clean` removes the file.
    """

    def __init__(self, store: Store, name: str, most_bytes: int | None = None) -> None:
        self._store = store
        self._name = name
        self._most_bytes = SPILL_BYTES if most_bytes is None else most_bytes
        self._held: list[pa.Table] = []
        self._bytes = self._spilled_bytes = 0
        self._path: str | None = None
        self._file: IO[bytes] | None = None
        self._writer: pa.ipc.RecordBatchStreamWriter | None = None

    @staticmethod
    def of(work: InstanceWork, port: int) -> Spill:
        """A spill for a port of an instance; other instances may be in the same process."""
        share = LIMIT.bytes // _SHARE // (work.mapping.running * len(work.ports))
        return Spill(work.store, f"{work.name}-rows-{port}", min(SPILL_BYTES, share))

    def add(self, rows: pa.Table) -> None:
        """Append rows; must be called at least once, if only with an empty table."""
        self._held.append(rows)
        self._bytes += rows.nbytes
        if self._bytes > self._most_bytes:
            self._write()
            between_pieces()

    def table(self) -> pa.Table:
        """All rows."""
        if self._writer is None:
            return pa.concat_tables(self._held)
        self._write()
        assert self._file is not None
        assert self._path is not None
        if _TALLY.sizes is not None:
            _TALLY.sizes.append(self._spilled_bytes)
        try:
            self._writer.close()
            self._file.close()
            return from_bytes(disk.current().map(self._path))
        except OSError as error:
            raise self._failed(error) from error
        finally:
            self.drop()

    def drop(self) -> None:
        """Remove the file, if there is one."""
        if self._path is not None:
            with suppress(OSError):  # the first error is the one to tell
                disk.current().unlink(self._path)

    def _write(self) -> None:
        try:
            if self._writer is None:
                self._path = self._place()
                self._file = disk.current().create(self._path)
                self._writer = pa.ipc.new_stream(self._file, self._held[0].schema)
            for rows in self._held:
                self._writer.write_table(rows)
        except OSError as error:
            self.drop()
            raise self._failed(error) from error
        self._spilled_bytes += self._bytes
        self._held, self._bytes = [], 0

    def _place(self) -> str:
        files = self._store.files
        if not files.local:
            return os.path.join(tempfile.gettempdir(), temporary(self._name))
        # Beside the state, where the store's `clean` finds what a killed process has left.
        files.make("staged")
        return temporary(files.full(f"staged/{self._name}"))

    def _failed(self, error: OSError) -> StateError:
        return StateError(
            str(self._path),
            "must be writable",
            reason(error),
            "Make room or give access, and restart: the run continues after its last committed "
            "batch.",
        )
