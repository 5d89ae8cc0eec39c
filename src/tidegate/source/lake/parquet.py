"""Reads Parquet files of a table; older files may lack columns that were added since."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from tidegate.source.parquet import ParquetFormat


class TableParquetFormat(ParquetFormat):
    """Parquet with the columns of a table: those that a file does not have are NULL."""

    def read_group(
        self, path: str, number: int, choose: Callable[[Sequence[str]], list[str]]
    ) -> pa.Table:
        asked: list[str] = []

        def choose_own(there: Sequence[str]) -> list[str]:
            asked.extend(choose(there))
            return [name for name in asked if name in there]

        table = super().read_group(path, number, choose_own)
        for name in asked:
            if name not in table.column_names:
                table = table.append_column(name, pa.nulls(table.num_rows))
        return table


FORMAT = TableParquetFormat()
