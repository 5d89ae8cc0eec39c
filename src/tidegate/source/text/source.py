"""Reads a text file on the driver: finds blocks as it goes, and checks that they do not change.

A followed file may grow. A file that was replaced, cut or rewritten ends the run.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate import schedule
from tidegate.arrival import Floats, Growth
from tidegate.clock import Clock
from tidegate.connector import Bools, Int64s
from tidegate.errors import GateError
from tidegate.source.format import FileFacts, FileSource, FileUse
from tidegate.source.mark import (
    EDGE_BYTES,
    PUT_BACK,
    FileMark,
    changed_since,
    digest,
    digest_of,
    moved_to,
    reused,
    status_of,
)
from tidegate.source.piece import PieceIndex
from tidegate.source.text.block import Block, BlockIndex, FileRewritten, read_bytes
from tidegate.source.text.compression import NONE, digest_unpacked
from tidegate.source.text.layout import TextLayout, TextReader, read_block
from tidegate.storage import disk

_ROTATED = (
    "Put the new rows behind the old ones, in one file at this path, and start again. Where files "
    "are rotated, follow their folder and let each have a name of its own."
)

_NOT_KNOWN = 2**62
"""More bytes than there are in any file."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TextFacts(FileFacts):
    """The facts of a text file; its extent is its number of bytes.

    `digest` covers its first EDGE_BYTES, `before` the bytes before the first row, and `line` is how
    many lines end there. `packing` is its compression; size and digest are of the compressed file.
    The least time is not known: text has no statistics.
    """

    before: int
    origin: int
    layout: TextLayout
    block_bytes: int
    line: int
    packing: str

    def open(self, file: FileUse) -> TextSource:
        return (TextSource if self.packing == NONE else PackedSource)(file, self)


