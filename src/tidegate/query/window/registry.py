"""The table of kinds of windows, for SQL and Python."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tidegate.errors import QueryError
from tidegate.query.grammar import listed
from tidegate.query.surface.signature import no_argument
from tidegate.query.window.window import Window

_TABLE = (
    ("range", "TimeWindow"),
    ("rows", "TupleWindow"),
    ("session", "SessionWindow"),
)
"""A new kind of window is a line here: its file and its class."""

WINDOWS: dict[str, type[Window]] = {
    made.word: made
    for made in (getattr(import_module(f"{__package__}.{file}"), name) for file, name in _TABLE)
}
"""Kinds of windows by their first word in SQL."""


_EXAMPLE = '.window("15 minutes", slide="5 minutes"), or .window(rows=100)'


def read_window(range: Any = None, slide: Any = None, rows: Any = None, **more: Any) -> Window:
    """The window for a program's arguments: exactly one size, and that kind's options.

    `more` are sizes and options of other kinds.
    """
    every = {"range": range, "slide": slide, "rows": rows, **more}
    given = {name: value for name, value in every.items() if value is not None}
    sizes = {kind.argument: kind for kind in WINDOWS.values()}
    options = dict.fromkeys(option for kind in sizes.values() for option in kind.options)
    for name in every:
        if name not in sizes and name not in options:
            raise no_argument("window", name, [*sizes, *options], _EXAMPLE)
    found = [name for name in sizes if name in given]
    if len(found) != 1:
        raise QueryError(
            "window",
            "needs a length of time, a number of tuples, or the gap of a session",
            " and ".join(found) or "none of them",
            'Write for example window("15 minutes"), window(rows=100), or '
            'window(session="30 minutes").',
        )
    (name,) = found
    chosen = {option: given[option] for option in options if option in given}
    for option, value in chosen.items():
        if option not in sizes[name].options:
            raise QueryError(
                f"window {option}",
                f"is not for windows by {name}",
                repr(value),
                f"Leave it out; they may have {listed(sizes[name].options)}.",
            )
    return sizes[name].of(given[name], **chosen)
