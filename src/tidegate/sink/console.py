"""Shows results on the terminal: a live table of the newest window, or plain rows when piped."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

import pyarrow as pa

from tidegate.batch import BatchId
from tidegate.sink.address import Address
from tidegate.sink.batch_output import HeldParts
from tidegate.sink.csv import csv_text
from tidegate.sink.protocol import Opening
from tidegate.sink.receipt import Receipt
from tidegate.sink.side_text import SideText
from tidegate.sink.terminal import drawable

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.live import Live


class ConsoleSink:
    """Prints committed batches: on a terminal the newest rows in place, else all rows as CSV.

    Late and rejected tuples are marked lines on standard error. A batch that a crash kept from the
    terminal is not shown later.
    """

    parallel = False
    side_outputs = True
    uri = None

    def __init__(
        self, stream: TextIO | None = None, title: str = "", errors: TextIO | None = None
    ) -> None:
        self._stream = stream or sys.stdout
        self._title = title
        self._sides = SideText(errors)
        self._held: dict[int, HeldParts] = {}
        self._live: Live | None = None
        self._header = True

    @staticmethod
    def at(address: Address, output: str | None) -> ConsoleSink:
        """The sink of `console:`."""
        address.check_bare()
        return ConsoleSink(title=output or "")

    def __repr__(self) -> str:
        return "ConsoleSink()"

    def open(self, opening: Opening) -> None:
        console = drawable(self._stream)
        if console is not None:
            from rich.live import Live

            self._live = Live(console=console, auto_refresh=False)
            self._live.start()

    def begin(self, batch: BatchId) -> HeldParts:
        self._held = {batch: HeldParts()}
        return self._held[batch]

    def publish(self, batch: BatchId, receipts: Sequence[Receipt]) -> None:
        if batch not in self._held:
            return  # another process wrote it, and showed it on its terminal or lost it
        output = self._held.pop(batch).output()
        self._sides.write(output)
        rows = output.rows
        if not rows.num_rows:
            return
        if self._live is None:
            self._print(rows)
        else:
            self._live.update(self._picture(batch, rows, self._live.console), refresh=True)

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _print(self, rows: pa.Table) -> None:
        self._stream.write(csv_text(rows, self._header))
        self._stream.flush()
        self._header = False

    def _picture(self, batch: int, rows: pa.Table, console: Console) -> Group:
        from rich.console import Group
        from rich.text import Text

        from tidegate.sink.excerpt import Excerpt

        # As Text, because in a plain string rich would take [brackets] for markup.
        excerpt = Excerpt.of(rows)
        title = Text(f"{self._title} batch {batch}: {excerpt.title}".strip(), "bold", no_wrap=True)
        return Group(title, excerpt.picture(console.width))
