"""Results on the terminal: a live table of the newest window, or plain rows when piped."""

from __future__ import annotations

import sys
from typing import TextIO

import pyarrow as pa
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from tidegate.batch import BatchId
from tidegate.sink.csv import csv_text
from tidegate.sink.excerpt import Excerpt
from tidegate.sink.protocol import Output
from tidegate.sink.terminal import drawable
from tidegate.state.store import Store


class ConsoleSink:
    """Prints committed batches; on a terminal the newest rows in place, else all rows as CSV."""

    def __init__(self, stream: TextIO | None = None, title: str = "") -> None:
        self._stream = stream or sys.stdout
        self._title = title
        self._staged: dict[int, Output] = {}
        self._live: Live | None = None
        self._header = True

    def open(self, schema: pa.Schema, store: Store, fresh: bool, output: str | None = None) -> None:
        console = drawable(self._stream)
        if console is not None:
            self._live = Live(console=console, auto_refresh=False)
            self._live.start()

    def stage(self, batch: BatchId, output: Output) -> None:
        self._staged = {batch: output}

    def parts(self, batch: BatchId) -> None:
        """Rows are shown here, so they have to come here."""

    def publish(self, batch: BatchId) -> None:
        output = self._staged.pop(batch, None)
        if output is None or not output.rows.num_rows:
            return
        if self._live is None:
            self._print(output.rows)
        else:
            self._live.update(self._picture(batch, output.rows, self._live.console), refresh=True)

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _print(self, rows: pa.Table) -> None:
        self._stream.write(csv_text(rows, self._header))
        self._stream.flush()
        self._header = False

    def _picture(self, batch: int, rows: pa.Table, console: Console) -> Group:
        # As Text, because in a plain string rich would take [brackets] for markup.
        excerpt = Excerpt.of(rows)
        title = Text(f"{self._title} batch {batch}: {excerpt.title}".strip(), "bold", no_wrap=True)
        return Group(title, excerpt.picture(console.width))
