"""Says whether pictures can be drawn and redrawn on a stream."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console


def drawable(stream: TextIO) -> Console | None:
    """A console on a terminal that can redraw; None for pipes, files and TERM=dumb.

    Colours and NO_COLOR are the console's business. A character that the terminal's encoding does
    not have is replaced from here on, because a picture must not end a query.
    """
    if not stream.isatty():
        return None
    from rich.console import Console  # which takes longer than most commands need otherwise

    console = Console(file=stream, highlight=False, emoji=False, markup=False)
    if not console.is_terminal or console.is_dumb_terminal:
        return None
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")
    return console
