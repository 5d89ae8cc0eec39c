"""Small tables in the shape of segments."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

SCHEMA = pa.schema({"bucket": pa.int32(), "pane": pa.int64(), "v": pa.int64()})


def rows(triples: Iterable[tuple[int, int, int]]) -> pa.Table:
    """A table of (bucket, pane, value) rows, sorted as segments are, equal ones in their order."""
    ordered = sorted(triples, key=lambda triple: triple[:2])
    columns = zip(*ordered) if ordered else ((), (), ())
    return pa.table([list(column) for column in columns], schema=SCHEMA)


def triples(table: pa.Table) -> list[tuple[int, int, int]]:
    """The rows of such a table."""
    return [(row["bucket"], row["pane"], row["v"]) for row in table.to_pylist()]