class TextSource(FileSource[Block]):
    """A text file on the driver: its blocks are found as far as rows are asked for.

    A file that `grows` may get longer until `finish`; only its complete records count. Another file
    is read up to the length that it had when it was first seen; if it gets longer meanwhile, only
    complete records count there too. In both cases what was read must stay. Where the file is
    another one, or was rewritten, the digest of all that was read shows it; where it only got
    longer, comparing the last bytes that were read is enough.

    Grows with the blocks found. Caches the times of the last two blocks.
    """

    kept_pieces = 2

    def __init__(self, file: FileUse, facts: TextFacts) -> None:
        split, more = facts.layout.split, (facts.before, facts.line, facts.packing)
        self._index = BlockIndex(file.path, facts.origin, split, facts.block_bytes, *more)
        super().__init__(file, self._index.blocks)
        self._facts = facts
        self._size = facts.size_bytes if facts.packing == NONE else _NOT_KNOWN
        self._seen = facts.status
        self._sure = facts.status
        """The status when the file was last known to contain what was read."""
        self._followed = self._looks = file.grows
        self._version = None if file.grows else facts.version
        self._told_rest = False
        self._growth: Growth | None = None
        self._clock = schedule.current().clock

    def extend(self, rows: int) -> int:
        if self._looks and self.grows and self._index.rows < rows:
            self._measure()
        while self._index.rows < rows and self._index.offset < self._size and self._grow():
            pass
        return self._index.rows

    def ended(self) -> bool:
        return not self.grows and self._index.offset >= self._size

    def extent(self, position: int) -> tuple[int, int, str] | None:
        """The bytes before a position, about, and all bytes; None while these are not known."""
        if self._size == _NOT_KNOWN:
            return None
        done = 0
        for block in self._pieces.within(max(position - 1, 0), position):
            done = block.offset + block.length * (position - block.first) // block.rows
        return done, self._size, "bytes"

    def follow_arrivals(self, came_at: float, clock: Clock) -> None:
        super().follow_arrivals(came_at, clock)
        if self.grows:
            self._clock, self._growth = clock, Growth(self._size, came_at, clock.now())
            self.arrivals = RowArrivals(self._pieces, self._growth)

    def untaken(self, position: int) -> tuple[int, str] | None:
        """How many bytes lie behind a position by now, about; None where that is not known."""
        extent = self.extent(position)
        if extent is None:
            return None
        status = status_of(self.path) if self.grows and self._looks else None
        size = extent[1] if status is None else status.bytes
        return max(size - extent[0], 0), "bytes"

    def finish(self) -> TextFacts:
        """As in `FileSource`; an incomplete last line counts as a record."""
        if self.grows:
            self._measure()
            self.grows = False
        edge = digest_of(self.path, min(EDGE_BYTES, self._size))
        size, (_, modified_ns, inode, _) = self._size, self._seen
        facts = replace(self._facts, size_bytes=size, extent=size, digest=edge)
        return replace(facts, modified_ns=modified_ns, inode=inode)

    def take_as_of_now(self) -> None:
        self._looks = False

    def is_at(self, path: str, inode: int) -> bool:
        if inode != self._seen.inode or not self._index.rows:
            return False
        return digest_of(path, self._index.offset) == self._index.digest

    def rows_within(self, extent: int, edge: int) -> int:
        """How many rows the first `extent` bytes hold; `edge` was the file's digest then."""
        if self._size < extent or digest_of(self.path, min(EDGE_BYTES, extent)) != edge:
            raise reused(self.path, "another content")
        while self._index.offset < extent and self._index.grow(extent, True):
            pass
        if self._index.open_ended and self._size > extent:
            raise reused(self.path, "more of its last line, which was taken as whole")
        return self._index.rows

    def mark(self, position: int) -> dict[str, int]:
        """The mark by which a restart checks that the rows before a position are unchanged.

        It covers the file up to the end of the block of the last of these rows.
        """
        block = self._pieces.at(position - 1)
        end, rows = block.offset + block.length, block.first + block.rows
        return FileMark(end, rows, block.digest, *self._seen[:3]).saved()

    def check(self, saved: Mapping[str, Any], position: int, again: bool) -> None:
        """Refuse a file in which the rows before a position are not those of a mark.

        Where it will not be read `again`, a file with an unchanged status is not opened.
        """
        mark = FileMark.of(saved)
        if again or not mark.is_of(self._seen):
            got = self._difference(mark)
            if got is not None:
                remedy = _ROTATED if self._followed else PUT_BACK
                raise changed_since(self.path, position, got, remedy)

    def holds(self, saved: Mapping[str, Any]) -> bool:
        """Whether the file begins with what a mark covers; costs a pass over that."""
        mark = FileMark.of(saved)
        return self._digest(mark.read_bytes) == mark.digest

    def confirm(self) -> None:
        """Refuse a file whose last line went on after it was taken as whole.

        Called before the commit, so that half a line is never committed as a row.
        """
        status = status_of(self.path)
        if status is None or status.bytes <= self._size:
            return
        if self._index.open_ended:
            raise GateError(
                self.path,
                "a line must be whole before it is read",
                f"one that goes on behind byte {self._size}: the file is still being written",
                "Start again; with --follow a run waits for whole lines.",
            )
        self._tell_rest()

    def _measure(self) -> None:
        """Read the present length of the file."""
        self._size = self._look().bytes
        if self._growth is not None:
            self._growth.look(self._size, self._clock.now())

    def _grow(self) -> bool:
        """Find one more block; False where no complete record is left."""
        # A growing file was looked at by `_measure`. Another one is looked at before each read:
        # a file that was replaced meanwhile would be read as if it went on.
        status = self._seen if self.grows else self._look()
        final = not self.grows and self._size in (status.bytes, _NOT_KNOWN)
        wary = status != self._facts.status
        try:
            grew = self._index.grow(self._size, final, wary)
        except FileRewritten:
            raise self._changed(status) from None
        self._sure = status
        if not grew and not self.grows:
            self._size = self._index.offset  # behind it there is no whole line yet
        return grew

    def _tell_rest(self) -> None:
        """Log, once, that the file has more by now than this run will read."""
        if not self._told_rest and not self._followed:
            self._told_rest = True
            _log.warning(
                "%s is still being written: it is read up to byte %d; follow it to read on",
                self.path,
                self._size,
            )

    def _look(self) -> disk.Status:
        """The present status; refuses a file that cannot contain what was read any more.

        A file that only got longer passes here: `BlockIndex.grow` compares the end of what was
        read with it.
        """
        status, before = status_of(self.path), self._seen
        if status is None or status.bytes < self._size:
            raise self._changed(status)
        if status != before:
            longer = status.inode == before.inode and status.bytes > before.bytes
            unread = self._index.offset == self._facts.origin
            if (unread or not longer) and not self._is_same():
                raise self._changed(status)
        self._seen = status
        return status

    def _is_same(self) -> bool:
        """Whether the file still begins with what was read; costs a pass over that."""
        facts, index = self._facts, self._index
        return (
            digest_of(self.path, min(EDGE_BYTES, facts.size_bytes)) == facts.digest
            and self._digest(index.offset) == index.digest
        )

    def _digest(self, length: int) -> int:
        """The digest of the first bytes, unpacked where the file is compressed."""
        return digest_of(self.path, length)

    def _difference(self, mark: FileMark) -> str | None:
        """How the file differs from what an earlier run has read; None where it does not.

        Costs a pass over that. The blocks found on the way are kept, so reading on does not repeat
        the pass.
        """
        if self._size < mark.read_bytes:
            got = f"{self._size} bytes where {mark.read_bytes} had been read"
            return got + _now_at(self.path, mark)
        index = self._index
        while index.offset < mark.read_bytes and index.grow(mark.read_bytes, False):
            pass
        rest = mark.read_bytes - index.offset
        data = read_bytes(self.path, index.offset, rest + EDGE_BYTES, self._facts.packing)
        if digest(data[:rest], index.digest) != mark.digest:
            got = f"another content in its first {mark.read_bytes} bytes"
            return got + _now_at(self.path, mark)
        records = self._facts.layout.split(data, len(data) < rest + EDGE_BYTES)
        begun = records.starts < rest
        whole = (records.stops[begun] <= rest).all() and begun.sum() == mark.rows - index.rows
        return None if whole else "more of its last line, which was taken as whole"

    def _changed(self, status: disk.Status | None) -> GateError:
        """The error for a file that has changed; `status` is the present one, None if gone."""
        read, seen = self._index.offset, self._sure
        got = "no file" if status is None else f"{status.bytes} bytes where {seen.bytes} had been"
        if status is not None and status.bytes >= seen.bytes:
            got = f"another content in its first {read} bytes"
        if not self._followed:
            must = "a file must not change while it is read"
            return GateError(self.path, must, got, f"Start again. {PUT_BACK}")
        mark = FileMark(read, self._index.rows, self._index.digest, *seen[:3])
        got += f"; it was read up to byte {read} of {seen.bytes}{_now_at(self.path, mark)}"
        return GateError(self.path, "a followed file must only grow", got, _ROTATED)

    def piece_times(self, piece: Block, only_time: pa.Schema) -> tuple[Int64s, Bools]:
        data = read_block(self.path, piece, self._version, self._facts.packing)
        return self._facts.layout.parse(data, piece.rows, only_time).times(piece.rows)

    def piece_reader(
        self, path: str, schema: pa.Schema, start: int, stop: int, pieces: tuple[Block, ...]
    ) -> TextReader:
        layout, packing = self._facts.layout, self._facts.packing
        return TextReader(path, self._version, layout, schema, start, stop, pieces, packing)


