"""Prints the newest rows of a result as aligned text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.cells import cell_len, set_cell_size
from rich.console import Group
from rich.table import Table
from rich.text import Text

from tidegate import era
from tidegate.sink.json import encoded

SHOWN_ROWS = 20
_WIDEST_CELL = 40
_NARROWEST_CELL = 8
_GAP = 2
_WINDOW = ("window_start", "window_end")


@dataclass(frozen=True)
class ShownColumn:
    """One column of an excerpt; a cell of None is NULL."""

    name: str
    numeric: bool
    cells: tuple[str | None, ...]

    @property
    def width(self) -> int:
        """In character cells of a terminal, where nothing has to be cut."""
        return max(cell_len(text or "NULL") for text in (self.name, *self.cells))


@dataclass(frozen=True)
class Excerpt:
    """At most `SHOWN_ROWS` rows as text, so that no batch is held in memory for them.

    Of windows it is the newest one's first rows, else the last rows. `rows` counts all rows of
    the newest window, or of the batch.
    """

    columns: tuple[ShownColumn, ...]
    window: tuple[str, ...]
    rows: int

    @staticmethod
    def of(rows: pa.Table) -> Excerpt:
        """The excerpt of a batch with at least one row; costs the rows shown, and a search."""
        first, last = max(0, rows.num_rows - SHOWN_ROWS), rows.num_rows
        total, window = last, [n for n in _WINDOW if n in rows.schema.names]
        if "window_end" in window:
            ends = rows.column("window_end").cast(pa.int64()).to_numpy()
            others = np.flatnonzero(ends != ends[-1])
            first = int(others[-1]) + 1 if len(others) else 0
            total = last - first
        shown = rows.slice(first, SHOWN_ROWS).combine_chunks()
        columns = _columns(shown)
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
        """What the rows are: the window they belong to, or just the newest."""
        if not self.window:
            return "newest rows"
        start, end = self.window[0], self.window[-1]
        if len(self.window) == 1:
            return f"newest window, up to {end}"
        day, _, time = end.partition(" ")
        return f"newest window {start} to {time if start.startswith(f'{day} ') else end}"

    def picture(self, width: int, limit_rows: int = SHOWN_ROWS) -> Group:
        """The rows in `width` character cells, then a note of what had no room."""
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


def first_rows_text(rows: pa.Table) -> tuple[list[str], list[tuple[str | None, ...]]]:
    """All rows of a small table as text, by row: the columns' names, then the cells."""
    columns = _columns(rows)
    return [c.name for c in columns], list(zip(*(c.cells for c in columns)))


def first_rows_picture(rows: pa.Table, width: int) -> Group:
    """All rows of a small table in `width` character cells, with a note of what had no room."""
    return Excerpt(_columns(rows), (), rows.num_rows).picture(width, rows.num_rows)


def _columns(rows: pa.Table) -> tuple[ShownColumn, ...]:
    return tuple(
        _column(field.name, rows.column(i).combine_chunks()) for i, field in enumerate(rows.schema)
    )


def _missing(rows: int, columns: int) -> str:
    parts = [(rows, "row"), (columns, "column")]
    return ", ".join(f"+{n:,} more {word}{'s' if n > 1 else ''}" for n, word in parts if n)


def _fitting(columns: Sequence[ShownColumn], width: int) -> tuple[list[ShownColumn], list[int]]:
    """The columns from the left that fit, with their widths; always one, however narrow."""
    chosen: list[ShownColumn] = []
    widths: list[int] = []
    left = width
    for column in columns:
        wide = min(column.width, _WIDEST_CELL)
        if wide > left:
            if chosen and (column.numeric or left < _NARROWEST_CELL):
                break  # a number that is cut would be another number
            wide = max(left, 1)
        chosen.append(column)
        widths.append(wide)
        left -= wide + _GAP
    return chosen, widths


def _text(cell: str | None, width: int) -> Text:
    return Text("NULL", style="dim italic") if cell is None else Text(_cut(cell, width))


def _cut(text: str, width: int) -> str:
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…" if width > 1 else "…"


def _column(name: str, values: pa.Array) -> ShownColumn:
    type_ = values.type
    numeric = pa.types.is_integer(type_) or pa.types.is_decimal(type_)
    if pa.types.is_floating(type_):
        return ShownColumn(_printable(name), True, _floats(values.to_pylist()))
    if pa.types.is_timestamp(type_):
        return ShownColumn(_printable(name), False, _times(values))
    if pa.types.is_nested(type_) or pa.types.is_binary(type_):
        values = (
            pc.utf8_trim(encoded(values), '"') if pa.types.is_binary(type_) else encoded(values)
        )
    if pa.types.is_date(type_):
        values = pc.utf8_trim(encoded(values), '"')
    texts = values.cast(pa.string()).to_pylist()
    return ShownColumn(
        _printable(name), numeric, tuple(None if t is None else _printable(t) for t in texts)
    )


def _times(values: pa.Array) -> tuple[str | None, ...]:
    """Event times in UTC, with as many digits of a second as any of them needs."""
    written = era.texts(_to_the_second, values.cast(pa.timestamp("us"))).to_pylist()
    kept = max((len(t.rstrip("0").rstrip(".")) for t in written if t is not None), default=0)
    return tuple(None if t is None else t[: max(kept, 19)] for t in written)


def _to_the_second(times: pa.Array) -> pa.Array:
    return pc.strftime(times, "%Y-%m-%d %H:%M:%S")


def _floats(values: Sequence[float | None]) -> tuple[str | None, ...]:
    """One number of decimals for a column: about four digits of its largest value."""
    finite = [abs(v) for v in values if v is not None and np.isfinite(v)]
    largest = max(finite, default=0.0)
    smallest = min((v for v in finite if v), default=1.0)
    if largest >= 1e15 or smallest < 1e-4:
        form = ".4g"
    elif all(v == int(v) for v in finite):
        form = ",.1f"
    else:
        form = f",.{max(1, 4 - len(str(int(largest))))}f"
    return tuple(None if v is None else f"{v:{form}}" for v in values)


def _printable(text: str) -> str:
    """Text without anything that moves the cursor: such characters are written as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
