"""Gives the first rows of a query's result in a REPL, by a run that is thrown away."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import floor
from typing import Any

import pyarrow as pa

from tidegate.connector import Connector
from tidegate.driver.options import RunOptions
from tidegate.driver.report.window_log import WindowDigest
from tidegate.operate.aggregate.shed.figures import share_within
from tidegate.plan.physical import Plan
from tidegate.query.binder import UnknownKernel
from tidegate.query.node.node import Node
from tidegate.query.output import Output
from tidegate.query.surface.data_frame import as_pandas, as_polars
from tidegate.schema import type_name
from tidegate.session.launch import prepare
from tidegate.session.place import NO_SPARK, Place
from tidegate.session.planning import plan_for
from tidegate.sink.memory import MemorySink
from tidegate.sink.value_format import first_rows_text

_BATCH_ROWS = 10_000
_ERRORS = (0.01, 0.05, 0.1)
"""Of these it is said what share they allow to shed."""

_WIDTH = 100
"""Character cells of a preview where nothing says how wide the terminal is."""


@dataclass(frozen=True, repr=False)
class Preview:
    """The first rows of a result; `table` holds them as an Arrow table, a REPL shows them as text.

    Whatever takes Arrow data takes it: `pa.table(preview)`, `polars.DataFrame(preview)`.
    """

    table: pa.Table
    rows_read: int
    complete: bool
    """Whether these are all rows of the result: the input has ended, and there were no more."""

    @property
    def note(self) -> str:
        """What these rows are, and what was read for them."""
        rows = f"{self.table.num_rows:,} row{'' if self.table.num_rows == 1 else 's'}"
        read = f"{self.rows_read:,} row{'' if self.rows_read == 1 else 's'} of the input read"
        if self.complete:
            return f"{rows}, the whole result ({read})"
        return f"first {rows} ({read})" if self.table.num_rows else f"no row yet ({read})"

    def as_dict(self) -> dict[str, Any]:
        """Columns with their types, the rows, and what was read for them; for JSON."""
        return {
            "columns": {field.name: type_name(field.type) for field in self.table.schema},
            "rows": self.to_pylist(),
            "rows_read": self.rows_read,
            "complete": self.complete,
        }

    def to_pandas(self) -> Any:
        """The rows as a pandas DataFrame."""
        return as_pandas(self.table)

    def to_polars(self) -> Any:
        """The rows as a polars DataFrame."""
        return as_polars(self.table)

    def to_pylist(self) -> list[dict[str, Any]]:
        """The rows as dictionaries."""
        rows: list[dict[str, Any]] = self.table.to_pylist()
        return rows

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __bool__(self) -> bool:
        return True

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        from rich.console import Console

        from tidegate.sink.excerpt import first_rows_picture

        terminal = Console(force_jupyter=False)
        width = terminal.width if terminal.is_terminal else _WIDTH
        console = Console(color_system=None, width=width, force_jupyter=False)
        with console.capture() as shown:
            console.print(first_rows_picture(self.table, console.width))
        lines = [line.rstrip() for line in shown.get().splitlines()]
        return "\n".join([*lines, self.note])

    def _repr_html_(self) -> str:
        names, rows = first_rows_text(self.table)
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        body = "".join(
            f"<tr>{''.join(f'<td>{_cell(cell)}</td>' for cell in row)}</tr>" for row in rows
        )
        return (
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            f"<p>{escape(self.note)}</p>"
        )


def _cell(cell: str | None) -> str:
    return "<em>NULL</em>" if cell is None else escape(cell)


def look(
    node: Node, place: Place, given: Mapping[str, Connector], *, rows: int, read: int
) -> Preview | pa.Schema:
    """The first rows of a query over its sources, reading at most `read`; for 0 rows, its schema.

    Runs without Spark where kernels suffice, else in the place of the session.
    """
    plan, place = planned((Output(None, node),), place, given)
    if rows == 0:
        edge = plan.targets[0].edge
        return plan.subqueries[edge.subquery].ports[edge.port].schema
    return _run(plan, place, _beginnings(plan, given, read), rows, read)


def _beginnings(plan: Plan, given: Mapping[str, Connector], read: int) -> dict[str, Connector]:
    """The sources that have no URI, each with as many of its first rows as may be read."""
    used = dict.fromkeys(uri for s in plan.streams for uri in s.uris if uri in given)
    return {uri: given[uri].beginning(read) for uri in used}


def sampled_shedding(outputs: Sequence[Output], place: Place, read: int) -> list[str]:
    """What the query would shed of its first rows, by subquery that sheds by its windows.

    The query runs over them, without Spark where kernels suffice, and its rows are thrown away.
    """
    plan, place = planned(outputs, place, {})
    options = RunOptions(instances=1, batch_rows=min(_BATCH_ROWS, read))
    sinks = {target.name: MemorySink() for target in plan.targets}
    loop = prepare(plan, place, sinks, options)
    seen = 0
    try:
        while seen < read and (report := loop.step()) is not None:
            seen += report.rows_in
        digests = loop.summary.windows()
    finally:
        loop.close()
    lines = [line for name, of in digests.items() for line in _shed_lines(name, of)]
    lines = lines or ["no window that sheds has ended; sample more rows"]
    return [f"of the first {seen:,} rows", *(f"  {line}" for line in lines)]


def _shed_lines(name: str, digest: WindowDigest) -> Iterator[str]:
    """What a subquery sheds of its windows, and what it could shed for some errors."""
    if "kept" in digest.figures:
        yield f"{name}: {shed_text(digest)}"
    if "half_error" in digest.figures:
        yield f"{name}: {error_text(digest.figures['half_error']['mean'])}"


def error_text(half_error: float) -> str:
    """Which share an expected error allows to shed, in a line; rounded to keep the error."""
    shares = (floor(share_within(error, half_error) * 1000) / 10 for error in _ERRORS)
    parts = [f"{e:.0%} takes SHED {s:.1f} PERCENT" for e, s in zip(_ERRORS, shares, strict=True)]
    return f"an expected error of {', of '.join(parts)}"


def shed_text(digest: WindowDigest) -> str:
    """What windows shed, and what it is for, in a line."""
    shed = 1 - digest.figures["kept"]["mean"]
    many = f"{digest.windows:,} window{'' if digest.windows == 1 else 's'}"
    text = f"sheds {shed:.1%} of the tuples, over {many}"
    error = digest.figures.get("error")
    off = "" if error is None else f"; expected error {error['mean']:.1%}"
    if "groups_dropped" not in digest.figures:
        return f"{text}, and keeps every group{off}"
    groups = digest.figures["groups_dropped"]["mean"]
    weight = digest.figures.get("weight_dropped", {}).get("mean", 0.0)
    dropped = f"drops {groups:,.0f} groups of a window, with {weight:.1%} of its tuples"
    return f"{text}, and {dropped}{off}"


def planned(
    outputs: Sequence[Output], place: Place, given: Mapping[str, Connector]
) -> tuple[Plan, Place]:
    """The plan of a query and where it runs: in this process where kernels suffice."""
    alone = Place(NO_SPARK)
    try:
        return plan_for(outputs, alone, connectors=given), alone
    except UnknownKernel:
        if not place.on_spark:
            raise
    return plan_for(outputs, place, connectors=given), place


def _run(plan: Plan, place: Place, given: Mapping[str, Connector], rows: int, read: int) -> Preview:
    sink = MemorySink()
    # What follows the beginning of a DataFrame may belong to the windows that it leaves open.
    goes_on = any(connector.live() for connector in given.values())
    options = RunOptions(instances=1, batch_rows=min(_BATCH_ROWS, read), available_now=goes_on)
    loop = prepare(plan, place, {None: sink}, options, connectors=given)
    seen = made = 0
    try:
        while made < rows and seen < read and (report := loop.step()) is not None:
            seen += report.rows_in
            made += report.rows_out
        finished = loop.manifest.finished
    finally:
        loop.close()
    return Preview(sink.table().slice(0, rows), seen, finished and made <= rows)
