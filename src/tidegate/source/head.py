"""The first bytes of text files, between what is listed in a folder and a file that is opened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate import disk
from tidegate.batch import MAX_US, MIN_US
from tidegate.source.block import read_bytes
from tidegate.source.mark import EDGE_BYTES, digest, readable
from tidegate.source.protocol import Bools, Int64s
from tidegate.source.reading import Reading
from tidegate.source.text import Head, ReadHead, TextFormat, spread
from tidegate.source.text_file import TextFacts


@dataclass(frozen=True)
class TextProbe:
    """A text file whose first bytes were looked at."""

    path: str
    status: disk.Status
    digest: int
    before: int
    head: Head
    block_bytes: int

    @property
    def schema(self) -> pa.Schema:
        return self.head.schema

    def facts(self) -> TextFacts:
        return TextFacts(
            *self.status[:3],
            self.digest,
            self.before,
            self.head.origin,
            self.head.format,
            self.block_bytes,
            self.head.line,
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
) -> TextProbe | None:
    """Look at the first bytes of a file, as many as it takes; None where it has no rows to show."""
    want = sample_bytes
    while True:
        data = read_bytes(path, 0, want)
        with readable(path):
            status = disk.seen(path)
        whole = len(data) < want
        head = read_head(data, whole, whole and not grows, time, where, reading)
        if head is not None:
            edge = digest(edge_of(path, data, status.bytes))
            before = digest(data[: head.origin])
            return TextProbe(path, status, edge, before, head, block_bytes)
        if whole:
            return None
        want *= 2


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