class RowArrivals:
    """When rows of a growing file came: when the file first reached the length at their end."""

    def __init__(self, blocks: PieceIndex[Block], growth: Growth) -> None:
        self._blocks = blocks
        self._growth = growth

    def at(self, positions: Int64s) -> Floats:
        """By the estimated end of each row, as if all rows of a block had one length."""
        blocks = self._blocks.within(int(positions[0]), int(positions[-1]) + 1)
        firsts = np.array([b.first for b in blocks])
        which = np.searchsorted(firsts, positions, "right") - 1
        rows, offsets, lengths = (
            np.array(numbers)[which]
            for numbers in zip(*((b.rows, b.offset, b.length) for b in blocks), strict=True)
        )
        return self._growth.at(offsets + lengths * ((positions - firsts[which] + 1) / rows))

    def drop(self, position: int) -> None:
        for block in self._blocks.within(position - 1, position):
            self._growth.drop(block.offset)


class PackedSource(TextSource):
    """A compressed text file: it does not grow, and is read from its beginning on.

    Offsets, blocks and marks count unpacked bytes. Their number is known once the end was read.
    """

    def rows_within(self, extent: int, edge: int) -> int:
        """Refuses every file: a compressed file of another size is another file."""
        raise reused(self.path, "another file")

    def confirm(self) -> None:
        """Does nothing: a compressed file that can be read to its end is whole."""

    def _look(self) -> disk.Status:
        status = status_of(self.path)
        if status is None or (status[:3] != self._seen[:3] and not self._is_same()):
            raise self._changed(status)
        self._seen = status
        return status

    def _digest(self, length: int) -> int:
        return digest_unpacked(self.path, self._facts.packing, length)


def _now_at(path: str, mark: FileMark) -> str:
    """A phrase for messages: where the file that was at a path is now; "" if it is not found."""
    moved = moved_to(path, mark.inode, mark.read_bytes, mark.digest)
    if moved is None:
        return ""
    there = disk.current().status(moved).bytes
    return f"; what was read is {moved} now, of {there} bytes"
