"""Functions OVER the earlier or later tuples of a key: a logical node that adds columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
from sqlglot import exp

from tidegate.calendar.duration import Duration, duration_text, duration_us
from tidegate.errors import NO_WAY, QueryError, UnavailableError
from tidegate.query.aggregate import AggregateCall, Argument
from tidegate.query.binder import UnknownKernel, bind
from tidegate.query.check import check_type, key_type, set_fields, types_of
from tidegate.query.expression import Expression, lit, to_node
from tidegate.query.name import Names, canonical, distinct_names, expression_text
from tidegate.query.node.dedup import TupleRows
from tidegate.query.types.coercion import STRING, common
from tidegate.query.window.rows import MOST_ROWS
from tidegate.schema import type_name

if TYPE_CHECKING:
    from tidegate.query.node.node import Node

Types = Sequence[pa.DataType]


class OverCall(ABC):
    """What one column computes; `arguments` are expressions over the child's columns."""

    @property
    @abstractmethod
    def arguments(self) -> tuple[exp.Expression, ...]: ...

    @abstractmethod
    def over(self, change: Callable[[exp.Expression], exp.Expression]) -> OverCall:
        """The same call with changed expressions."""

    def coerced(self, types: Types) -> OverCall:
        """The call with Spark's implicit casts, given the types of its arguments."""
        return self

    def result(self, types: Types) -> pa.DataType:
        """The type of the column, given those of the coerced arguments: that of the first."""
        return types[0]

    @property
    @abstractmethod
    def text(self) -> str:
        """The call as text, for people and for the query's fingerprint."""


ROWS, RANGE = "ROWS", "RANGE"
_IGNORE_NULLS = " ignore nulls"


@dataclass(frozen=True)
class FrameSpan:
    """Where a frame begins: this many tuples, or microseconds, before the tuple; None is the first
    tuple.

    A RANGE frame ends with the last tuple of the same instant, a ROWS frame with the tuple itself.
    """

    kind: str
    preceding: int | None

    def __post_init__(self) -> None:
        if self.preceding is None:
            return
        if self.preceding < 0:
            raise QueryError(f"OVER {self.kind}", "must not look forward", self._length)
        if self.kind == ROWS:
            _check_rows("OVER ROWS", self.preceding)

    def __str__(self) -> str:
        if self.preceding is None:
            return f"{self.kind} UNBOUNDED PRECEDING"
        return f"{self.kind} {self._length} PRECEDING"

    @property
    def _length(self) -> str:
        assert self.preceding is not None
        return str(self.preceding) if self.kind == ROWS else duration_text(self.preceding)


def _check_rows(where: str, rows: int) -> None:
    if rows > MOST_ROWS:
        raise QueryError(where, f"looks at most {MOST_ROWS:,} tuples back", f"{rows:,}")


@dataclass(frozen=True)
class FrameCall(OverCall):
    """An aggregate over a frame."""

    call: AggregateCall
    frame: FrameSpan

    def __post_init__(self) -> None:
        definition = self.call.definition
        if definition.by_user or definition.holistic:
            raise QueryError(
                f"{self.call} OVER",
                "needs an aggregate whose state does not grow with the tuples",
                self.call.kind,
                "Give the stream a window and write it as an aggregate.",
            )

    @property
    def arguments(self) -> tuple[exp.Expression, ...]:
        return self.call.arguments

    def over(self, change: Callable[[exp.Expression], exp.Expression]) -> FrameCall:
        return replace(self, call=self.call.over([change(a) for a in self.call.arguments]))

    def coerced(self, types: Types) -> FrameCall:
        return replace(self, call=self.call.coerced(types))

    def result(self, types: Types) -> pa.DataType:
        return self.call.function("f", tuple(f"x{i}" for i in range(len(types))), types).result

    @property
    def text(self) -> str:
        return f"{self.call} {self.frame}"


