"""Expressions in Python with col(), lit() and operators; each holds a sqlglot tree.

``col("fare") * 2 > lit(10)`` builds the same tree as the SQL text; nothing is evaluated here. As in
similar libraries, a string is a column name where a function or a stream method expects an
expression (``call("upper", "name")``, ``group_by("route")``), but a text constant beside an
operator (``col("route") == "A"``).
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import NoReturn, cast

from sqlglot import exp

from tidegate.calendar.microsecond import MICROSECOND
from tidegate.errors import QueryError
from tidegate.nesting import MOST_NESTED, nested, too_deep
from tidegate.query.name import expression_text
from tidegate.query.surface import habit
from tidegate.query.surface.signature import called_as

_SUMS = (exp.Add, exp.Sub)
_LEFT_FIRST: dict[type[exp.Expr], tuple[type[exp.Expr], ...]] = {
    **dict.fromkeys(_SUMS, _SUMS),
    **{kind: (kind,) for kind in (exp.Mul, exp.And, exp.Or)},
}
"""For each operator, the operators that need no parentheses on its left."""

_ATOMS = (exp.Column, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Func, exp.Interval)


_Operator = Callable[["Expression", object], "Expression"]


def _operators(kind: type[exp.Binary]) -> tuple[_Operator, _Operator]:
    """The method of an operator when the expression is on its left, and when it is on its right."""
    return (
        lambda self, other: Expression(None, _Link(kind, self, _constant(other))),
        lambda self, other: Expression(_binary(kind, _constant(other), _constant(self))),
    )


class Expression:
    """An expression over a stream's columns; operators and methods make larger ones.

    Combine conditions with ``&``, ``|`` and ``~`` and parentheses. ``and``, ``or``, ``not`` and
    ``if`` would need a value now, and there is none before the query runs.
    """

    __slots__ = ("_link", "_node")
    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None  # numbers of numpy leave operators to the expression on their right

    def __init__(self, node: exp.Expr | None, link: _Link | None = None) -> None:
        self._node = node
        self._link = link

    @property
    def node(self) -> exp.Expression:
        """The tree, built when first read, so that a sum of n terms is built once."""
        if self._node is None:
            self._node = self._made()
        return cast("exp.Expression", self._node)  # every node is one, sqlglot's stubs say less

    def _made(self) -> exp.Expr:
        links: list[_Link] = []
        first = self
        while first._node is None and first._link is not None:
            links.append(first._link)
            first = first._link.left
        # Copies, because a node of sqlglot knows one parent and an expression may be used twice.
        node: exp.Expr = first.node.unalias().copy()
        for link in reversed(links):
            node = _binary(link.kind, node, link.right.copy())
        return node

    @nested
    def __repr__(self) -> str:
        return f"Expression({expression_text(self.node)})"

    def __bool__(self) -> bool:
        raise self._misuse(
            "an expression has no truth value before the query runs",
            "Use & for and, | for or, ~ for not, with parentheses around each comparison, "
            ".between(a, b) for a <= x <= b, and .isin(...) for in.",
        )

    def __iter__(self) -> NoReturn:
        raise self._misuse(
            "an expression is not a list",
            "Python's sum, min and max take lists: write tg.sum(...), tg.min(...), tg.max(...).",
        )

    def __len__(self) -> NoReturn:
        remedy = 'Write call("length", ...) for the length of a text.'
        raise self._misuse("an expression is not a list", remedy)

    def __contains__(self, other: object) -> NoReturn:
        raise self._misuse(
            "in would need the value now, and there is none before the query runs",
            "Write .contains(text), or .isin(...) for one of several values.",
        )

    def __getitem__(self, key: object) -> NoReturn:
        remedy = 'Write for example expr("place.city") or expr("stops[0]").'
        raise self._misuse("fields and items are written as in SQL", remedy, f"[{key!r}]")

    def _misuse(self, requirement: str, remedy: str, got: str | None = None) -> QueryError:
        return QueryError("expression", requirement, got or expression_text(self.node), remedy)

    def __round__(self, digits: int = 0) -> Expression:
        return call("round", self, digits)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise habit.stranger("expression", name, habit.EXPRESSION, dir(type(self)), _as_call(name))

    def _with(self, kind: type[exp.Binary], other: object) -> Expression:
        return Expression(None, _Link(kind, self, _constant(other)))

    __add__, __radd__ = _operators(exp.Add)
    __sub__, __rsub__ = _operators(exp.Sub)
    __mul__, __rmul__ = _operators(exp.Mul)
    __truediv__, __rtruediv__ = _operators(exp.Div)
    __mod__, __rmod__ = _operators(exp.Mod)
    __and__, __rand__ = _operators(exp.And)
    __or__, __ror__ = _operators(exp.Or)
    __lt__, __gt__ = _operators(exp.LT)[0], _operators(exp.GT)[0]
    __le__, __ge__ = _operators(exp.LTE)[0], _operators(exp.GTE)[0]

    def __pow__(self, other: object) -> Expression:
        return call("power", self, Expression(_constant(other)))

    def __neg__(self) -> Expression:
        return Expression(exp.Neg(this=_wrapped(self.node)))

    def __pos__(self) -> Expression:
        return self

    def __abs__(self) -> Expression:
        return self.abs()

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return self._with(exp.EQ, other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return self._with(exp.NEQ, other)

    def __invert__(self) -> Expression:
        return Expression(exp.Not(this=_wrapped(self.node)))

    def alias(self, name: str) -> Expression:
        """The same value under another name in the output."""
        return Expression(exp.alias_(self.node.unalias(), name, quoted=True))

    def abs(self) -> Expression:
        return call("abs", self)

    def is_null(self) -> Expression:
        return Expression(exp.Is(this=_wrapped(self.node), expression=exp.Null()))

    def is_not_null(self) -> Expression:
        return Expression(exp.Not(this=self.is_null().node))

    def eq_null_safe(self, other: object) -> Expression:
        """Equality in which NULL equals NULL."""
        return self._with(exp.NullSafeEQ, other)

    def isin(self, *members: object) -> Expression:
        """Whether it equals one of the values, given as arguments or as one list."""
        if len(members) == 1 and isinstance(members[0], list | tuple | set | frozenset):
            given = members[0]
            members = tuple(sorted(given) if isinstance(given, set | frozenset) else given)
        if not members:
            raise QueryError("isin", "there must be at least one value", "none")
        nodes = [_constant(member) for member in members]
        return Expression(exp.In(this=_wrapped(self.node), expressions=nodes))

    def between(self, low: object, high: object) -> Expression:
        """Whether it is from low to high, both included."""
        bounds = {"low": _wrapped(_constant(low)), "high": _wrapped(_constant(high))}
        return Expression(exp.Between(this=_wrapped(self.node), **bounds))

    def like(self, pattern: str) -> Expression:
        """SQL's LIKE: % for any text, _ for one character."""
        return self._with(exp.Like, pattern)

    def startswith(self, text: str) -> Expression:
        return call("startswith", self, lit(text))

    def endswith(self, text: str) -> Expression:
        return call("endswith", self, lit(text))

    def contains(self, text: str) -> Expression:
        return call("contains", self, lit(text))

    def cast(self, type_: str) -> Expression:
        """The value as another type, by its Spark name ("bigint", "decimal(10,2)")."""
        return Expression(exp.cast(self.node.unalias().copy(), type_, dialect="spark"))


