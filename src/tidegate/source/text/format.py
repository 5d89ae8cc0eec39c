"""Probes text files: the first bytes tell the columns, and where the rows begin."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tidegate.batch import MAX_US, MIN_US
from tidegate.connector import Bools, Int64s, joined_times
from tidegate.source.format import FileFormat, FileProbe, Look, NewFile
from tidegate.source.mark import EDGE_BYTES, digest, readable
from tidegate.source.text.block import Block, longer, read_bytes
from tidegate.source.text.compression import NONE, packing_of
from tidegate.source.text.dialect import Dialect
from tidegate.source.text.encoding import beginning
from tidegate.source.text.layout import TextLayout
from tidegate.source.text.source import TextFacts
from tidegate.storage import disk


@dataclass(frozen=True)
class Head:
    """What the first bytes of a file tell: its layout, the offset of its rows, its columns.

    Types are declared, or inferred and normalised; null where no value was seen. `first` is the
    text of the first row, empty without one. `rows` is how many rows were seen, and `line` how many
    lines end before them.
    """

    layout: TextLayout
    origin: int
    schema: pa.Schema
    first: bytes
    rows: int
    line: int = 0


class TextFormat(FileFormat):
    """A format of records in text, whose columns and types show in the first of them."""

    text = True
    options: ClassVar[tuple[str, ...]] = (
        "encoding",
        "compression",
        "dateFormat",
        "timestampFormat",
    )

    @abstractmethod
    def read_head(
        self, data: bytes, dialect: Dialect, whole: bool, final: bool, look: Look
    ) -> Head | None:
        """Read the head of a file; None where these bytes are too few for it.

        `data` begins behind the byte order mark, and so does `Head.origin`. With `whole` it is the
        whole file. With `final` the file will not grow.
        """

    def edge(self, path: str, sample_bytes: int) -> tuple[int, int]:
        return 0, sample_bytes

    def probe(self, path: str, look: Look) -> FileProbe | None:
        """As in `FileFormat`; reads more and more of the file until there is a row."""
        packing = packing_of(path, look.reading.get("compression"))
        want, grows = look.sample_bytes, look.grows and packing == NONE
        while True:
            data = read_bytes(path, 0, want, packing)
            with readable(path):
                status = disk.seen(path)
            whole = len(data) < want
            codec, begin = beginning(data, look.reading.get("encoding"))
            dialect = Dialect.of(look.reading, codec, look.where)
            head = self.read_head(data[begin:], dialect, whole, whole and not grows, look)
            if head is not None:
                break
            if whole:
                return None
            want = longer(path, 0, want)
        origin = begin + head.origin
        edge = digest(_edge_of(path, data if packing == NONE else b"", status.bytes))
        size, modified_ns, inode, _ = status
        known = size, modified_ns, inode, edge, size, MIN_US, packing == NONE
        own = digest(data[:origin]), origin, head.layout, look.block_bytes, head.line, packing
        facts = TextFacts(*known, *own)
        return FileProbe(path, head.schema, facts, head.first, head.rows)

    def first_fault(self, probe: FileProbe, schema: pa.Schema, sample_bytes: int) -> str | None:
        asked = pa.schema([f for f in schema if f.name in probe.schema.names])
        facts = probe.facts
        assert isinstance(facts, TextFacts), "a text format has looked at it"
        data = read_bytes(probe.path, facts.origin, sample_bytes, facts.packing)
        records = facts.layout.split(data, len(data) < sample_bytes)
        if not len(records) or not asked.names:
            return None
        parsed = facts.layout.parse(data[: records.used], len(records), asked)
        block = Block(facts.origin, records.used, 0, len(records), line=facts.line)
        return parsed.faults[0].reject(block).reason if parsed.faults else None

    def lows_us(self, arrived: Sequence[NewFile], time: pa.Field) -> list[int]:
        """The event time of each file's first row, from its text; all are parsed at once.

        MIN_US where a row has no time, MAX_US where a file has no row.
        """
        lows = [MIN_US if file.first else MAX_US for file in arrived]
        by_layout: dict[TextLayout, list[int]] = {}
        for place, (_, facts, first) in enumerate(arrived):
            assert isinstance(facts, TextFacts), "a text format has looked at it"
            if first:
                by_layout.setdefault(facts.layout, []).append(place)
        for layout, places in by_layout.items():
            texts = [arrived[place].first for place in places]
            numbers, valid = _first_times(layout, texts, pa.schema([time]))
            for place, us, is_valid in zip(places, numbers.tolist(), valid.tolist(), strict=True):
                lows[place] = us if is_valid else MIN_US
        return lows


def _edge_of(path: str, data: bytes, size: int) -> bytes:
    """The first bytes of a file of a size, some of which have been read."""
    length = min(EDGE_BYTES, size)
    return data[:length] if len(data) >= length else read_bytes(path, 0, length)


def _first_times(
    layout: TextLayout, texts: Sequence[bytes], only_time: pa.Schema
) -> tuple[Int64s, Bools]:
    """The times of rows, parsed together; one by one where joining them would change records."""
    data = b"\n".join(texts)
    starts = np.cumsum([0, *(len(text) + 1 for text in texts[:-1])])
    if np.array_equal(layout.split(data, True).starts, starts):
        return layout.parse(data, len(texts), only_time).times(len(texts))
    if len(texts) == 1:
        return np.zeros(1, np.int64), np.zeros(1, np.bool_)
    return joined_times([_first_times(layout, [text], only_time) for text in texts])
