"""Where records begin and end in text, between bytes of a file and positions of rows.

Lines of JSON end at line feeds, records of CSV at line feeds, carriage returns, or both together; a
CSV record may hold them inside quotes. Empty records have no position. Text files are cut into
blocks of whole records, so that any range of positions is found without reading what lies before.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tidegate import disk
from tidegate.errors import GateError, RunError
from tidegate.memory_limit import LIMIT, size_text
from tidegate.source.mark import digest, unreadable
from tidegate.source.protocol import Int64s
from tidegate.source.unpack import NONE, read_unpacked

BLOCK_BYTES = 2 * 2**20
"""The size of blocks from some way into a file on. What a batch costs the driver at most: larger
ones are parsed no faster."""

FIRST_BLOCK_BYTES = 64 * 2**10
"""The size of the first block of a file; each is twice as large as the one before it. So a look at
the beginning of a file costs little, and where blocks lie depends on the file alone."""

RECORD_BYTES = 16 * 2**20
"""A quote that stays open for longer than this was never meant to be closed."""

MOST_RECORD_BYTES = 256 * 2**20
"""A record that is longer ends the run: it has to be in memory whole, several times over."""

LEAD_BYTES = 4096
"""How much before a block is read once more where the file may have been rewritten since."""

_RECORD_SHARE = 8
_LF, _CR = 10, 13
_END = rb"(?:\n|\r\n|\r(?!\Z))"  # what a return at the end of the bytes is, the next byte tells
_LINE_END = {False: re.compile(_END), True: re.compile(rb"\r\n?|\n")}


@dataclass(frozen=True)
class Records:
    """The non-empty complete records of some bytes: contents [starts[i], stops[i]).

    `used` is where the last complete record ends; what lies behind is the start of the next one.
    `lines` is how many lines end before that; the last record is `closed` where one of them does.
    """

    starts: Int64s
    stops: Int64s
    used: int
    lines: int = 0
    closed: bool = True

    def __len__(self) -> int:
        return len(self.starts)


Split = Callable[[bytes, bool], Records]
"""Find the records in bytes; the flag says that the bytes are all there is (end of the file)."""


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
    """Records of CSV, by counting quotes where they are regular and one by one where not.

    A quote opens only at the start of a field. One that is not closed within RECORD_BYTES or
    before the end of the file ends its record at the first line end, as a damaged line would.
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
    """Line ends, with the carriage returns that no line feed follows; one at the end may get it."""
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
    """Line ends outside quotes; None where quotes are not all at the edges of fields."""
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
    """Cut line ends off and leave empty records out; some line ends may be inside records."""
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
    """How many lines end before a place: at line feeds, or at returns where there are no others."""
    return data.count(b"\n", 0, stop) or data.count(b"\r", 0, stop)


@dataclass(frozen=True)
class Block:
    """Bytes [offset, offset + length) of a file: the records of positions [first, first + rows).

    `before` is the digest of all bytes of the file before it, `digest` that of all up to its end.
    `line` is how many lines of the file end before it.
    """

    offset: int
    length: int
    first: int
    rows: int
    before: int = 0
    digest: int = 0
    line: int = 0


class Rewritten(Exception):
    """The bytes before a block are not those that were read there."""


class BlockIndex:
    """The blocks of one text file, found in order and only as far as asked; owned by the driver.

    `digest` is that of all bytes before `offset`, also of those before the first record. Grows with
    the bytes of the file, by eight numbers per block.
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
        self.rows = 0
        self.blocks: list[Block] = []
        self.open_ended = False
        """Whether the last record has no line end, and counts because the file ended there."""
        self._firsts: list[int] = []
        self._split = split
        self._packing = packing
        self._most_bytes = block_bytes
        self._next_bytes = min(FIRST_BLOCK_BYTES, block_bytes)
        self._lead = b""

    def grow(self, size: int, final: bool, wary: bool = False) -> bool:
        """Find one more block in the first `size` bytes; False where no record is complete.

        Of a compressed file `size` may be more than there is. A wary look reads some of what was
        read before together with the new bytes, and raises Rewritten where it is something else
        now.
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

    def within(self, start: int, stop: int) -> tuple[Block, ...]:
        """The blocks that hold the positions [start, stop)."""
        if start >= stop:
            return ()
        low = bisect_right(self._firsts, start) - 1
        high = bisect_right(self._firsts, stop - 1)
        return tuple(self.blocks[low:high])

    def _read(self, length: int, wary: bool) -> bytes:
        lead = self._lead if wary else b""
        data = read_bytes(self.path, self.offset - len(lead), len(lead) + length, self._packing)
        if self._packing == NONE and len(data) < len(lead) + length:
            raise cut_short(self.path, self.offset - len(lead) + len(data))
        if lead and not data.startswith(lead):
            raise Rewritten
        return data[len(lead) :] if lead else data

    def _add(self, data: bytes, records: Records) -> None:
        used = records.used
        before, self.digest = self.digest, digest(memoryview(data)[:used], self.digest)
        if len(records):
            rows, line = len(records), self.line
            block = Block(self.offset, used, self.rows, rows, before, self.digest, line)
            self.blocks.append(block)
            self._firsts.append(self.rows)
            self.rows += len(records)
        self.offset += used
        self.line += records.lines
        self.open_ended = not records.closed
        self._lead = (self._lead + data[max(used - LEAD_BYTES, 0) : used])[-LEAD_BYTES:]


def longer(path: str, offset: int, length: int) -> int:
    """How many bytes to look at from a place on where so many have no complete record in them.

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
    """What to say of a file that got shorter while it was read."""
    return GateError(
        path,
        "a file must not change while it is read",
        f"only {size} bytes of it",
        "Put the file back as it was, then start again.",
    )


def read_bytes(path: str, offset: int, length: int, packing: str = NONE) -> bytes:
    """Bytes of a file, of what is in it where it is compressed; fewer where it is shorter."""
    if packing != NONE:
        return read_unpacked(path, packing, offset, length)
    try:
        return disk.read(path, offset, length)
    except OSError as error:
        raise unreadable(path, error) from error
