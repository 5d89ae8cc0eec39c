"""Adds results to a table of a lakehouse, each batch in one commit of the table.

::

    data/WRITER/NNNNNNNN/part-00000-OOOOOOOO-TOKEN.parquet     a part of batch N, of owner O

Tasks write data files into the folder of the table. No reader sees them there, because a table is
what its log says. `publish` adds the files of a batch to the log in one commit, and the same commit
records that this writer's newest batch is N. The writer is the checkpoint with the output. So after
a crash the table itself tells whether it has a batch, and the batch is added if not. Other programs
may commit to the table at the same time.

Each commit also records the owner of the checkpoint. A run that finds a later owner than itself
ends. An owner commits its number before it removes or replaces what earlier runs have left.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.batch import BatchId
from tidegate.errors import LostOutputError, OptionError, SinkError
from tidegate.remote.folder import DataFolder
from tidegate.remote.lake.uri import LakeUri
from tidegate.remote.reason import reason
from tidegate.sink.address import Address
from tidegate.sink.folder.refusal import part_lost
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

_log = logging.getLogger(__name__)

APPEND = "append"
"""The parameter that lets results be added to rows of another checkpoint."""

_TRIES = 20
"""How many times a commit is tried when others come first."""


class LakeSink:
    """One table for the results, and one for each side output that has rows.

    `table(writer, side)` opens each of them. With `append` another checkpoint may have created the
    table.
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
        """The columns and types to write, once the table has them; None before."""
        self._begun: BatchId | None = None
        """The batch that this run writes now, or wrote last."""
        self._waiting: BatchId | None = None
        """The batch that is committed, or about to be, and not yet published."""
        self._replays = False
        """Whether the batch at hand runs again because a part of it was lost after its commit."""

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
                state = _widened(main, self._lacking)
                self._columns = writing_schema(state.schema, self._schema)
            files = main.files()
            # A paused earlier run may still wake up and commit its own files of this batch. The
            # claim makes its commit conflict, so that the batch cannot get in twice.
            if self._replays:
                self._claim(main)
            elif first or again:
                self._sweep(main, batch)
        self._begun = batch
        return LakePartWriter(files, self._writer, batch, self._owner, self._columns)

    def prepare(self, batch: BatchId, receipts: Sequence[Receipt]) -> Sequence[Receipt]:
        """Remember that the batch may be committed from here on; `put` was durable already."""
        self._waiting = batch
        return receipts

    def publish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        """Commit the side outputs, then the rows; does nothing where the table has the batch."""
        main = self._opened
        with self._after_commit(main.where):
            state = main.look()
            if state is None:
                must = "the table must stay while a query writes to it"
                raise SinkError(main.where, must, "none", _ANEW)
            if state.batch >= batch:  # then the side outputs, which come first, are in as well
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
        # Files of rows of the first try are garbage now. Those of side outputs stay: the first try
        # may have committed them to their tables before it ended.
        if self._replays:
            self._replays = False
            with _unswept(main.where):
                self._drop(files.folder(""), batch, {r.name for r in receipts}, is_of_rows)

    def close(self) -> None:
        """Remove the files of a batch that was begun and not committed."""
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
        """Refuse a table that lacks the batches of this checkpoint, or has some beyond them."""
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
        # The newest may still wait to be published; the one before it must be in the table.
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

    def _lacking(self, state: TableState | None) -> pa.Schema:
        """The columns of the results that their table lacks; refuses one that does not fit."""
        if state is None:
            return self._schema
        return columns_to_add(self._opened.where, state, self._schema)

    def _claim(self, table: LakeTable) -> None:
        """Commit our owner number, so that earlier runs can add nothing any more."""
        for _ in range(_TRIES):
            state = table.look()
            assert state is not None, "the table is ready"
            self._check_owner(table, state)
            if state.owner == self._owner:
                return
            with suppress(ConflictError):
                table.commit(None, self._owner, ())
        raise _crowded(table.where)

    def _sweep(self, main: LakeTable, batch: int) -> None:
        """Remove the files that earlier tries of a batch have left, none of which is committed."""
        files, name = main.files(), folder_of_batch(self._writer, batch)
        if any(files.folder(side).list(name) for side in ("", *files.sides())):
            self._claim(main)
            self._drop_all(main, batch)

    def _drop_all(self, main: LakeTable, batch: int) -> None:
        """Remove all files of a batch that no manifest names."""
        files = main.files()
        for side in ("", *files.sides()):
            self._drop(files.folder(side), batch, set(), lambda name: True)

    def _drop(
        self, folder: DataFolder, batch: int, kept: set[str], meant: Callable[[str], bool]
    ) -> None:
        """Remove the `meant` files of a batch, except those `kept` and those of later owners."""
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
        """Commit a batch to a table, unless it is there; `state` is the result of the last look."""
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
        """Create the table of a side output, or add the columns that its rows need."""

        def lacking(state: TableState | None) -> pa.Schema:
            there = () if state is None else state.schema.names
            schema = nullable(pq.read_schema(pa.BufferReader(_bytes(folder, receipts[0]))))
            return pa.schema([field for field in schema if field.name not in there])

        return _widened(table, lacking)

    def _check_parts(self, folder: DataFolder, batch: int, receipts: Sequence[Receipt]) -> None:
        """Refuse a part that differs from its receipt. Reads the bytes if another run wrote it."""
        if not receipts:
            return
        there = {e.name: e.bytes for e in folder.list(folder_of_batch(self._writer, batch))}
        for receipt in receipts:
            wrong = receipt.mismatch(there.get(receipt.name))
            if wrong is not None:
                raise part_lost(folder.full(receipt.name), wrong)
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


def lake_uri(address: Address) -> LakeUri:
    """The address in the form that the sources of such tables use too."""
    return LakeUri(address.scheme, address.place, address.parameters, address.where, OptionError)


def may_append(address: Address) -> bool:
    """Whether the URI lets results be added to rows of another checkpoint."""
    said = address.parameters.get(APPEND, "false").lower()
    if said not in ("true", "false"):
        remedy = "Write append=true, or leave it out."
        raise OptionError(address.where, "append must be true or false", said, remedy)
    return said == "true"


def _widened(table: LakeTable, lacking: Callable[[TableState | None], pa.Schema]) -> TableState:
    """Create a table, or add the columns that are `lacking`; its state then.

    `lacking` gets the state of the last look, None where there is no table.
    """
    for _ in range(_TRIES):
        state = table.look()
        more = lacking(state)
        if state is None:
            table.create(more)
        elif not more.names:
            return state
        else:
            with suppress(ConflictError):
                table.add_columns(more)
    raise _crowded(table.where)


def _bytes(folder: DataFolder, receipt: Receipt) -> bytes:
    """The bytes of a part; a LostOutputError where they are gone or changed."""
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
    """Log files that cannot be removed: they stay in the folder, where nobody reads them."""
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
