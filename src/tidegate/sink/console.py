"""Results on the terminal: a live table of the newest window, or plain rows when piped."""

from __future__ import annotations

import sys
from typing import TextIO

import pyarrow as pa
import pyarrow.csv
from rich.console import Console
from rich.live import Live
from rich.table import Table

from tidegate.batch import BatchId
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
        sink = pa.BufferOutputStream()
        options = pyarrow.csv.WriteOptions(include_header=self._header)
        pyarrow.csv.write_csv(rows, sink, options)
        self._stream.write(sink.getvalue().to_pybytes().decode())
        self._stream.flush()
        self._header = False

    def _picture(self, batch: int, rows: pa.Table) -> Table:
        shown = rows.slice(max(0, rows.num_rows - _SHOWN_ROWS))
        if "window_end" in rows.schema.names:
            newest = rows.column("window_end")[-1]
            starts = rows.column("window_end").combine_chunks()
            first = next(i for i in range(len(starts)) if starts[i] == newest)
            shown = rows.slice(first, _SHOWN_ROWS)
        picture = Table(title=f"{self._title} batch {batch}".strip())
        for name in shown.schema.names:
            picture.add_column(name)
        for row in shown.to_pylist():
            picture.add_row(*(_cell(v) for v in row.values()))
        return picture


def _cell(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.1f}"
    if hasattr(value, "strftime"):
        return str(value)[:19]
    return str(value)