@dataclass(frozen=True)
class LagCall(OverCall):
    """The value of the tuple `offset` before; `default`, or NULL, if there is none."""

    value: exp.Expression
    offset: int = 1
    default: exp.Expression | None = None
    ignore_nulls: bool = False

    word: ClassVar[str] = "lag"

    def __post_init__(self) -> None:
        if self.offset < 0:
            raise QueryError("LAG", "must not look forward", str(self.offset), "Write LEAD(x, 1).")
        if self.offset == 0 and self.ignore_nulls:
            raise QueryError("LAG IGNORE NULLS", "must look back", "0", "Write LAG(x, 1).")
        _check_rows("LAG", self.offset)

    @property
    def arguments(self) -> tuple[exp.Expression, ...]:
        return (self.value,) if self.default is None else (self.value, self.default)

    def over(self, change: Callable[[exp.Expression], exp.Expression]) -> LagCall:
        default = None if self.default is None else change(self.default)
        return replace(self, value=change(self.value), default=default)

    def coerced(self, types: Types) -> LagCall:
        if self.default is None:
            return self
        reads = types[1] == STRING  # a default that is text is read as what the values are
        both = type_name(common(types, self.word.upper(), "the value and the default", reads))
        value, default = (
            a if type_name(t) == both else exp.cast(a, both, dialect="spark")
            for a, t in zip(self.arguments, types, strict=True)
        )
        return replace(self, value=value, default=default)

    @property
    def text(self) -> str:
        more = "" if self.default is None else f", {expression_text(self.default)}"
        said = f"{self.word}({expression_text(self.value)}, {self.offset}{more})"
        return f"{said}{_IGNORE_NULLS if self.ignore_nulls else ''}"


@dataclass(frozen=True)
class LeadCall(LagCall):
    """The value of the tuple `offset` after; `default`, or NULL, if none comes."""

    word: ClassVar[str] = "lead"

    def __post_init__(self) -> None:
        if self.offset < 1:
            raise QueryError("LEAD", "must look forward", str(self.offset), "Write LEAD(x, 1).")


@dataclass(frozen=True)
class NthCall(OverCall):
    """The value of the n-th tuple in the frame, counted from 1; NULL if there is none."""

    value: exp.Expression
    number: int
    ignore_nulls: bool = False
    frame: FrameSpan = FrameSpan(RANGE, None)

    def __post_init__(self) -> None:
        if self.number < 1:
            raise QueryError("NTH_VALUE", "counts from 1 on", str(self.number))
        _check_rows("NTH_VALUE", self.number)

    @property
    def arguments(self) -> tuple[exp.Expression, ...]:
        return (self.value,)

    def over(self, change: Callable[[exp.Expression], exp.Expression]) -> NthCall:
        return replace(self, value=change(self.value))

    @property
    def text(self) -> str:
        said = f"nth_value({expression_text(self.value)}, {self.number})"
        return f"{said}{_IGNORE_NULLS if self.ignore_nulls else ''} {self.frame}"


@dataclass(frozen=True)
class RankCall(OverCall):
    """1 plus the number of tuples at earlier instants, or if `dense` of these instants."""

    dense: bool = False
    arguments: tuple[exp.Expression, ...] = ()

    def over(self, change: Callable[[exp.Expression], exp.Expression]) -> RankCall:
        return self

    def result(self, types: Types) -> pa.DataType:
        return pa.int64()

    @property
    def text(self) -> str:
        return "dense_rank()" if self.dense else "rank()"


@dataclass(frozen=True, eq=False)
class Over(TupleRows):
    """The child's tuples with one column per call, computed over tuples with the same keys."""

    child: Node
    keys: tuple[exp.Expression, ...]
    calls: tuple[tuple[str, OverCall], ...]

    def __post_init__(self) -> None:
        self.check_event_time("OVER")
        names = self.child.names

        def plain(expression: exp.Expression) -> exp.Expression:
            return canonical(expression, names, "OVER")

        set_fields(
            self,
            keys=tuple(canonical(key, names, "PARTITION BY") for key in self.keys),
            calls=tuple((name, call.over(plain)) for name, call in self.calls),
        )
        distinct_names(self.names, "OVER")
        for key in self.keys:
            check_type(self.child, key, "PARTITION BY")
        for _, call in self.calls:
            for argument in call.arguments:
                check_type(self.child, argument, call.text)
        with suppress(UnknownKernel):
            _ = self.schema

    @cached_property
    def names(self) -> tuple[str, ...]:
        return Names((*super().names, *(name for name, _ in self.calls)))

    @cached_property
    def schema(self) -> pa.Schema:
        types = types_of(self.child)
        for key in self.keys:
            key_type(bind(key, types, "PARTITION BY").type, expression_text(key), "PARTITION BY")
        fields = list(super().schema)
        for name, call in self.calls:
            given = [bind(a, types, call.text).type for a in call.arguments]
            ready = call.coerced(given)
            taken = [bind(a, types, call.text).type for a in ready.arguments]
            fields.append(pa.field(name, ready.result(taken)))
        return pa.schema(fields)

    @property
    def summary(self) -> str:
        keys = ", ".join(expression_text(key) for key in self.keys)
        calls = ", ".join(f"{name} = {call.text}" for name, call in self.calls)
        return f"over {keys or 'all tuples'}: {calls}"


