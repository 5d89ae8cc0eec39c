"""The base classes of value formats: `ValueFormat` finds the columns, `ValueLayout` decodes.

A value is the bytes of one message. None is a tombstone: a row in which every column is NULL. A
value that cannot be decoded is rejected alone; it never changes how its neighbours are read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from tidegate.source.subscription import Reading
from tidegate.source.text.layout import Fault, ParsedBlock

Values = Sequence[bytes | None]

PIECE_BYTES = 16 * 2**20
"""Values are decoded in pieces of about this size, so that large values fit in memory."""


@dataclass(frozen=True)
class ValueLook:
    """The arguments of `ValueFormat.open`, from the source.

    `sample` gives some of the first values, in the same order at every start; it is called only to
    infer columns. `subject` is the schema's name in a registry unless an option gives another: for
    a topic its name and `-value`.
    """

    where: str
    time: str | None
    reading: Reading
    sample: Callable[[], Values]
    subject: str


class ValueLayout(ABC):
    """How the values of one stream are decoded; picklable and hashable, for tasks on any host."""

    schema: pa.Schema
    """All columns, normalised: the declared ones, those of a schema, or inferred ones."""

    types_from: str
    """Where the types of the columns come from, in words."""

    def parse(self, values: Values, schema: pa.Schema | None = None) -> ParsedBlock:
        """The values as rows of the columns of `schema`, or of all columns.

        A value that does not fit one of these columns is rejected; the others are read.
        """
        asked = self.schema if schema is None else schema
        parts = [self._piece(values[a:b], asked, a) for a, b in _pieces(values)]
        if len(parts) == 1:
            return parts[0]
        if all(p.places is None for p in parts):
            return ParsedBlock(pa.concat_tables([p.table for p in parts]), None, ())
        found = [_places(p, a, b) for p, (a, b) in zip(parts, _pieces(values), strict=True)]
        faults = tuple(fault for p in parts for fault in p.faults)
        table = pa.concat_tables([p.table for p in parts])
        return ParsedBlock(table, np.concatenate(found), faults)

    @abstractmethod
    def decode(self, values: Sequence[bytes], schema: pa.Schema) -> tuple[pa.Table, dict[int, str]]:
        """Rows of the values that can be decoded, in order; by place, why the others cannot."""

    def raw(self, value: bytes) -> str:
        """A value as a text, for the rejected rows."""
        return value.decode("utf-8", "replace")

    def saved(self) -> Mapping[str, Any] | None:
        """JSON for the checkpoint, by which a restart decodes with the same schema.

        Default: None, because the columns that a query reads are enough.
        """
        return None

    def restored(self, saved: Mapping[str, Any] | None) -> ValueLayout:
        """This layout as it was when `saved` was kept."""
        return self

    def _piece(self, values: Values, schema: pa.Schema, first: int) -> ParsedBlock:
        there = [v for v in values if v is not None]
        table, reasons = self.decode(there, schema)
        if len(there) == len(values) and not reasons:
            return ParsedBlock(table, None, ())
        present = np.flatnonzero([v is not None for v in values])
        wrong = sorted(reasons)
        faults = tuple(
            Fault(first + int(present[i]), 0, reasons[i], self.raw(there[i])) for i in wrong
        )
        readable = np.delete(np.arange(len(there)), wrong)
        rows = np.full(len(values), -1)
        rows[present[readable]] = np.arange(len(readable))
        places = np.delete(np.arange(len(values)), present[wrong])
        if len(there) < len(values):
            at = rows[places]
            table = table.take(pa.array(at, mask=at < 0))
        return ParsedBlock(table, places + first if wrong else None, faults)


class ValueFormat(ABC):
    """A format of values: lists its options and finds the columns; without state."""

    name: ClassVar[str]
    title: ClassVar[str]
    """Its name in messages."""

    options: ClassVar[tuple[str, ...]]
    """The names in `subscription.OPTIONS` that it takes, besides `format`."""

    nested: ClassVar[bool] = True
    """Whether a value may be a struct or a list."""

    @abstractmethod
    def open(self, look: ValueLook) -> ValueLayout:
        """Find the columns. SourceError where a schema is absent, unreadable or does not fit."""


def _pieces(values: Values) -> Iterator[tuple[int, int]]:
    """Ranges of values of at most PIECE_BYTES, or of one value."""
    if sum(map(len, filter(None, values))) <= PIECE_BYTES:
        yield 0, len(values)
        return
    ends, start = np.cumsum([0 if v is None else len(v) for v in values]), 0
    while start < len(values):
        before = int(ends[start - 1]) if start else 0
        stop = int(np.searchsorted(ends, before + PIECE_BYTES, "right"))
        stop = max(stop, start + 1)
        yield start, stop
        start = stop


def _places(part: ParsedBlock, first: int, stop: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.arange(first, stop) if part.places is None else part.places
