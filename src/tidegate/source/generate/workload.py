"""Generates rows of one kind under given parameters, for `generator:NAME?...`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from tidegate.source.generate.flow import Flow
from tidegate.source.generate.span import Span

_BLOCK_ROWS = 2**17
"""Rows computed together: few enough for the caches and for 32-bit offsets of texts."""


@dataclass(frozen=True)
class SpanGenerator:
    """A generator: `span` says what the columns are, `flow` how many rows there are and when."""

    span: type[Span]
    flow: Flow

    @property
    def schema(self) -> pa.Schema:
        return self.span.SCHEMA

    @property
    def time(self) -> str:
        """The column that never decreases where there is no disorder."""
        return self.span.TIME_COLUMN

    @property
    def rows(self) -> int:
        return self.flow.rows

    def read(self, columns: Sequence[str], start: int, stop: int) -> pa.Table:
        """The named columns of the positions [start, stop), in chunks."""
        schema = pa.schema([self.schema.field(name) for name in columns])
        blocks = []
        for first in range(start, stop, _BLOCK_ROWS):
            span = self.span(self.flow, first, min(first + _BLOCK_ROWS, stop))
            blocks.append(pa.table([getattr(span, name)() for name in columns], schema=schema))
        return pa.concat_tables(blocks) if blocks else schema.empty_table()
