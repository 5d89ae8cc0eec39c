"""Parquet files of a table, of which older ones may be without columns that were added since."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate import disk
from tidegate.source.parquet import ParquetFormat


class TableParquetFormat(ParquetFormat):
    """Parquet whose columns are those of a table: NULL where a file does not have them."""

    def read_group(
        self, path: str, number: int, choose: Callable[[Sequence[str]], list[str]]
    ) -> pa.Table:
        with disk.at(path).open_arrow(path) as raw:
            ahead = disk.is_remote(path)
            file = pq.ParquetFile(raw, coerce_int96_timestamp_unit="us", pre_buffer=ahead)
            there = file.schema_arrow.names
            names = choose(there)
            own = [name for name in names if name in there]
            table = file.read_row_group(number, columns=own, use_threads=False)
            rows = file.metadata.row_group(number).num_rows
        found = {name: table.column(name) for name in own}
        return pa.table({n: found.get(n, pa.nulls(rows)) for n in names})


FORMAT = TableParquetFormat()
