"""The table of windows, which SQL and Python read."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tidegate.errors import QueryError
from tidegate.query.signature import no_argument
from tidegate.query.window.window import Window

_TABLE = (
    ("range", "TimeWindow"),
    ("rows", "TupleWindow"),
)
"""A new kind of window is a line here: its file and its class."""

WINDOWS: dict[str, type[Window]] = {
    made.word: made
    for made in (getattr(import_module(f"{__package__}.{file}"), name) for file, name in _TABLE)
}
"""By the word that begins them in SQL."""


_EXAMPLE = '.window("15 minutes", slide="5 minutes"), or .window(rows=100)'


def read_window(range: Any = None, slide: Any = None, rows: Any = None, **more: Any) -> Window:
    """The window a program asks for, by the one size that is given.

    `more` are sizes of other kinds. It tumbles unless `slide` says otherwise.
    """
    sizes = {"range": range, "rows": rows, **more}
    known = [kind.argument for kind in WINDOWS.values()]
    for name in sizes:
        if name not in known:
            raise no_argument("window", name, [*known, "slide"], _EXAMPLE)
    given = [kind for kind in WINDOWS.values() if sizes.get(kind.argument) is not None]
    if len(given) != 1:
        raise QueryError(
            "window",
            "needs a length of time, or a number of tuples",
            "both" if given else "neither",
            'Write for example window("15 minutes"), or window(rows=100).',
        )
    return given[0].of(sizes[given[0].argument], slide)
