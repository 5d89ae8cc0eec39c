"""The first bytes of text files, between what is listed in a folder and a file that is opened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate import disk
from tidegate.batch import MAX_US, MIN_US
from tidegate.source.block import Block, longer, read_bytes
from tidegate.source.mark import EDGE_BYTES, digest, readable
from tidegate.source.protocol import Bools, Int64s
from tidegate.source.reading import Reading
from tidegate.source.text import Head, ReadHead, TextFormat, spread
from tidegate.source.text_file import TextFacts
from tidegate.source.unpack import NONE


@dataclass(frozen=True)
class TextProbe:
    """A text file whose first bytes were looked at."""

    path: str
    status: disk.Status
    digest: int
    before: int
    head: Head
    block_bytes: int
    packing: str

    @property
    def schema(self) -> pa.Schema:
        return self.head.schema

    def first_fault(self, schema: pa.Schema, sample_bytes: int) -> str | None:
        """Where the first row is that is not of a schema, and why; None where it is not found."""
        asked = pa.schema([f for f in schema if f.name in self.schema.names])
        data = read_bytes(self.path, self.head.origin, sample_bytes, self.packing)
        records = self.head.format.split(data, len(data) < sample_bytes)
        if not len(records) or not asked.names:
            return None
        parsed = self.head.format.parse(data[: records.used], len(records), asked)
        block = Block(self.head.origin, records.used, 0, len(records), line=self.head.line)
        return parsed.faults[0].reject(block).reason if parsed.faults else None

    def facts(self) -> TextFacts:
        return TextFacts(
            *self.status[:3],
            self.digest,
            self.before,
            self.head.origin,
            self.head.format,
            self.block_bytes,
            self.head.line,
            self.packing,
        )


def probe_text(
    path: str,
    read_head: ReadHead,
    time: str | None,
    grows: bool,
    where: str,
    block_bytes: int,
    sample_bytes: int,
    reading: Reading,
    packing: str,
) -> TextProbe | None:
    """Look at the first bytes of a file, as many as it takes; None where it has no rows to show."""
    want = sample_bytes
    while True:
        data = read_bytes(path, 0, want, packing)
        with readable(path):
            status = disk.seen(path)
        whole = len(data) < want
        head = read_head(data, whole, whole and not grows, time, where, reading)
        if head is not None:
            edge = digest(edge_of(path, data if packing == NONE else b"", status.bytes))
            before = digest(data[: head.origin])
            return TextProbe(path, status, edge, before, head, block_bytes, packing)
        if whole:
            return None
        want = longer(path, 0, want)


def text_edge(path: str, sample_bytes: int) -> tuple[int, int]:
    """Which bytes of a file are looked at first: an offset and a length."""
    return 0, sample_bytes


def edge_of(path: str, data: bytes, size: int) -> bytes:
    """The first bytes of a file of a size, some of which have been read."""
    length = min(EDGE_BYTES, size)
    return data[:length] if len(data) >= length else read_bytes(path, 0, length)


def first_times(firsts: Sequence[tuple[TextFormat, bytes]], time: pa.Field) -> list[int]:
    """The event times of files' first rows, by the rows' texts, all parsed at once.

    MIN_US where a row has no time, MAX_US where a file has no row.
    """
    lows = [MIN_US if text else MAX_US for _, text in firsts]
    by_format: dict[TextFormat, list[int]] = {}
    for place, (format_, text) in enumerate(firsts):
        if text:
            by_format.setdefault(format_, []).append(place)
    for format_, places in by_format.items():
        numbers, valid = _parsed(format_, [firsts[p][1] for p in places], pa.schema([time]))
        for place, number, is_valid in zip(places, numbers.tolist(), valid.tolist(), strict=True):
            lows[place] = number if is_valid else MIN_US
    return lows


def _parsed(
    format_: TextFormat, texts: Sequence[bytes], only_time: pa.Schema
) -> tuple[Int64s, Bools]:
    """The times of rows; one by one where, side by side, they would not be the same records."""
    data = b"\n".join(texts)
    starts = np.cumsum([0, *(len(text) + 1 for text in texts[:-1])])
    if np.array_equal(format_.split(data, True).starts, starts):
        return spread(format_.parse(data, len(texts), only_time), len(texts))
    if len(texts) == 1:
        return np.zeros(1, np.int64), np.zeros(1, np.bool_)
    parts = [_parsed(format_, [text], only_time) for text in texts]
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
