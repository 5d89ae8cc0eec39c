"""Binds expressions: turns sqlglot trees into typed trees that the kernels evaluate.

Types and casts follow Spark SQL 4 in its default ANSI mode, so that an expression means the same
whether Spark or the kernels evaluate it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
from sqlglot import exp

from tidegate.errors import QueryError, likely, near
from tidegate.expression.tree import Column, Expr, Literal
from tidegate.operate.aggregate.registry import find_sql
from tidegate.query.name import flattened
from tidegate.query.types import operator
from tidegate.query.types.coercion import (
    BOOL,
    NULL,
    STRING,
    UnknownKernel,
    cast,
    literal_number,
    make,
    number,
    require_readable,
)
from tidegate.query.types.determinism import is_unstable, unstable
from tidegate.query.types.form import ALIASES, call_of
from tidegate.query.types.function import FUNCTIONS, is_null
from tidegate.query.types.interval import CalendarInterval, read_interval
from tidegate.query.types.numeric import bits
from tidegate.query.types.spelling import spelling
from tidegate.query.types.sqltype import sql_type
from tidegate.query.types.textual import ilike, like
from tidegate.query.user_function import all_registered, check_count, registered, user_call
from tidegate.schema import type_name

__all__ = ["UnknownKernel", "bind", "bind_predicate", "sql_type"]

_ARITHMETIC = {
    exp.Add: "add",
    exp.Sub: "subtract",
    exp.Mul: "multiply",
    exp.Div: "divide",
    exp.Mod: "remainder",
}
_COMPARISON = {
    exp.EQ: "eq",
    exp.NEQ: "ne",
    exp.LT: "lt",
    exp.LTE: "le",
    exp.GT: "gt",
    exp.GTE: "ge",
    exp.NullSafeEQ: "null_safe_eq",
    exp.EqualNull: "null_safe_eq",
}
_BITS = {exp.BitwiseAnd: "bit_and", exp.BitwiseOr: "bit_or", exp.BitwiseXor: "bit_xor"}
_UNSIGNED = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}


def bind(node: exp.Expr, columns: Mapping[str, pa.DataType], where: str) -> Expr:
    """Resolves the names of an expression and gives it Spark's types.

    Raises QueryError for mistakes, and UnknownKernel for what only Spark can evaluate. A bare NULL
    becomes a string. A constant that cannot be converted to the type it needs raises here, unless
    it is in a branch that rows may not take.
    """
    return _Binder(columns, where).expression(node, NULL)


def bind_predicate(node: exp.Expr, columns: Mapping[str, pa.DataType], where: str) -> Expr:
    """Binds a condition, which must be boolean."""
    bound = _Binder(columns, where).expression(node, BOOL)
    if bound.type != BOOL:
        got = f"{node.sql('spark')} of type {type_name(bound.type)}"
        raise QueryError(where, "a condition must be boolean", got, "Compare it with something.")
    return bound


class _Binder:
    """One binding: the columns in scope, and how errors begin."""

    def __init__(self, columns: Mapping[str, pa.DataType], where: str) -> None:
        self.columns = columns
        self.where = where

    def expression(self, node: exp.Expr, null: pa.DataType) -> Expr:
        """Binds a whole expression; a bare NULL gets the type `null`, or string."""
        bound = self.bind(node)
        require_readable(bound, self.where)
        if bound.type == NULL:
            return Literal(None, STRING if null == NULL else null)
        return bound

    def bind(self, node: exp.Expr) -> Expr:
        return self._value(self.operand(node))

    def operand(self, node: exp.Expr) -> Expr | CalendarInterval:
        """Binds a node to an expression, or to a constant interval, which is no value by itself.

        A chain of operators is a tree as deep as the chain is long, so it is walked in a loop, not
        by recursion.
        """
        chain: list[exp.Binary] = []
        while isinstance(node, exp.Paren | exp.Alias) or type(node) in _CHAINED:
            if isinstance(node, exp.Binary):
                chain.append(node)
            node = node.this
        value = self._single(node)
        for link in reversed(chain):
            right = self.operand(link.expression)
            if isinstance(link, exp.Add | exp.Sub):
                value = self._sum(link, value, right)
            else:
                value = _CHAINED[type(link)](self, link, self._value(value), self._value(right))
        return value

    def _value(self, operand: Expr | CalendarInterval) -> Expr:
        return operand.span(self.where) if isinstance(operand, CalendarInterval) else operand

    def _single(self, node: exp.Expr) -> Expr | CalendarInterval:
        if isinstance(node, exp.Interval):
            return read_interval(node, self.where)
        kind = type(node)
        if kind in _HANDLERS:
            return _HANDLERS[kind](self, node)
        call = call_of(node)
        if call is not None:
            return self._function(node, *call)
        raise self._unknown(node, spelling(node))

    def _sum(
        self, node: exp.Binary, left: Expr | CalendarInterval, right: Expr | CalendarInterval
    ) -> Expr | CalendarInterval:
        if isinstance(right, CalendarInterval) and isinstance(node, exp.Sub):
            right = CalendarInterval(-right.months, -right.micros, right.days_only)
        if isinstance(left, CalendarInterval) and isinstance(right, CalendarInterval):
            if (left.months or right.months) and (left.micros or right.micros):
                raise self._unknown(node, "an interval of months and days")
            days_only = left.days_only and right.days_only
            return CalendarInterval(
                left.months + right.months, left.micros + right.micros, days_only
            )
        if isinstance(right, CalendarInterval):
            return operator.shift(left, right, self.where)  # type: ignore[arg-type]
        if isinstance(left, CalendarInterval):
            if isinstance(node, exp.Sub):
                return operator.arithmetic(
                    "subtract", left.span(self.where), right, self.where, (False, False)
                )
            return operator.shift(right, left, self.where)
        return self._arithmetic(node, left, right)

    def _arithmetic(self, node: exp.Binary, left: Expr, right: Expr) -> Expr:
        written = (_is_written(node.this), _is_written(node.expression))
        return operator.arithmetic(_ARITHMETIC[type(node)], left, right, self.where, written)

    def _div(self, _: exp.Binary, left: Expr, right: Expr) -> Expr:
        return operator.int_divide(left, right, self.where)

    def _negation(self, node: exp.Neg) -> Expr:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return literal_number("-" + str(node.this.this), self.where)
        value = self.bind(node.this)
        if value.type != pa.duration("us"):
            value = number(value, self.where)
        return make("negate", [value], value.type)

    def _comparison(self, node: exp.Binary) -> Expr:
        sides = self.bind(node.this), self.bind(node.expression)
        return operator.compare(_COMPARISON[type(node)], *sides, self.where)

    def _distinct(self, node: exp.Binary) -> Expr:
        sides = self.bind(node.this), self.bind(node.expression)
        return make("not", [operator.compare("null_safe_eq", *sides, self.where)], BOOL)

    def _between(self, node: exp.Between) -> Expr:
        if node.args.get("symmetric"):
            raise self._unknown(node, "BETWEEN SYMMETRIC")
        value, low, high = (self.bind(node.args[k]) for k in ("this", "low", "high"))
        floor = operator.compare("ge", value, low, self.where)
        return operator.connect(
            "and", floor, operator.compare("le", value, high, self.where), self.where
        )

    def _in(self, node: exp.In) -> Expr:
        if node.args.get("query") or node.args.get("unnest") or not node.expressions:
            raise self._unknown(node, "IN with a subquery")
        members = [self.bind(member) for member in node.expressions]
        return operator.member(self.bind(node.this), members, self.where)

    def _is(self, node: exp.Is) -> Expr:
        value = self.bind(node.this)
        if isinstance(node.expression, exp.Null):
            return is_null([value], self.where)
        if isinstance(node.expression, exp.Boolean):
            value = operator.boolean(value, self.where, "IS TRUE and IS FALSE")
            return make("is_true" if node.expression.this else "is_false", [value], BOOL)
        raise self._unknown(node, "IS")

    def _like(self, node: exp.Expr) -> Expr:
        escape: list[Expr] = []
        if isinstance(node, exp.Escape):
            escape = [self.bind(node.expression)]
            node = node.this
        if not isinstance(node, exp.Like | exp.ILike) or isinstance(
            node.expression, exp.Any | exp.All
        ):
            raise self._unknown(node, "LIKE ANY")
        build = ilike if isinstance(node, exp.ILike) else like
        result = build([self.bind(node.this), self.bind(node.expression), *escape], self.where)
        return make("not", [result], BOOL) if node.args.get("negate") else result

    def _connective(self, node: exp.Connector) -> Expr:
        """Binds AND and OR; a long chain becomes a balanced tree in the same order."""
        op = "and" if isinstance(node, exp.And) else "or"
        sides = [self.bind(side) for side in flattened(node, type(node))]
        while len(sides) > 1:
            pairs = zip(sides[::2], sides[1::2], strict=False)
            odd = sides[-1:] if len(sides) % 2 else []
            sides = [operator.connect(op, *pair, self.where) for pair in pairs] + odd
        return sides[0]

    def _not(self, node: exp.Not) -> Expr:
        return make("not", [operator.boolean(self.bind(node.this), self.where, "NOT")], BOOL)

    def _case(self, node: exp.Case) -> Expr:
        subject = self.bind(node.this) if node.this else None
        pairs = []
        for arm in node.args["ifs"]:
            test = self.bind(arm.this)
            if subject is not None:
                test = operator.compare("eq", subject, test, self.where)
            pairs.append((test, self.bind(arm.args["true"])))
        default = node.args.get("default")
        return operator.choose(pairs, self.bind(default) if default else None, self.where)

    def _if(self, node: exp.If) -> Expr:
        default = node.args.get("false")
        pair = (self.bind(node.this), self.bind(node.args["true"]))
        return operator.choose([pair], self.bind(default) if default else None, self.where)

    def _cast(self, node: exp.Cast) -> Expr:
        op = "try_cast" if isinstance(node, exp.TryCast) and node.args.get("safe") else "cast"
        return cast(self.bind(node.this), sql_type(node.to, self.where), self.where, op)

    def _to_date(self, node: exp.TsOrDsToDate) -> Expr:
        if node.args.get("format"):
            raise self._unknown(node, "to_date with a format")
        return cast(self.bind(node.this), pa.date32(), self.where)

    def _bits(self, node: exp.Binary, left: Expr, right: Expr) -> Expr:
        return bits(_BITS[type(node)])([left, right], self.where)

    def _bit_not(self, node: exp.BitwiseNot) -> Expr:
        return bits("bit_not")([self.bind(node.this)], self.where)

    def _literal(self, node: exp.Literal) -> Expr:
        text = str(node.this)
        return Literal(text, STRING) if node.is_string else literal_number(text, self.where)

    def _pipes(self, node: exp.DPipe) -> Expr:
        parts = [self.bind(part) for part in flattened(node, exp.DPipe)]
        return FUNCTIONS["concat"].build(parts, self.where)

    def _function(self, node: exp.Expr, name: str, nodes: list[exp.Expr]) -> Expr:
        function = FUNCTIONS.get(name)
        if function is None:
            own = registered(name)
            if own is None:
                raise self._unknown(node, name)
            check_count(own.name, len(nodes), *own.counts, self.where)
            return user_call(own, [self.bind(n) for n in nodes], self.where)
        if name in ("floor", "ceil") and len(nodes) == 2:
            raise self._unknown(node, f"{name} with digits")
        check_count(name, len(nodes), function.least, function.most, self.where)
        return function.build([self.bind(n) for n in nodes], self.where)

    def _column(self, node: exp.Column) -> Expr:
        """A column, or a field of a struct column."""
        name, *fields = (part.name for part in node.parts)
        found = self._known(name, self.columns, ".".join([name, *fields]))
        return self._fields(self._typed(found), fields)

    def _typed(self, name: str) -> Expr:
        type_ = self.columns[name]
        column = Column(name, type_)
        if type_ in _UNSIGNED:
            return cast(column, _UNSIGNED[type_], self.where)
        return column

    def _fields(self, value: Expr, names: list[str]) -> Expr:
        """Fields inside fields of a struct."""
        for name in names:
            if not pa.types.is_struct(value.type):
                raise QueryError(
                    self.where,
                    "only a struct has fields",
                    f".{name} of a {type_name(value.type)}",
                    "Leave it out.",
                )
            inside = {f.name: f.type for f in value.type}
            found = self._known(name, inside, name)
            value = make("field", [value, Literal(found, STRING)], inside[found])
        return value

    def _dot(self, node: exp.Dot) -> Expr:
        return self._fields(self.bind(node.this), [node.expression.name])

    def _known(self, name: str, names: Mapping[str, object], written: str) -> str:
        found = self._match(name, names)
        if found is None:
            raise QueryError(self.where, "the column must exist", written, near(name, list(names)))
        return found

    def _match(self, name: str, names: Mapping[str, object]) -> str | None:
        """The exact name, or the only one that differs in case."""
        if name in names:
            return name
        same = [known for known in names if known.lower() == name.lower()]
        if len(same) > 1:
            got = f"{name}, which may be {' or '.join(same)}"
            raise QueryError(self.where, "a name must be clear", got, "Write it as it is spelt.")
        return same[0] if same else None

    def _unknown(self, node: exp.Expr, name: str) -> QueryError:
        if isinstance(node, exp.AggFunc) or find_sql(name) is not None:
            return QueryError(
                self.where,
                "an aggregate must stand in the select list of a windowed query or in HAVING",
                node.sql("spark"),
            )
        if isinstance(node, exp.Query | exp.Subquery | exp.Exists | exp.Window):
            what = "window function with OVER" if isinstance(node, exp.Window) else "subquery"
            return QueryError(
                self.where, f"an expression must not hold a {what}", node.sql("spark")
            )
        if is_unstable(node):
            return unstable(self.where, node.sql("spark"))
        if isinstance(node, exp.Placeholder | exp.Parameter):
            return QueryError(
                self.where, "values must be written out", f"{node.sql('spark')} for one"
            )
        written = node.sql("spark")
        if isinstance(node, exp.RegexpLike):
            name = "rlike"
        elif isinstance(node, exp.SimilarTo):
            return QueryError(self.where, "SIMILAR TO is not there", written, "Use RLIKE or LIKE.")
        question = likely(name, sorted({*FUNCTIONS, *ALIASES, *all_registered()}), alike=0.75)
        return UnknownKernel(
            self.where,
            f"{name.upper()} needs Spark, it is not among the functions that run without it",
            written,
            f"{f'{question} Else run' if question else 'Run'} with a Spark master.",
        )


def _is_written(node: exp.Expr) -> bool:
    """Whether a node is a number literal, which has a precision of its own among decimals."""
    node = node.unnest()
    return isinstance(node.this if isinstance(node, exp.Neg) else node, exp.Literal)


_CHAINED: dict[type[exp.Expr], Callable[..., Expr]] = {
    **dict.fromkeys(_ARITHMETIC, _Binder._arithmetic),
    exp.IntDiv: _Binder._div,
    **dict.fromkeys(_BITS, _Binder._bits),
}
"""Operators that often form long chains; called with the node and its two bound sides."""

_HANDLERS: dict[type[exp.Expr], Callable[..., Expr]] = {
    exp.Column: _Binder._column,
    exp.Dot: _Binder._dot,
    exp.Literal: _Binder._literal,
    exp.Boolean: lambda _, node: Literal(bool(node.this), BOOL),
    exp.Null: lambda _, node: Literal(None, NULL),
    exp.Neg: _Binder._negation,
    **dict.fromkeys(_COMPARISON, _Binder._comparison),
    exp.NullSafeNEQ: _Binder._distinct,
    exp.Between: _Binder._between,
    exp.In: _Binder._in,
    exp.Is: _Binder._is,
    exp.Like: _Binder._like,
    exp.ILike: _Binder._like,
    exp.Escape: _Binder._like,
    exp.And: _Binder._connective,
    exp.Or: _Binder._connective,
    exp.Not: _Binder._not,
    exp.Case: _Binder._case,
    exp.If: _Binder._if,
    exp.Cast: _Binder._cast,
    exp.TryCast: _Binder._cast,
    exp.TsOrDsToDate: _Binder._to_date,
    exp.BitwiseNot: _Binder._bit_not,
    exp.DPipe: _Binder._pipes,
}
