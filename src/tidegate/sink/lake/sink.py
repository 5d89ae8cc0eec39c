"""Adds results to a table of a lakehouse, each batch in one commit of the table.

::

    data/WRITER/NNNNNNNN/part-00000-OOOOOOOO-TOKEN.parquet     a part of batch N, of owner O

Tasks write data files into the folder of the table, where no reader looks for them: a table is what
its log says. `publish` adds the files of a batch to the log in one commit, which says in the same
step that this writer's newest batch is N. The writer is the checkpoint, and the output. So after a
crash the table knows whether a batch is in it, and it is added if not; others may commit beside.

Each commit also says who owned the checkpoint. A run that finds a later owner than itself ends. An
owner says so in a commit of its own before it removes or replaces what runs before it have left.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.batch import BatchId
from tidegate.errors import LostOutputError, OptionError, SinkError
from tidegate.remote.lake.files import DataFolder
from tidegate.remote.reason import reason
from tidegate.sink.lake.part import (
    SIDE,
    STATS,
    LakePartWriter,
    folder_of_batch,
    is_of_rows,
    owner_of,
    writing_schema,
)
from tidegate.sink.lake.table import (
    AddedFile,
    ConflictError,
    LakeError,
    LakeTable,
    TableState,
    columns_to_add,
    nullable,
)
from tidegate.sink.protocol import Opening
from tidegate.sink.receipt import Receipt
from tidegate.sink.refusal import part_lost

_log = logging.getLogger(__name__)

_TRIES = 20
"""How often a commit is tried that others come before."""


class LakeSink:
    """One table for the results, and one for each side output that has rows.

    `table(writer, side)` gives each of them. `append` says that it may be a table that another
    checkpoint has made.
    """

    parallel = True
    side_outputs = True

    def __init__(
        self, uri: str, table: Callable[[str, str], LakeTable], append: bool = False
    ) -> None:
        self.uri = uri
        self._tables = table
        self._append = append
        self._owner = 0
        self._writer = ""
        self._schema = pa.schema([])
        self._main: LakeTable | None = None
        self._columns: pa.Schema | None = None
        """The columns of the table as rows are written, when it is ready for them."""
        self._begun: BatchId | None = None
        """The batch that this run is writing, or has written last."""
        self._waiting: BatchId | None = None
        """The batch that is committed, or about to be, and not published."""
        self._replays = False
        """Whether the batch that was begun is one that runs again, after a part of it was lost."""

    def __repr__(self) -> str:
        return f"LakeSink({self.uri!r})"

    def open(self, opening: Opening) -> None:
        self._owner, self._schema = opening.owner, nullable(opening.schema)
        self._writer = "/".join(filter(None, (opening.checkpoint, opening.output)))
        self._columns, self._begun, self._replays = None, None, False
        self._waiting = opening.newest if opening.newest in opening.results else None
        self._main = main = self._tables(self._writer, "")
        main.check_types(opening.schema)
        try:
            state = main.look()
        except LakeError as error:
            must = "the table must be readable"
            raise OptionError(main.where, must, str(error), _REACH) from error
        if state is not None:
            self._check_table(main, state, begins=opening.newest is None)
        if opening.newest is not None:
            self._check_continued(main, state, opening)

    def begin(self, batch: BatchId) -> LakePartWriter:
        main = self._opened
        first, again = self._begun is None, self._begun == batch
        self._replays = batch == self._waiting
        with _before_commit(main.where):
            if self._columns is None:
                self._columns = self._ready(main)
            files = main.files()
            if self._replays:  # its first try may still be about to be committed by who wrote it
                self._claim(main)
            elif first or again:
                self._sweep(main, batch)
        self._begun = batch
        return LakePartWriter(files, self._writer, batch, self._owner, self._columns)

    def prepare(self, batch: BatchId, receipts: Sequence[Receipt]) -> Sequence[Receipt]:
        """Nothing to make durable: what was put is. From here on it may be committed."""
        self._waiting = batch
        return receipts

    def publish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        """Commit the side outputs, then the rows; a table that has the batch stays as it is."""
        main = self._opened
        with self._after_commit(main.where):
            state = main.look()
            if state is None:
                must = "the table must stay while a query writes to it"
                raise SinkError(main.where, must, "none", _ANEW)
            if state.batch >= batch:  # and so are its side outputs, which come first
                self._waiting = None
                return
            self._check_owner(main, state)
            files = main.files()
            for side in dict.fromkeys(r.more[SIDE] for r in receipts if SIDE in r.more):
                own = [r for r in receipts if r.more.get(SIDE) == side]
                table, folder = self._tables(self._writer, side), files.folder(side)
                self._add(table, self._side_ready(table, folder, own), folder, batch, own)
            rows = [r for r in receipts if SIDE not in r.more]
            self._add(main, state, files.folder(""), batch, rows)
        self._waiting = None
        if self._replays:  # of its side outputs those of the first try may be in their tables
            self._replays = False
            with _unswept(main.where):
                self._drop(files.folder(""), batch, {r.name for r in receipts}, is_of_rows)

    def close(self) -> None:
        """Remove what was written of a batch that was not committed."""
        if self._main is None or self._begun is None or self._begun == self._waiting:
            return
        with _unswept(self._main.where):
            state = self._main.look()
            if state is not None and state.batch < self._begun:
                self._drop_all(self._main, self._begun)

    @property
    def _opened(self) -> LakeTable:
        assert self._main is not None, "a sink is opened first"
        return self._main

    def _check_table(self, main: LakeTable, state: TableState, begins: bool) -> None:
        if state.partitioned:
            got = f"one by {', '.join(state.partitioned)}"
            remedy = "Choose another table, and let a job of its own divide the rows."
            raise OptionError(main.where, "the table must be without partitions", got, remedy)
        if begins and state.maker not in ("", self._writer) and not self._append:
            raise OptionError(
                main.where,
                "a new checkpoint needs a table that no other one has made",
                f"a table of checkpoint {state.maker}",
                "Continue with its --checkpoint, or choose another table; to add to the rows that "
                "are there, write append=true into the URI.",
            )
        self._check_owner(main, state, OptionError)
        columns_to_add(main.where, state, self._schema)

    def _check_continued(self, main: LakeTable, state: TableState | None, opening: Opening) -> None:
        """A run continues in the table that has its batches, and none beyond the newest."""
        assert opening.newest is not None
        batch = -1 if state is None else state.batch
        if batch > opening.newest:
            raise OptionError(
                main.where,
                f"must have nothing beyond batch {opening.newest} of this checkpoint",
                f"batch {batch}",
                "Restore the newest copy of the checkpoint, or start with another one and another "
                "table.",
            )
        # The newest may wait to be published; the one before it is in.
        published = opening.results[1:2] if self._waiting is not None else opening.results[:1]
        if published and batch < published[0]:
            got = "no table" if state is None else f"none after batch {batch}"
            raise OptionError(
                main.where,
                f"must have the results of this checkpoint, up to batch {published[0]}",
                got.replace("batch -1", "the first"),
                "Continue with the --out of the earlier run, or start from an empty checkpoint.",
            )

    def _check_owner(
        self, table: LakeTable, state: TableState, kind: type[OptionError | SinkError] = SinkError
    ) -> None:
        if state.owner > self._owner:
            raise kind(
                table.where,
                f"must have no later owner of the checkpoint than this run, {self._owner}",
                f"run {state.owner}",
                "That one goes on with it: let it, and end this one.",
            )

    def _ready(self, main: LakeTable) -> pa.Schema:
        """Make the table, or add the columns that it lacks; its columns as rows are written."""
        for _ in range(_TRIES):
            state = main.look()
            if state is None:
                main.create(self._schema)
                continue
            more = columns_to_add(main.where, state, self._schema)
            if not more.names:
                return writing_schema(state.schema, self._schema)
            try:
                main.add_columns(more)
            except ConflictError:
                continue
        raise _crowded(main.where)

    def _claim(self, table: LakeTable) -> None:
        """Say in the table who the owner is, so that those before it add nothing any more."""
        for _ in range(_TRIES):
            state = table.look()
            assert state is not None, "the table is ready"
            self._check_owner(table, state)
            if state.owner == self._owner:
                return
            try:
                table.commit(None, self._owner, ())
            except ConflictError:
                continue
        raise _crowded(table.where)

    def _sweep(self, main: LakeTable, batch: int) -> None:
        """Remove what tries of a batch have left that is not committed anywhere."""
        files, name = main.files(), folder_of_batch(self._writer, batch)
        if any(files.folder(side).list(name) for side in ("", *files.sides())):
            self._claim(main)
            self._drop_all(main, batch)

    def _drop_all(self, main: LakeTable, batch: int) -> None:
        """Remove all files of a batch that is in no manifest."""
        files = main.files()
        for side in ("", *files.sides()):
            self._drop(files.folder(side), batch, set(), lambda name: True)

    def _drop(
        self, folder: DataFolder, batch: int, kept: set[str], meant: Callable[[str], bool]
    ) -> None:
        """Remove files of a batch that are meant, but for those kept and those of later owners."""
        there = [entry.name for entry in folder.list(folder_of_batch(self._writer, batch))]
        gone = [n for n in there if n not in kept and meant(n) and owner_of(n) <= self._owner]
        folder.delete_all(gone)

    def _add(
        self,
        table: LakeTable,
        state: TableState,
        folder: DataFolder,
        batch: int,
        receipts: Sequence[Receipt],
    ) -> None:
        """Commit a batch to a table that does not have it; `state` is what was just seen of it."""
        for _ in range(_TRIES):
            if state.batch >= batch:
                return
            self._check_owner(table, state)
            self._check_parts(folder, batch, receipts)
            found = [AddedFile(r.name, r.rows, r.bytes or 0, r.more[STATS]) for r in receipts]
            try:
                table.commit(batch, self._owner, found)
            except ConflictError:
                state = table.look() or state
                continue
            return
        raise _crowded(table.where)

    def _side_ready(
        self, table: LakeTable, folder: DataFolder, receipts: Sequence[Receipt]
    ) -> TableState:
        """A table of a side output, made or widened for its rows."""
        for _ in range(_TRIES):
            state = table.look()
            schema = nullable(pq.read_schema(pa.BufferReader(_bytes(folder, receipts[0]))))
            if state is None:
                table.create(schema)
                continue
            more = pa.schema([field for field in schema if field.name not in state.schema.names])
            if not more.names:
                return state
            try:
                table.add_columns(more)
            except ConflictError:
                continue
        raise _crowded(table.where)

    def _check_parts(self, folder: DataFolder, batch: int, receipts: Sequence[Receipt]) -> None:
        """Refuse a part that is not as it was written; the bytes are read where others wrote it."""
        if not receipts:
            return
        there = {e.name: e.bytes for e in folder.list(folder_of_batch(self._writer, batch))}
        for receipt in receipts:
            size = there.get(receipt.name)
            if size is None:
                raise part_lost(folder.full(receipt.name), "no such file")
            if size != receipt.bytes:
                got = f"{size} bytes, where {receipt.bytes} were written"
                raise part_lost(folder.full(receipt.name), got)
            if batch != self._begun:
                _bytes(folder, receipt)

    @contextmanager
    def _after_commit(self, where: str) -> Iterator[None]:
        try:
            yield
        except (LakeError, OSError) as error:
            got = str(error) if isinstance(error, LakeError) else reason(error)
            must = "a committed batch must be added to the table"
            raise SinkError(where, must, got, _AGAIN) from error


def _bytes(folder: DataFolder, receipt: Receipt) -> bytes:
    """The bytes of a part as they were written; a LostOutputError where they are not there."""
    try:
        data = folder.read(receipt.name)
    except FileNotFoundError as error:
        raise part_lost(folder.full(receipt.name), "no such file") from error
    if zlib.crc32(data) != receipt.checksum:
        raise part_lost(folder.full(receipt.name), "other bytes than were written")
    return data


_REACH = "Give access to it, or choose another --out."
_ANEW = "Restore the table, or start with another checkpoint and another table."
_AGAIN = "It is kept beside the table's files: run again, and it is added if it is not in by then."


@contextmanager
def _before_commit(where: str) -> Iterator[None]:
    try:
        yield
    except (LakeError, ConflictError, OSError) as error:
        got = reason(error) if isinstance(error, OSError) else str(error)
        must = "the table must be ready before a batch is written"
        raise SinkError(where, must, got, "Nothing of it was committed. Run again.") from error


@contextmanager
def _unswept(where: str) -> Iterator[None]:
    """What cannot be removed stays in the folder, where nobody reads it."""
    try:
        yield
    except (LakeError, LostOutputError, OSError) as error:
        _log.warning("%s: files of an earlier try could not be removed: %s", where, error)


def _crowded(where: str) -> SinkError:
    return SinkError(
        where,
        f"a commit must succeed within {_TRIES} tries",
        "others that came first each time",
        "Let fewer commit to the table at the same time. Run again, and it is tried again.",
    )
