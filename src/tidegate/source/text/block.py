"""Finds where records begin and end in text, and cuts files into blocks of whole records.

Lines of JSON end at line feeds, records of CSV at line feeds, carriage returns, or both together; a
CSV record may hold them inside quotes. Empty records have no position. Text files are cut into
blocks of whole records, so that any range of positions is found without reading what lies before.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tidegate.connector import Int64s
from tidegate.errors import GateError, RunError
from tidegate.memory_limit import LIMIT, size_text
from tidegate.source.mark import digest, unreadable
from tidegate.source.piece import PieceIndex
from tidegate.source.text.compression import NONE, read_unpacked
from tidegate.storage import disk

BLOCK_BYTES = 2 * 2**20
"""The largest size of a block, which blocks soon reach. Larger ones are parsed no faster, and each
costs the driver a pass when the gate needs its times."""

FIRST_BLOCK_BYTES = 64 * 2**10
"""The size of the first block of a file; each further one is twice as large, up to BLOCK_BYTES. So
a look at the beginning of a file costs little, and the file alone decides where blocks lie."""

RECORD_BYTES = 16 * 2**20
"""A quote that stays open for longer than this was never meant to be closed."""

MOST_RECORD_BYTES = 256 * 2**20
"""A longer record ends the run: it would have to be in memory whole, several times over."""

LEAD_BYTES = 4096
"""How many bytes before a block are read again, to notice a file that was rewritten since."""

_RECORD_SHARE = 8
_LF, _CR = 10, 13
_END = rb"(?:\n|\r\n|\r(?!\Z))"  # what a return at the end of the bytes is, the next byte tells
_LINE_END = {False: re.compile(_END), True: re.compile(rb"\r\n?|\n")}


@dataclass(frozen=True)
class Records:
    """The non-empty complete records of some bytes: contents [starts[i], stops[i]), ascending.

    `used` is where the last complete record ends; an incomplete one begins there. `lines` is how
    many lines end before `used`. `closed` says whether a line end closes the last record.
    """

    starts: Int64s
    stops: Int64s
    used: int
    lines: int = 0
    closed: bool = True

    def __len__(self) -> int:
        return len(self.starts)

    def of(self, data: bytes) -> list[bytes]:
        """The contents of the records, in the bytes they were found in."""
        return [data[a:b] for a, b in zip(self.starts, self.stops, strict=True)]


Split = Callable[[bytes, bool], Records]
"""Find the records in bytes; the flag says that the bytes reach to the end of the file."""


def split_lines(data: bytes, final: bool) -> Records:
    """Records that are lines, without the white space around them."""
    text = np.frombuffer(data, np.uint8)
    line_ends = _line_ends(text)
    records = _contents(data, text, _with_tail(line_ends, data, final), line_ends)
    starts, stops = records.starts, records.stops
    padded = np.flatnonzero((text[starts] <= 32) | (text[stops - 1] <= 32))
    for i in padded:
        line = data[starts[i] : stops[i]]
        starts[i] += len(line) - len(line.lstrip())
        stops[i] = max(starts[i], stops[i] - (len(line) - len(line.rstrip())))
    kept = stops > starts
    if kept.all():
        return records
    return replace(records, starts=starts[kept], stops=stops[kept])


def split_csv(data: bytes, final: bool, sep: str = ",", quote: str = '"') -> Records:
    """Records of CSV: by counting quotes where all are regular, else one record at a time.

    A quote opens only at the start of a field. Where a quote is not closed within RECORD_BYTES or
    before the end of the file, its record ends at the first line end, as a damaged line.
    """
    text = np.frombuffer(data, np.uint8)
    line_ends = ends = _line_ends(text)
    if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
        line_ends = ends = _with_bare_returns(ends, text, final)
    if quote and quote.encode() in data:
        regular = _quoted_ends(text, ends, final, ord(sep), ord(quote))
        ends = regular if regular is not None else _scanned_ends(data, final, sep, quote)
    return _contents(data, text, _with_tail(ends, data, final), line_ends)


def _line_ends(text: NDArray[np.uint8]) -> Int64s:
    return np.flatnonzero(text == _LF).astype(np.int64) + 1


def _with_bare_returns(line_feeds: Int64s, text: NDArray[np.uint8], final: bool) -> Int64s:
    """Line ends, with the carriage returns that no line feed follows.

    A carriage return at the end of the bytes counts only where they are `final`: the next byte may
    be its line feed.
    """
    ends = np.flatnonzero(text == _CR).astype(np.int64) + 1
    inside = ends[ends < len(text)]
    bare = inside[text[inside] != _LF]
    if final and text[-1] == _CR:
        bare = np.append(bare, len(text))
    return np.union1d(line_feeds, bare)


def _with_tail(ends: Int64s, data: bytes, final: bool) -> Int64s:
    last = int(ends[-1]) if len(ends) else 0
    return np.append(ends, len(data)) if final and last < len(data) else ends


def _quoted_ends(
    text: NDArray[np.uint8], line_ends: Int64s, final: bool, sep: int, quote: int
) -> Int64s | None:
    """Line ends outside quotes; None where not all quotes are at the edges of fields."""
    # When every other quote opens a field, a line end is inside quotes exactly if an odd number of
    # quotes lies before it: one binary search for all line ends, and no look at single cells.
    quotes = np.flatnonzero(text == quote).astype(np.int64)
    opening, closing = quotes[0::2], quotes[1::2]
    before = text[opening - 1]  # of an opening quote at 0 the last byte: not looked at below
    at_edge = (before == sep) | (before == _LF) | (before == _CR) | (opening == 0)
    at_edge[1:] |= closing[: len(opening) - 1] == opening[1:] - 1  # a doubled quote
    if not at_edge.all():
        return None
    ends = line_ends[np.searchsorted(quotes, line_ends) % 2 == 0]
    longest = int(np.diff(ends, prepend=0).max(initial=0))
    tail = len(text) - (int(ends[-1]) if len(ends) else 0)
    left_open = len(quotes) % 2 == 1 and (final or tail > RECORD_BYTES)
    return None if left_open or longest > RECORD_BYTES else ends


@lru_cache
def _record_pattern(final: bool, sep: str, quote: str) -> re.Pattern[bytes]:
    s, q = (re.escape(mark.encode()) for mark in (sep, quote))
    plain = rb"[^%b\r\n]*+" % s
    field = rb"(?:%b(?:[^%b]++|%b%b)*+%b%b|[^%b%b\r\n]%b|)" % (q, q, q, q, q, plain, q, s, plain)
    record = field + rb"(?:%b%b)*+" % (s, field)
    return re.compile(record + (rb"(?:\r\n?|\n|\Z)" if final else _END))


def _scanned_ends(data: bytes, final: bool, sep: str, quote: str) -> Int64s:
    pattern = _record_pattern(final, sep, quote)
    ends, at = [], 0
    while at < len(data):
        found = pattern.match(data, at)
        if found is None and not final and len(data) - at <= RECORD_BYTES:
            break
        if found is not None and found.end() - at <= RECORD_BYTES:
            at = found.end()
        else:
            line_end = _LINE_END[final].search(data, at)
            if line_end is None:
                break
            at = line_end.end()
        ends.append(at)
    return np.array(ends, np.int64)


def _contents(data: bytes, text: NDArray[np.uint8], ends: Int64s, line_ends: Int64s) -> Records:
    """The records that end at `ends`, without their line ends and without empty ones.

    `line_ends` also has the line ends inside quotes, which count as lines.
    """
    if not len(ends):
        return Records(ends, ends, 0)
    starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
    stops = ends - (text[ends - 1] == _LF)
    if b"\r" in data:
        while (returns := (stops > starts) & (text[stops - 1] == _CR)).any():
            stops = stops - returns
    kept = stops > starts
    used = int(ends[-1])
    lines, closed = int(np.searchsorted(line_ends, used, "right")), data[used - 1] in (_LF, _CR)
    return Records(starts[kept], stops[kept], used, lines, closed)


def lines_in(data: bytes, stop: int) -> int:
    """How many lines end before `stop`: at line feeds, or at returns if there are no line feeds."""
    return data.count(b"\n", 0, stop) or data.count(b"\r", 0, stop)


@dataclass(frozen=True)
class Block:
    """Bytes [offset, offset + length) of a file: the records of positions [first, first + rows).

    `before` is the digest of all bytes of the file before the block, `digest` of all up to its end.
    `line` is how many lines of the file end before the block.
    """

    offset: int
    length: int
    first: int
    rows: int
    before: int = 0
    digest: int = 0
    line: int = 0


class FileRewritten(Exception):
    """The bytes before a block are not those that were read there."""


class BlockIndex:
    """The blocks of one text file, found in order and only as far as asked; owned by the driver.

    `digest` covers all bytes before `offset`, also those before the first record. Grows with the
    bytes of the file that were read, by eight numbers per block.
    """

    def __init__(
        self,
        path: str,
        origin: int,
        split: Split,
        block_bytes: int,
        before: int = 0,
        line: int = 0,
        packing: str = NONE,
    ) -> None:
        self.path = path
        self.offset = origin
        self.digest = before
        self.line = line
        self.blocks: PieceIndex[Block] = PieceIndex()
        self.open_ended = False
        """Whether the last record has no line end and counts only because the file ended."""
        self._split = split
        self._packing = packing
        self._most_bytes = block_bytes
        self._next_bytes = min(FIRST_BLOCK_BYTES, block_bytes)
        self._lead = b""

    @property
    def rows(self) -> int:
        return self.blocks.rows

    def grow(self, size: int, final: bool, wary: bool = False) -> bool:
        """Find one more block in the first `size` bytes; False where no record is complete.

        For a compressed file `size` may be more than there is. With `wary`, the LEAD_BYTES before
        the new bytes are read again, and FileRewritten is raised where they have changed.
        """
        want = self._next_bytes
        while self.offset < size:
            length = min(want, size - self.offset)
            data = self._read(length, wary)
            at_end = self.offset + len(data) >= size or len(data) < length
            records = self._split(data, final and at_end)
            if records.used:
                self._add(data, records)
                self._next_bytes = min(2 * self._next_bytes, self._most_bytes)
                return True
            if at_end:
                return False
            want = longer(self.path, self.offset, want)
        return False

    def _read(self, length: int, wary: bool) -> bytes:
        lead = self._lead if wary else b""
        data = read_bytes(self.path, self.offset - len(lead), len(lead) + length, self._packing)
        if self._packing == NONE and len(data) < len(lead) + length:
            raise cut_short(self.path, self.offset - len(lead) + len(data))
        if lead and not data.startswith(lead):
            raise FileRewritten
        return data[len(lead) :] if lead else data

    def _add(self, data: bytes, records: Records) -> None:
        used = records.used
        before, self.digest = self.digest, digest(memoryview(data)[:used], self.digest)
        if len(records):
            place = self.offset, used, self.rows, len(records)
            self.blocks.add(Block(*place, before, self.digest, self.line))
        self.offset += used
        self.line += records.lines
        self.open_ended = not records.closed
        self._lead = (self._lead + data[max(used - LEAD_BYTES, 0) : used])[-LEAD_BYTES:]


def longer(path: str, offset: int, length: int) -> int:
    """The next length to try at a place where `length` bytes hold no complete record.

    A record that is too long for memory is a RunError.
    """
    most = min(MOST_RECORD_BYTES, LIMIT.bytes // _RECORD_SHARE)
    if length >= most:
        raise RunError(
            path,
            f"a line must have at most {size_text(most)}, an eighth of --memory-limit and never "
            f"more than {size_text(MOST_RECORD_BYTES)}",
            f"a longer one from byte {offset:,} on",
            "See whether it is text with line ends; divide the line, or raise --memory-limit.",
        )
    return min(2 * length, most)


def cut_short(path: str, size: int) -> GateError:
    """The error for a file that got shorter while it was read."""
    return GateError(
        path,
        "a file must not change while it is read",
        f"only {size} bytes of it",
        "Put the file back as it was, then start again.",
    )


def read_bytes(path: str, offset: int, length: int, packing: str = NONE) -> bytes:
    """Bytes of a file, unpacked where it is compressed; fewer where the file ends before."""
    if packing != NONE:
        return read_unpacked(path, packing, offset, length)
    try:
        return disk.read(path, offset, length)
    except OSError as error:
        raise unreadable(path, error) from error
