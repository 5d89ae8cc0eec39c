"""How a stream looks in a REPL, and errors for code that treats it as a collection."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import NoReturn

from tidegate.errors import QueryError
from tidegate.query.binder import UnknownKernel
from tidegate.query.expression import Expression
from tidegate.query.name import find_name
from tidegate.query.node.node import Input, Node
from tidegate.remote.scheme import shown
from tidegate.schema import type_name

SHOWN_COLUMNS = 8
"""The most columns in a stream's repr."""


class ReplText(str):
    """A text of several lines that REPLs and notebooks show unquoted."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self)}</pre>"


class StreamView:
    """The part of a stream that implements Python's own protocols; a stream holds no rows."""

    node: Node

    def __setitem__(self, name: object, value: object) -> NoReturn:
        raise QueryError(
            "stream",
            "is never changed; every method gives a new one",
            f"stream[{name!r}] = ...",
            f"Write .with_columns({name}=...).",
        )

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and find_name(name, self.node.names) is not None

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> NoReturn:
        raise QueryError(
            "stream",
            "has no last row, so it has no length",
            "len(stream)",
            'Write .window("1 hour").agg(n=count()) for counts, or .preview(10) for rows.',
        )

    def __iter__(self) -> NoReturn:
        raise QueryError(
            "stream",
            "has no last row, so it cannot be walked through",
            "for ... in stream",
            "Write .preview(10) to see the first rows, or .start(sink=tg.sink.call(function)).",
        )

    def __repr__(self) -> str:
        columns = [f"{name} {kind}".rstrip() for name, kind in self._types().items()]
        more = len(columns) - SHOWN_COLUMNS
        if more > 0:
            columns[SHOWN_COLUMNS:] = [f"... {more} more"]
        return f"Stream({', '.join(columns)}; {_short(self._made_by)})"

    def _repr_html_(self) -> str:
        """For notebooks: all columns with their types, and what makes the rows."""
        return columns_html(self._types(), f"Stream: {_short(self._made_by)}")

    def _types(self) -> dict[str, str]:
        """The column types; empty texts if only Spark knows them."""
        try:
            return {f.name: type_name(f.type) for f in self.node.schema}
        except UnknownKernel:
            return dict.fromkeys(self.node.names, "")

    @property
    def _made_by(self) -> str:
        """The last step that makes the rows; for an input, its first source."""
        node = self.node
        if not isinstance(node, Input) or not node.stream.uris:
            return node.summary
        first, *more = node.stream.uris
        return f"{node.summary} from {shown(first)}{f' and {len(more)} more' if more else ''}"


def columns_html(types: Mapping[str, str], caption: str) -> str:
    """Columns and types as an HTML table for notebooks."""
    cells = "".join(
        f"<tr><td>{escape(name)}</td><td><code>{escape(kind)}</code></td></tr>"
        for name, kind in types.items()
    )
    return (
        f"<table><caption>{escape(caption)}</caption>"
        f"<thead><tr><th>column</th><th>type</th></tr></thead><tbody>{cells}</tbody></table>"
    )


def not_a_name(given: object) -> QueryError:
    """The error for `stream[x]` where x is not a column name."""
    if isinstance(given, Expression):
        remedy = "Write .where(...) to keep the rows for which it is true."
        return QueryError("stream[...]", "needs the name of a column", repr(given), remedy)
    if isinstance(given, list | tuple):
        remedy = f"Write .select({', '.join(repr(g) for g in given)})."
        return QueryError("stream[...]", "needs the name of one column", repr(given), remedy)
    return QueryError(
        "stream[...]", "needs the name of a column", repr(given), "Write .preview(10) to see rows."
    )


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."
