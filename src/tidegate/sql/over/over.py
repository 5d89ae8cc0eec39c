"""Reads functions OVER (PARTITION BY ... ORDER BY ts frame), and QUALIFY over a stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from sqlglot import TokenType, exp

from tidegate.calendar.duration import duration_us
from tidegate.errors import NO_WAY, QueryError, UnavailableError
from tidegate.query.aggregate import AggregateCall
from tidegate.query.name import (
    EVENT_TIME,
    WINDOW,
    NamedExpr,
    as_expression,
    canonical,
    column,
    expression_text,
    find_name,
    is_column,
)
from tidegate.query.node.node import Filter, Node, aggregate_of
from tidegate.query.node.over import (
    RANGE,
    ROWS,
    FrameCall,
    FrameSpan,
    LagCall,
    LeadCall,
    NthCall,
    OverCall,
    RankCall,
    with_calls,
)
from tidegate.query.window.window import Use
from tidegate.sql.call import SKIPPERS
from tidegate.sql.function import is_aggregate, read_aggregate
from tidegate.sql.piece import PieceParser

_ORDER = "Write ORDER BY ts in OVER (...); QUALIFY over the rows of a window takes any order."
_RANKS_OF_WINDOWS = (
    "Rank the rows of a window: SELECT route, COUNT(*) AS n FROM rides [RANGE 1 HOUR] GROUP BY "
    "route QUALIFY {} OVER (ORDER BY n DESC) {}"
)
_FRAMES = "Write ROWS 5 PRECEDING, RANGE '5 minutes' PRECEDING, or ROWS UNBOUNDED PRECEDING."


def with_over(
    node: Node, items: tuple[NamedExpr, ...], qualify: exp.Expression | None
) -> tuple[Node, tuple[NamedExpr, ...]]:
    """The node with a column per function OVER, and the select list rewritten over these columns.

    QUALIFY keeps the rows for which it is true; it may use names of the select list.
    """
    aliases = {name.lower(): e for name, e in items}
    found = _Windows(node)
    if qualify is not None:
        qualify = found.replaced(_through(qualify, aliases, node.names))
    items = tuple((name, found.replaced(e)) for name, e in items)
    if not found.calls:
        raise QueryError(
            "QUALIFY",
            "needs a function OVER (...)",
            "none",
            "Write the condition in WHERE.",
        )
    made = with_calls(node, found.calls)
    return made if qualify is None else Filter(made, qualify), items


def ranks_tuples(node: Node) -> bool:
    """Whether QUALIFY numbers a stream's tuples, because there are no windows with several rows."""
    return not node.windowed or not aggregate_of(node).window.allows(Use.ORDER)


def has_over(items: Sequence[NamedExpr]) -> bool:
    """Whether a select list has a function OVER."""
    return any(e.find(exp.Window) for _, e in items)


def refuse_over_groups(items: Sequence[NamedExpr]) -> None:
    """Raises for a function OVER beside a window or GROUP BY of the same SELECT."""
    if has_over(items):
        raise QueryError(
            "OVER",
            "looks at the tuples of a stream, or the rows of a subquery",
            "a window or GROUP BY beside it",
            "Write the aggregate in a subquery: SELECT ..., LAG(n) OVER (PARTITION BY route ORDER "
            "BY window_end) FROM (SELECT ...).",
        )


class FrameParser(PieceParser):
    """Parses RANGE 5 MINUTES PRECEDING, which Spark writes with INTERVAL."""

    def _parse_window_spec(self) -> dict[str, Any]:
        number, unit = self._curr, self._next
        measured = number and unit and number.token_type is TokenType.NUMBER
        if not measured or unit.text.upper() in _SIDES:
            return super()._parse_window_spec()
        self._advance(2)
        side = next((s for s in _SIDES if self._match_text_seq(s)), None)
        amount = exp.Literal.string(number.text)
        return {"value": exp.Interval(this=amount, unit=exp.var(unit.text.upper())), "side": side}


_RANKS: dict[type, tuple[str, OverCall]] = {
    exp.Rank: ("RANK()", RankCall()),
    exp.DenseRank: ("DENSE_RANK()", RankCall(dense=True)),
    exp.RowNumber: ("ROW_NUMBER()", FrameCall(AggregateCall("count"), FrameSpan(ROWS, None))),
}
_UNDECIDED = {exp.Ntile: "= 1", exp.PercentRank: "<= 0.1", exp.CumeDist: "<= 0.1"}
_SIDES = ("PRECEDING", "FOLLOWING")


@dataclass
class _Windows:
    """The functions OVER of one SELECT, by partition, under free names."""

    node: Node
    calls: dict[tuple[exp.Expression, ...], dict[str, OverCall]] = field(default_factory=dict)

    def replaced(self, expression: exp.Expression) -> exp.Expression:
        """The expression with functions OVER replaced by columns."""

        def change(part: exp.Expr) -> exp.Expr:
            return column(self._name(part)) if isinstance(part, exp.Window) else part

        return as_expression(expression.copy().transform(change))

    def _name(self, window: exp.Window) -> str:
        call = _call(window)
        _check_order(window, self.node)
        keys = tuple(window.args.get("partition_by") or ())
        own = self.calls.setdefault(keys, {})
        for name, known in own.items():
            if known == call:
                return name
        taken = {*map(str.lower, self.node.names), *(n for c in self.calls.values() for n in c)}
        name = next(n for i in count(1) if (n := f"over{i}") not in taken)
        own[name] = call
        return name


