"""Results on the terminal: a live table of the newest window, or plain rows when piped."""

from __future__ import annotations

import sys
from typing import TextIO

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tidegate.batch import BatchId
from tidegate.sink.csv import csv_text
from tidegate.sink.protocol import Output
from tidegate.state.store import Store

_SHOWN_ROWS = 20


class ConsoleSink:
    """Prints committed batches; on a terminal the newest rows in place, else all rows as CSV."""

    def __init__(self, stream: TextIO | None = None, title: str = "") -> None:
        self._stream = stream or sys.stdout
        self._title = title
        self._staged: dict[int, Output] = {}
        self._live: Live | None = None
        self._header = True

    def open(self, schema: pa.Schema, store: Store, fresh: bool) -> None:
        if self._stream.isatty():
            self._live = Live(console=Console(file=self._stream), auto_refresh=False)
            self._live.start()

    def stage(self, batch: BatchId, output: Output) -> None:
        self._staged = {batch: output}

    def publish(self, batch: BatchId) -> None:
        output = self._staged.pop(batch, None)
        if output is None or not output.rows.num_rows:
            return
        if self._live is None:
            self._print(output.rows)
        else:
            self._live.update(self._picture(batch, output.rows), refresh=True)

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _print(self, rows: pa.Table) -> None:
        self._stream.write(csv_text(rows, self._header))
        self._stream.flush()
        self._header = False

    def _picture(self, batch: int, rows: pa.Table) -> Table:
        shown = rows.slice(max(0, rows.num_rows - _SHOWN_ROWS))
        if "window_end" in rows.schema.names:
            ends = rows.column("window_end").cast(pa.int64()).to_numpy()
            shown = rows.slice(int(np.searchsorted(ends, ends[-1])), _SHOWN_ROWS)
        # As Text, because in a plain string rich would take [brackets] for markup.
        picture = Table(title=Text(f"{self._title} batch {batch}".strip()))
        for name in shown.schema.names:
            picture.add_column(Text(name))
        for row in shown.to_pylist():
            picture.add_row(*(Text(_cell(v)) for v in row.values()))
        return picture


def _cell(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.1f}"
    if hasattr(value, "strftime"):
        return str(value)[:19]
    return str(value)