@dataclass(frozen=True, eq=False)
class Lead(Over):
    """The child's tuples with columns of later ones; a row is decided when those have come.

    Its `ts` is the tuple's own time. Calls that look back are below this node, because above it
    tuples come in the order of decisions. Tuples that still wait at the end of input are decided
    one microsecond after the newest of all.
    """

    reach_us = 1

    @property
    def own_time(self) -> bool:
        return True


def with_calls(
    child: Node, by_keys: Mapping[tuple[exp.Expression, ...], Mapping[str, OverCall]]
) -> Node:
    """The node with a column for each call: those that look back first, then those that wait."""
    ahead: dict[tuple[exp.Expression, ...], tuple[tuple[str, OverCall], ...]] = {}
    for keys, calls in by_keys.items():
        later = tuple((n, c) for n, c in calls.items() if isinstance(c, LeadCall))
        back = tuple((n, c) for n, c in calls.items() if not isinstance(c, LeadCall))
        child = Over(child, keys, back) if back else child
        ahead |= {keys: later} if later else {}
    if len(ahead) > 1:
        raise UnavailableError(
            "LEAD", "is available by one key in a query", f"{len(ahead)} keys", NO_WAY
        )
    # Above a Lead tuples come in the order of decisions, so what looks back is below it.
    for keys, waiting in ahead.items():
        child = Lead(child, keys, waiting)
    return child


def lag(
    of: Argument, offset: int = 1, default: object = None, *, ignore_nulls: bool = False
) -> LagCall:
    """For over(): the value of the tuple `offset` before in its key; else the default.

    `ignore_nulls` does not count tuples whose value is NULL.
    """
    return _offset_call(LagCall, of, offset, default, ignore_nulls)


def lead(
    of: Argument, offset: int = 1, default: object = None, *, ignore_nulls: bool = False
) -> LagCall:
    """For over(): the value of the tuple `offset` after in its key; the default if none comes.

    `ignore_nulls` does not count tuples whose value is NULL.
    """
    return _offset_call(LeadCall, of, offset, default, ignore_nulls)


def nth_value(of: Argument, number: int, *, ignore_nulls: bool = False) -> NthCall:
    """For over(): the value of the n-th tuple in its frame, counted from 1; else NULL."""
    return NthCall(to_node(of), _whole("nth_value", number), ignore_nulls)


def _offset_call(
    kind: type[LagCall], of: Argument, offset: int, default: object, ignore_nulls: bool
) -> LagCall:
    other = default if default is None or isinstance(default, Expression) else lit(default)
    found = None if other is None else to_node(other)
    return kind(to_node(of), _whole(kind.word, offset), found, ignore_nulls)


def _whole(where: str, number: int) -> int:
    if not isinstance(number, int) or isinstance(number, bool):
        raise QueryError(where, "the number of tuples must be a whole number", repr(number))
    return number


def row_number() -> FrameCall:
    """For over(): the number of the tuple in its key, counted from 1."""
    return FrameCall(AggregateCall("count"), FrameSpan(ROWS, None))


def rank() -> RankCall:
    """For over(): 1 plus the number of its key's tuples at earlier instants; peers share a rank."""
    return RankCall()


def dense_rank() -> RankCall:
    """For over(): 1 plus the number of earlier instants at which its key has tuples."""
    return RankCall(dense=True)


def over_call(
    name: str, asked: object, rows: int | None = None, length: Duration | None = None
) -> OverCall:
    """What a column of over() computes; aggregates and nth_value() get the frame."""
    if isinstance(asked, LagCall | FrameCall | RankCall):
        return asked
    if not isinstance(asked, AggregateCall | NthCall):
        raise QueryError(
            f"over {name}",
            "needs an aggregate, lag(), lead(), row_number() or rank()",
            repr(asked),
            'Write for example .over("route", rows=5, total=sum("fare")).',
        )
    frame = _frame(rows, length)
    return replace(asked, frame=frame) if isinstance(asked, NthCall) else FrameCall(asked, frame)


def _frame(rows: int | None, length: Duration | None) -> FrameSpan:
    if rows is not None and length is not None:
        raise QueryError("over", "takes rows or range", "both", "Leave one of them out.")
    if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or rows < 0):
        raise QueryError("over rows", "must be a whole number from 0 on", repr(rows))
    if rows is not None:
        return FrameSpan(ROWS, rows)
    return FrameSpan(RANGE, None if length is None else duration_us(length, "over range"))