@dataclass(frozen=True, eq=False)
class _Link:
    """An operator that is not built yet: its left expression and its right operand."""

    kind: type[exp.Binary]
    left: Expression
    right: exp.Expr


class When(Expression):
    """Values under conditions; the first true condition counts. NULL if none is true."""

    __slots__ = ("_pairs",)

    def __init__(self, pairs: tuple[tuple[exp.Expr, exp.Expr], ...]) -> None:
        super().__init__(_case(pairs))
        self._pairs = pairs

    @called_as('when(col("fare") > 5, "high").when(col("fare") > 2, "mid").otherwise("low")')
    def when(self, condition: object, value: object) -> When:
        """Adds a value for rows where this condition is true and none before it is."""
        return When((*self._pairs, (to_node(condition), _constant(value))))

    @called_as('when(col("fare") > 5, "high").otherwise("low")')
    def otherwise(self, value: object) -> Expression:
        """The value where no condition is true."""
        return Expression(_case(self._pairs, _constant(value)))


class Side:
    """The columns of one side of a join, as attributes or by name: ``left.x``, ``left["x"]``."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, column: str) -> Expression:
        if column.startswith("__"):
            raise AttributeError(column)
        return self[column]

    def __getitem__(self, column: str) -> Expression:
        return Expression(exp.column(_identifier(column), table=self._name))

    def __repr__(self) -> str:
        return self._name


left = Side("left")
right = Side("right")


def col(name: str) -> Expression:
    """A column by its exact name."""
    if not isinstance(name, str) or not name:
        raise QueryError("col", "a column's name must be a text", repr(name))
    return Expression(exp.column(_identifier(name)))


def lit(value: object) -> Expression:
    """A constant; use it for text where a string would be a column name."""
    return value if isinstance(value, Expression) else Expression(_literal(value))


def call(name: str, *args: object) -> Expression:
    """A call of a Spark SQL function; strings among the arguments are column names."""
    if not name.replace("_", "").isalnum():
        raise QueryError("call", "a function's name must be a word", repr(name))
    return Expression(exp.func(name, *(to_node(arg) for arg in args), dialect="spark"))


@called_as('when(col("fare") > 5, "high").otherwise("low")')
def when(condition: object, value: object) -> When:
    """A value where a condition is true; add others with `.when`, the rest with `.otherwise`.

    The values are constants, also text, or expressions: ``when(col("paid"), col("fare"))``.
    """
    return When(((to_node(condition), _constant(value)),))


def to_node(value: object) -> exp.Expression:
    """The tree of an argument: a string is a column name, another scalar a constant."""
    if isinstance(value, str):
        return col(value).node
    node = Expression(_constant(value)).node
    _require_shallow(node, "expression")
    return node


def _require_shallow(node: exp.Expr, where: str) -> None:
    """Raises for deep nesting; chains of operators may have any length."""
    stack = [(node, 0)]
    while stack:
        part, depth = stack.pop()
        if depth > MOST_NESTED:
            raise too_deep(where, "more")
        for child in part.iter_expressions():
            flat = isinstance(part, exp.Paren) or (
                isinstance(part, exp.Binary) and child is part.this
            )
            stack.append((child, depth if flat else depth + 1))


def _case(
    pairs: tuple[tuple[exp.Expr, exp.Expr], ...], default: exp.Expr | None = None
) -> exp.Expr:
    ifs = [exp.If(this=condition.copy(), true=value.copy()) for condition, value in pairs]
    return exp.Case(ifs=ifs, default=default)


def _as_call(name: str) -> str | None:
    """What to write instead, if a SQL function was used as a method."""
    from tidegate.query.types.form import ALIASES
    from tidegate.query.types.function import FUNCTIONS

    known = name in FUNCTIONS or name in ALIASES
    return f'It is a function of SQL: write call("{name}", ...).' if known else None


def _constant(value: object) -> exp.Expr:
    if isinstance(value, Expression):
        return value.node.unalias().copy()
    if isinstance(value, exp.Expr):
        return value.copy()
    return _literal(value)


def _identifier(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)


def _wrapped(node: exp.Expr) -> exp.Expr:
    """A copy of an operand, in parentheses if an operator next to it could take it apart."""
    return _parenthesized(node.unalias().copy())


def _parenthesized(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
        return node
    if isinstance(node, _ATOMS) and not isinstance(node, exp.Connector | exp.Binary | exp.Case):
        return node
    return exp.Paren(this=node)


def _binary(kind: type[exp.Binary], first: exp.Expr, second: exp.Expr) -> exp.Expr:
    """An operator over nodes without another parent; a chain needs no parentheses on its left."""
    chain = isinstance(first, _LEFT_FIRST.get(kind, ()))
    return kind(this=first if chain else _parenthesized(first), expression=_parenthesized(second))


def _literal(value: object) -> exp.Expr:
    """A constant in Spark SQL; a time without a zone is UTC, a float is a double."""
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, str):
        return exp.Literal.string(value)
    if isinstance(value, int):
        return _signed(str(value))
    if isinstance(value, float):
        if not math.isfinite(value):
            return exp.cast(exp.Literal.string(str(value)), "double", dialect="spark")
        text = repr(float(value))  # that of numpy has its type in it
        return _signed(text if "e" in text else f"{text}e0")
    if isinstance(value, Decimal) and value.is_finite():
        return _signed(format(value, "f") if value.as_tuple().exponent != 0 else f"{value:f}.")
    if isinstance(value, dt.datetime):
        moment = value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value.astimezone(dt.UTC)
        text = moment.replace(tzinfo=None).isoformat(" ")
        return exp.cast(exp.Literal.string(text), "timestamp", dialect="spark")
    if isinstance(value, dt.date):
        return exp.cast(exp.Literal.string(value.isoformat()), "date", dialect="spark")
    if isinstance(value, dt.timedelta):
        micros = value // MICROSECOND
        return exp.Interval(this=exp.Literal.string(str(micros)), unit=exp.var("MICROSECONDS"))
    item = getattr(value, "item", None)
    if callable(item) and getattr(value, "shape", None) == ():
        return _literal(item())
    raise QueryError(
        "expression",
        "a constant must be a number, text, boolean, date, time, duration or None",
        type(value).__name__,
        'Columns are written col("name"), aggregates stand in agg() only.',
    )


def _signed(text: str) -> exp.Expr:
    number = exp.Literal.number(text.lstrip("-"))
    return exp.Neg(this=number) if text.startswith("-") else number
