"""A script read into its statements, between the text of a file and binding to a catalog."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from sqlglot import exp

from tidegate.errors import QueryError, UnavailableError
from tidegate.query.join import slides
from tidegate.query.option import ErrorBound, Latency, Option, Shed
from tidegate.query.window import (
    Distance,
    JoinWindow,
    TimeWindow,
    TupleWindow,
    Window,
    duration_text,
    duration_us,
    scaled_us,
    unit_us,
)
from tidegate.sql.dialect import parse
from tidegate.sql.syntax import (
    CreateStream,
    QueryWith,
    StreamDuration,
    StreamWindow,
    WithError,
    WithLatency,
    WithShed,
)


@dataclass(frozen=True)
class Create:
    """What CREATE STREAM says; the schema comes from the sources, the time maybe from an option."""

    name: str
    uris: tuple[str, ...]
    time: str | None = None
    disorder_us: int = 0
    idle_us: int | None = None


@dataclass(frozen=True)
class Script:
    """Any number of streams and the one query over them."""

    creates: tuple[Create, ...]
    select: exp.Expression


def read_script(text: str) -> Script:
    """Read CREATE STREAM statements and exactly one SELECT; mistakes are one-line QueryErrors."""
    creates: dict[str, Create] = {}
    selects: list[exp.Expression] = []
    for statement in parse(text):
        if isinstance(statement, CreateStream):
            create = _create(statement)
            if create.name.lower() in creates:
                raise QueryError(
                    "CREATE STREAM",
                    "a name can be used once",
                    f"{create.name} twice",
                    "Give one of the streams another name.",
                )
            creates[create.name.lower()] = create
        elif isinstance(statement, exp.Query | QueryWith):
            selects.append(statement)
        else:
            raise QueryError(
                "SQL",
                "a script holds CREATE STREAM statements and one SELECT",
                _short(statement.sql(dialect="tidegate", comments=False)),
                "Leave it out; results go where --out says.",
            )
    if len(selects) != 1:
        raise QueryError(
            "SQL",
            "a script needs exactly one SELECT",
            f"{len(selects)}" if selects else "none",
            "Put each query into a script of its own." if selects else "Add a SELECT statement.",
        )
    return Script(tuple(creates.values()), selects[0])


def read_window(node: StreamWindow) -> Window:
    """The window written after a stream; without SLIDE it tumbles."""
    size, slide = node.args["size"], node.args.get("slide") or node.args["size"]
    if node.args["kind"] == "ROWS":
        return TupleWindow(_whole(size, "ROWS"), _whole(slide, "SLIDE"))
    return TimeWindow(read_duration(size, "RANGE"), read_duration(slide, "SLIDE"))


def read_join_window(node: StreamWindow) -> JoinWindow:
    """The window written after one side of a join, which moves with every tuple."""
    window = read_window(node) if node.args.get("slide") or node.args["kind"] == "ROWS" else None
    if window is None:
        return Distance(read_duration(node.args["size"], "RANGE"))
    if isinstance(window, TupleWindow):
        return window
    if window.slide_us != window.range_us:
        raise slides(str(window))
    return Distance(window.range_us)


def read_duration(node: StreamDuration, where: str) -> int:
    """Microseconds in a duration of the syntax."""
    unit = node.args.get("unit")
    if unit is None:
        return duration_us(node.this.name, where)
    return scaled_us(_number(node.this), unit_us(unit.name, where), where)


def read_option(node: exp.Expression) -> Option:
    """What one WITH clause asks for."""
    if isinstance(node, WithError):
        confidence, budget = node.args.get("confidence"), node.args.get("budget")
        return ErrorBound(
            _share(node.this),
            ErrorBound.confidence if confidence is None else _share(confidence),
            None if budget is None else _whole(budget, "BUDGET"),
        )
    if isinstance(node, WithShed):
        by = node.args.get("by")
        return Shed(_share(node.this), Shed.by if by is None else by.name.lower())
    if isinstance(node, WithLatency):
        return Latency(read_duration(node.this, "WITH LATENCY"))
    raise TypeError(f"not an option: {node!r}")


def _create(node: CreateStream) -> Create:
    name = node.this.name
    if node.args.get("query"):
        raise UnavailableError(
            f"CREATE STREAM {name}",
            "CREATE STREAM ... AS is not available yet",
            None,
            "Write the query as a subquery in FROM.",
        )
    where = f"CREATE STREAM {name}"
    time, disorder, idle = (node.args.get(a) for a in ("time", "disorder", "idle"))
    disorder_us = 0 if disorder is None else read_duration(disorder, where)
    idle_us = None if idle is None else read_duration(idle, where)
    if disorder_us < 0:
        raise QueryError(where, "DISORDER must not be negative", duration_text(disorder_us))
    if idle_us is not None and idle_us <= 0:
        raise QueryError(where, "IDLE must be longer than zero", duration_text(idle_us))
    uris = tuple(u.name for u in node.args["uris"])
    return Create(name, uris, None if time is None else time.name, disorder_us, idle_us)


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]} ..."


def _number(node: exp.Expression) -> Decimal:
    return -Decimal(node.this.name) if isinstance(node, exp.Neg) else Decimal(node.name)


def _whole(node: exp.Expression, where: str) -> int:
    value = _number(node)
    if value != value.to_integral_value():
        raise QueryError(where, "must be a whole number of rows", str(value))
    return int(value)


def _share(node: exp.Expression) -> float:
    return float(_number(node) / 100)