def _through(
    condition: exp.Expression, aliases: dict[str, exp.Expression], names: Sequence[str]
) -> exp.Expression:
    """The condition with select list items for names that are not columns."""

    def change(part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Column) and find_name(part.name, names) is None:
            return aliases.get(part.name.lower(), part).copy()
        return part

    return as_expression(condition.copy().transform(change))


def _check_order(window: exp.Window, node: Node) -> None:
    order = window.args.get("order")
    keys = order.expressions if order is not None else []
    times = {*node.event_names, *(WINDOW[1:] if node.windowed else ())}
    if EVENT_TIME not in node.names:
        times.add(EVENT_TIME)
    written = expression_text(keys[0]) if keys else "no ORDER BY"
    if len(keys) == 1 and not keys[0].args.get("desc"):
        by = keys[0].this
        plain = by if by.name in times else canonical(by, node.names, "OVER")
        if is_column(plain, times):
            return
    raise QueryError("OVER", "the order must be that of the event time", written, _ORDER)


def _call(window: exp.Window) -> OverCall:
    function, ignore_nulls = window.this, False
    if type(_call_of(function)) in SKIPPERS:
        function, ignore_nulls = _call_of(function), isinstance(function, exp.IgnoreNulls)
    if type(function) in _OFFSETS:
        return _offset(function, window, ignore_nulls)
    if type(function) in _RANKS:
        word, ranks = _RANKS[type(function)]
        _refuse_more(word, function, window)
        return ranks
    frame = _frame(window.args.get("spec"))
    if isinstance(function, exp.NthValue):
        number = _number("NTH_VALUE", function.args.get("offset"))
        return NthCall(function.this, number, ignore_nulls, frame)
    text = expression_text(function)
    if type(function) in _UNDECIDED:
        why = "depends on all tuples of its key, also on those to come, so it is never decided"
        raise QueryError(
            "OVER", why, text, _RANKS_OF_WINDOWS.format(text, _UNDECIDED[type(function)])
        )
    if not is_aggregate(function):
        why = "needs an aggregate, LAG, LEAD, NTH_VALUE, ROW_NUMBER, RANK or DENSE_RANK"
        raise UnavailableError("OVER", why, text, NO_WAY)
    return FrameCall(read_aggregate(function), frame)


def _refuse_more(word: str, function: exp.Expr, window: exp.Window) -> None:
    """Refuse arguments and a frame of a function that numbers the tuples so far."""
    if given := [text for value in function.args.values() if value for text in [_written(value)]]:
        raise QueryError(word, "takes no arguments", ", ".join(given), f"Write {word} OVER (...).")
    _refuse_frame(word, window)


def _written(value: Any) -> str:
    parts = value if isinstance(value, list) else [value]
    return ", ".join(expression_text(part) for part in parts)


def _refuse_frame(word: str, window: exp.Window) -> None:
    if window.args.get("spec") is not None:
        raise QueryError(word, "has no frame", "a frame", "Leave ROWS or RANGE out.")


_OFFSETS: dict[type, type[LagCall]] = {exp.Lag: LagCall, exp.Lead: LeadCall}


def _call_of(node: Any) -> Any:
    return node.this if isinstance(node, exp.IgnoreNulls | exp.RespectNulls) else node


def _offset(function: Any, window: exp.Window, ignore_nulls: bool) -> LagCall:
    kind = _OFFSETS[type(function)]
    word = kind.word.upper()
    _refuse_frame(word, window)
    offset = function.args.get("offset")
    number = 1 if offset is None else _number(word, offset)
    return kind(function.this, number, function.args.get("default"), ignore_nulls)


def _number(word: str, node: Any) -> int:
    if isinstance(node, exp.Literal) and node.name.isdigit():
        return int(node.name)
    written = "none" if node is None else expression_text(node)
    raise QueryError(word, "the number of tuples must be a whole number", written)


def _frame(spec: exp.Expr | None) -> FrameSpan:
    if spec is None:
        return FrameSpan(RANGE, None)
    kind, start = str(spec.args.get("kind")), spec.args.get("start")
    ends = spec.args.get("end") in (None, "CURRENT ROW")
    if ends and start == "CURRENT ROW":
        return FrameSpan(kind, 0)
    if ends and spec.args.get("start_side") == "PRECEDING" and kind in (ROWS, RANGE):
        preceding = None if start == "UNBOUNDED" else _preceding(kind, start)
        if start == "UNBOUNDED" or preceding is not None:
            return FrameSpan(kind, preceding)
    written = spec.sql(dialect="spark")
    raise QueryError("OVER", "a frame ends with the current row", written, _FRAMES)


def _preceding(kind: str, start: Any) -> int | None:
    """A number of tuples, or a duration in microseconds."""
    if kind == ROWS:
        plain = isinstance(start, exp.Literal) and start.name.isdigit()
        return int(start.name) if plain else None
    if isinstance(start, exp.Interval):
        return duration_us(f"{start.this.name} {start.text('unit')}", RANGE)
    text = isinstance(start, exp.Literal) and start.is_string
    return duration_us(start.name, RANGE) if text else None
