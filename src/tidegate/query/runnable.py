"""What a user can get from a query: its plan, columns, first rows, all rows, or a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tidegate.errors import QueryError, UnavailableError
from tidegate.query.binder import UnknownKernel
from tidegate.query.node.node import Node
from tidegate.query.surface.data_frame import as_pandas, as_polars
from tidegate.query.surface.signature import called_as
from tidegate.query.surface.stream_view import ReplText, StreamView

READ_AT_MOST = 1_000_000
"""Input rows that a preview reads unless told otherwise."""

Launch = Callable[..., Any]
"""Starts a query: launch(node, **options) -> the running query."""

Describe = Callable[..., str]
"""Explains a query: describe(node, **options) -> text."""

Look = Callable[..., Any]
"""Shows what a query gives: look(node, rows, read_at_most) -> its first rows."""

Gather = Callable[..., pa.Table]
"""Runs a query to its end: gather(node, memory_limit, where) -> all its rows."""


@dataclass(frozen=True, repr=False)
class RunnableStream(StreamView):
    """A query, with the session's functions to start, explain and preview it."""

    node: Node
    launch: Launch
    describe: Describe
    look: Look | None = None
    gather: Gather | None = None

    def explain(self, **options: Any) -> str:
        """The plan as text: nodes, subqueries, where each part runs, output, gate.

        Takes the options of `start` that change how a join is executed.
        """
        return ReplText(self.describe(self.node, **options))

    @called_as('.start(sink="out", checkpoint="ckpt")')
    def start(self, **options: Any) -> Any:
        """Run the query; takes the options of `Session.start`."""
        return self.launch(self.node, **options)

    @called_as(".preview(10)")
    def preview(self, n: int = 10, *, read: int = READ_AT_MOST) -> Any:
        """The first n rows of the result in its order, in a form that a REPL shows as a table.

        Reads the input from its beginning, in this process, until there are n rows, the input has
        ended, or `read` input rows were read. Results and state are not stored. Only windows that
        ended in what was read give rows. Spark is started only for expressions that need it.
        """
        for name, value in (("n", n), ("read", read)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise QueryError(
                    f"preview {name}", "must be a whole number of rows from 1 on", repr(value)
                )
        return self._looked_at(rows=n, read=read)

    @called_as(".to_arrow()")
    def to_arrow(self, *, memory_limit: str | int | None = None) -> pa.Table:
        """All rows of the result in its order, as an Arrow table; the input must be bounded.

        Runs the query to its end in this process, without a checkpoint. Spark is started only for
        expressions that need it. The process may hold `memory_limit`, such as `"2GB"`; the default
        is three quarters of the machine's or container's memory. A larger result is refused.
        """
        return self._collected("to_arrow", memory_limit)

    @called_as(".to_pandas()")
    def to_pandas(self, *, memory_limit: str | int | None = None) -> Any:
        """As `to_arrow`, as a pandas DataFrame. Integers and booleans with NULLs keep their type as
        pandas' nullable types.
        """
        return as_pandas(self._collected("to_pandas", memory_limit))

    @called_as(".to_polars()")
    def to_polars(self, *, memory_limit: str | int | None = None) -> Any:
        """As `to_arrow`, as a polars DataFrame; needs the extra `tidegate[polars]`."""
        return as_polars(self._collected("to_polars", memory_limit))

    @property
    def schema(self) -> pa.Schema:
        """The columns with their Arrow types; asks Spark for types that only Spark knows."""
        try:
            return self.node.schema
        except UnknownKernel:
            return self._looked_at(rows=0, read=0)

    @property
    def columns(self) -> tuple[str, ...]:
        """The column names, the implicit ones first."""
        return self.node.names

    def _looked_at(self, **how: int) -> Any:
        if self.look is None:
            raise UnavailableError("preview", "needs a stream of a session")
        return self.look(self.node, **how)

    def _collected(self, where: str, memory_limit: str | int | None) -> pa.Table:
        if self.gather is None:
            raise UnavailableError(where, "needs a stream of a session")
        return self.gather(self.node, memory_limit=memory_limit, where=where)
