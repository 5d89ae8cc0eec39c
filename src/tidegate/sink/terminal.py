"""Says whether pictures can be drawn and redrawn on a stream."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console


def drawable(stream: TextIO) -> Console | None:
    """A console on a terminal that can redraw; None for pipes, files and TERM=dumb.

    The console handles colours and NO_COLOR. From here on the stream replaces characters that its
    encoding does not have, because an encoding error in a picture must not end a query.
    """
    if not stream.isatty():
        return None
    from rich.console import Console  # slow to import, and most commands do not need it

    console = Console(file=stream, highlight=False, emoji=False, markup=False)
    if not console.is_terminal or console.is_dumb_terminal:
        return None
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")
    return console
