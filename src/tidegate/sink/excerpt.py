"""Prints the newest rows of a result as aligned text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from rich.cells import cell_len, set_cell_size
from rich.console import Group
from rich.table import Table
from rich.text import Text

from tidegate.sink.value_format import ShownColumn, shown_columns

SHOWN_ROWS = 20
_WIDEST_CELL = 40
_NARROWEST_CELL = 8
_GAP = 2
_WINDOW = ("window_start", "window_end")


@dataclass(frozen=True)
class Excerpt:
    """At most `SHOWN_ROWS` rows as text, so that the batch itself need not stay in memory.

    Results of windows show the first rows of the newest window, others the last rows. `rows` counts
    all rows of that window, or of the batch.
    """

    columns: tuple[ShownColumn, ...]
    window: tuple[str, ...]
    rows: int

    @staticmethod
    def of(rows: pa.Table) -> Excerpt:
        """The excerpt of a batch with at least one row; costs O(rows shown) and one comparison."""
        first, last = max(0, rows.num_rows - SHOWN_ROWS), rows.num_rows
        total, window = last, [n for n in _WINDOW if n in rows.schema.names]
        if "window_end" in window:
            ends = rows.column("window_end").cast(pa.int64()).to_numpy()
            others = np.flatnonzero(ends != ends[-1])
            first = int(others[-1]) + 1 if len(others) else 0
            total = last - first
        shown = rows.slice(first, SHOWN_ROWS).combine_chunks()
        columns = shown_columns(shown)
        return Excerpt(
            tuple(c for c in columns if c.name not in window) or columns,
            tuple(c.cells[0] or "NULL" for c in columns if c.name in window),
            total,
        )

    @property
    def shown(self) -> int:
        return len(self.columns[0].cells) if self.columns else 0

    @property
    def title(self) -> str:
        """The window of the rows, or "newest rows" where there are no windows."""
        if not self.window:
            return "newest rows"
        start, end = self.window[0], self.window[-1]
        if len(self.window) == 1:
            return f"newest window, up to {end}"
        day, _, time = end.partition(" ")
        return f"newest window {start} to {time if start.startswith(f'{day} ') else end}"

    def picture(self, width: int, limit_rows: int = SHOWN_ROWS) -> Group:
        """The rows in `width` character cells, then a note of what did not fit."""
        chosen, widths = _fitting(self.columns, width)
        count = min(limit_rows, self.shown)
        # The first rows of a window, the last rows of a sequence without windows.
        part = slice(0, count) if self.window else slice(self.shown - count, self.shown)
        table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="dim")
        for column, wide in zip(chosen, widths):
            header = Text(_cut(column.name, wide))
            table.add_column(header, justify="right" if column.numeric else "left", no_wrap=True)
        for cells in zip(*(c.cells[part] for c in chosen)):
            table.add_row(*(_text(cell, wide) for cell, wide in zip(cells, widths)))
        missing = _missing(self.rows - count, len(self.columns) - len(chosen))
        note = Text(missing, style="dim", no_wrap=True, overflow="ellipsis")
        return Group(table, note) if missing else Group(table)


def first_rows_picture(rows: pa.Table, width: int) -> Group:
    """All rows of a small table in `width` character cells, with a note of what did not fit."""
    return Excerpt(shown_columns(rows), (), rows.num_rows).picture(width, rows.num_rows)


def _missing(rows: int, columns: int) -> str:
    parts = [(rows, "row"), (columns, "column")]
    return ", ".join(f"+{n:,} more {word}{'s' if n > 1 else ''}" for n, word in parts if n)


def _fitting(columns: Sequence[ShownColumn], width: int) -> tuple[list[ShownColumn], list[int]]:
    """The columns that fit, from the left, with their widths; at least one, however narrow."""
    chosen: list[ShownColumn] = []
    widths: list[int] = []
    left = width
    for column in columns:
        wide = min(_width(column), _WIDEST_CELL)
        if wide > left:
            if chosen and (column.numeric or left < _NARROWEST_CELL):
                break  # a truncated number would read as another number
            wide = max(left, 1)
        chosen.append(column)
        widths.append(wide)
        left -= wide + _GAP
    return chosen, widths


def _width(column: ShownColumn) -> int:
    """The width of a column in character cells, if nothing is cut."""
    return max(cell_len(text or "NULL") for text in (column.name, *column.cells))


def _text(cell: str | None, width: int) -> Text:
    return Text("NULL", style="dim italic") if cell is None else Text(_cut(cell, width))


def _cut(text: str, width: int) -> str:
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…" if width > 1 else "…"
