"""Resolves the column names in expressions to the columns of a node's child."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from sqlglot import exp

from tidegate.errors import QueryError, near

EVENT_TIME = "ts"
"""The implicit column of a stream that has no window yet."""

WINDOW = ("window_start", "window_end")
"""The implicit columns of rows after a window."""

_OPERATORS = (exp.Binary, exp.Unary, exp.Between, exp.In, exp.Case, exp.Interval)

NamedExpr = tuple[str, exp.Expression]


class SideName(str):
    """A column of one side of a join: the side's name, a dot, the column's own name.

    If the side is itself a join, the column's own name is a SideName too.
    """

    side: str
    column: str

    def __new__(cls, side: str, column: str) -> SideName:
        name = super().__new__(cls, f"{side}.{column}")
        name.side, name.column = side, column
        return name

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return (self.side, self.column)

    @property
    def plain(self) -> str:
        """The name without any side."""
        return self.column.plain if isinstance(self.column, SideName) else self.column


class Names(tuple[str, ...]):
    """The columns of a node, with a lookup by name in constant time."""

    def find(self, name: str) -> str | None:
        """See `find_name`."""
        if name in self._exact:
            return name
        alike = self._alike.get(name.lower(), ())
        return alike[0] if len(alike) == 1 else None

    @cached_property
    def _exact(self) -> frozenset[str]:
        return frozenset(self)

    @cached_property
    def _alike(self) -> dict[str, list[str]]:
        alike: dict[str, list[str]] = {}
        for name in self:
            alike.setdefault(name.lower(), []).append(name)
        return alike


def column(name: str) -> exp.Column:
    """A reference to a column; names are compared exactly, so nothing is quoted."""
    return exp.Column(this=exp.Identifier(this=name, quoted=False))


def field(of: exp.Expression, *names: str) -> exp.Expression:
    """A reference to a field of a struct, or to a field inside a field."""
    for name in names:
        of = exp.Dot(this=of, expression=exp.to_identifier(name))
    return of


def is_column(expression: exp.Expression, names: Collection[str]) -> bool:
    """Whether an expression is just one of these columns."""
    return isinstance(expression, exp.Column) and expression.name in names


def result_name(name: str, names: Sequence[str], taken: Collection[str] = (EVENT_TIME,)) -> str:
    """The name in a result for one of the columns `names`, if others are `taken` (in lower case).

    SQL ignores case. A column with a taken name gets a number, as in DuckDB: `ts_1` beside the
    event time `ts`.
    """
    if name.lower() not in taken:
        return name
    known = {*taken, *(n.lower() for n in names)}
    numbered = (f"{name}_{i}" for i in itertools.count(1))
    return next(n for n in numbered if n.lower() not in known)


def is_plain(expression: exp.Expression) -> bool:
    """Whether an expression is just the name of a column."""
    if not isinstance(expression, exp.Column) or not isinstance(expression.this, exp.Identifier):
        return False
    return len(expression.parts) == 1


def find_name(name: str, names: Sequence[str]) -> str | None:
    """The column that a name means: the exact one, else the only one that differs in case."""
    if isinstance(names, Names):
        return names.find(name)
    if name in names:
        return name
    alike = [n for n in names if n.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else None


def resolve(name: str, names: Sequence[str], where: str) -> str:
    """The column that a name means; raises for an unknown name and lists similar ones.

    After a join, the name alone is enough for a column that only one side has.
    """
    found = find_name(name, names)
    if found is None:
        found = _of_either_side(name, names, where)
    if found is None:
        raise no_column(name, names, where)
    return found


def no_column(name: str, names: Sequence[str], where: str, got: str | None = None) -> QueryError:
    """The error for a name that no column has."""
    return QueryError(where, "no column has this name", got or name, near(name, names))


def _of_either_side(name: str, names: Sequence[str], where: str) -> str | None:
    sides: dict[str, list[SideName]] = {}
    for known in names:
        if isinstance(known, SideName):
            sides.setdefault(known.side, []).append(known)
    held = [n for columns in sides.values() if (n := _column_of(columns, name))]
    if len(held) > 1:
        raise ambiguous(name, held, where)
    return held[0] if held else None


def _column_of(columns: Sequence[SideName], name: str) -> SideName | None:
    found = find_name(name, [c.column for c in columns])
    return next((c for c in columns if c.column == found), None)


def ambiguous(name: str, held: Sequence[str], where: str) -> QueryError:
    """The error for a column that both sides of a join have."""
    return QueryError(
        where, "a column of both sides must be qualified", name, f"{' or '.join(held)}?"
    )


def resolve_qualified(side: str, name: str, names: Sequence[str], where: str) -> str:
    """The column that a side's name and a column name mean after a join."""
    held = [n for n in names if isinstance(n, SideName)]
    columns = [n for n in held if n.side.lower() == side.lower()]
    if not held:
        raise QueryError(
            where,
            "a qualified column needs a join",
            f"{side}.{name}",
            "Write the column's name alone.",
        )
    if not columns:
        sides = list(dict.fromkeys(n.side for n in held))
        raise QueryError(where, "no side of the join has this name", side, near(side, sides))
    found = _column_of(columns, name)
    if found is not None:
        return found
    inner = [c for c in columns if c.plain.lower() == name.lower()]
    if len(inner) > 1:
        written = [f'{side}["{c.column}"]' for c in inner]
        raise ambiguous(f"{side}.{name}", written, where)
    if not inner:
        own = [c.column for c in columns]
        raise QueryError(where, f"{side} has no column of this name", name, near(name, own))
    return inner[0]


def canonical(expression: exp.Expression, names: Sequence[str], where: str) -> exp.Expression:
    """A copy of an expression in which every column is plain and named exactly as in `names`.

    So equal expressions become equal trees, whether they were written in SQL or in Python.
    """

    def fix(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Div):  # marks of the dialect it was parsed in; Spark's rules hold
            node.set("typed", None)
            node.set("safe", None)
        if not isinstance(node, exp.Column):
            return node
        if (inner := _field(node, names)) is not None:
            return inner
        if node.table:
            return column(resolve_qualified(node.table, node.name, names, where))
        return column(resolve(node.name, names, where))

    if isinstance(expression, exp.Column):  # most are nothing else, and there may be thousands
        return as_expression(fix(expression))
    return as_expression(expression.copy().transform(fix, copy=False))


def _field(node: exp.Column, names: Sequence[str]) -> exp.Expr | None:
    """The struct field that a dotted name means; None after a join, where dots name sides."""
    first, *fields = (part.name for part in node.parts)
    holder = find_name(first, names) if fields else None
    if holder is None or any(isinstance(n, SideName) for n in names):
        return None
    return field(column(holder), *fields)


def substitute(expression: exp.Expression, mapping: Mapping[str, exp.Expression]) -> exp.Expression:
    """A copy of an expression with columns replaced by expressions, in parentheses where needed."""

    def put(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and not node.table and node.name in mapping:
            return wrapped(mapping[node.name].copy())
        return node

    if is_plain(expression) and expression.name in mapping:
        return wrapped(mapping[expression.name].copy())
    return as_expression(expression.copy().transform(put, copy=False))


def wrapped(expression: exp.Expression) -> exp.Expression:
    """The expression, in parentheses if an operator next to it could take it apart."""
    if isinstance(expression, exp.Paren | exp.Dot) or not isinstance(expression, _OPERATORS):
        return expression
    return exp.Paren(this=expression)


def expression_text(expression: exp.Expr) -> str:
    """An expression in Spark SQL for people; names that are words are not quoted."""
    quoted = [i for i in expression.find_all(exp.Identifier) if i.args.get("quoted")]
    if quoted:
        expression = expression.copy()
        for identifier in expression.find_all(exp.Identifier):
            if identifier.name.isidentifier():
                identifier.set("quoted", False)
    return expression.sql(dialect="spark", comments=False)


def named_text(name: str, expression: exp.Expression) -> str:
    """A named expression for people; just the name if it is the same."""
    text = expression_text(expression)
    return text if name == text else f"{name} = {text}"


def conjuncts(predicate: exp.Expression) -> tuple[exp.Expression, ...]:
    """The conditions that AND joins, as they were written."""
    return tuple(as_expression(part) for part in flattened(predicate, exp.And))


def flattened(node: exp.Expr, kind: type[exp.Expr]) -> Iterator[exp.Expr]:
    """The operands of a chain of one associative operator, in order and without parentheses."""
    stack = [node]
    while stack:
        part = stack.pop()
        while isinstance(part, exp.Paren):
            part = part.this
        if isinstance(part, kind):
            stack += [part.expression, part.this]
        else:
            yield part


def distinct_names(names: Iterable[str], where: str) -> None:
    """Raises if two output columns have one name; case does not distinguish names."""
    seen: dict[str, str] = {}
    for name in names:
        if name.lower() in seen:
            raise QueryError(
                where,
                "every column needs a name of its own",
                f"{name} twice",
                "Give one of them another name with AS.",
            )
        seen[name.lower()] = name


def refuse_taken(names: Iterable[str], added: Iterable[str], where: str) -> None:
    """Raises if a column has the name of one that the clause `where` adds."""
    taken = {name.lower() for name in names}
    for name in added:
        if name.lower() in taken:
            raise QueryError(
                where,
                f"adds a column {name}, so no other may have this name",
                f"a column {name} in the query",
                "Give that one another name with AS.",
            )


def spark_name(node: exp.Expression) -> str:
    """The name that Spark gives to a column without one; sides of a join are not part of it."""
    if isinstance(node, exp.Column):
        return node.name.plain if isinstance(node.name, SideName) else str(node.name)
    if isinstance(node, exp.Dot):
        return str(node.expression.name)

    def plain(part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Column) and isinstance(part.name, SideName):
            return column(part.name.plain)
        if isinstance(part, exp.Count) and isinstance(part.this, exp.Star):
            return exp.Count(this=exp.Literal.number(1), big_int=True)
        return part

    text = (
        node.copy()
        .transform(plain, copy=False)
        .sql(dialect="spark", normalize_functions="lower", comments=False)
    )
    return f"({text})" if isinstance(node, exp.Binary) else text


def as_expression(node: exp.Expr) -> exp.Expression:
    """Narrows the type for mypy: sqlglot's stubs promise less than sqlglot does."""
    if not isinstance(node, exp.Expression):
        raise TypeError(f"not an expression: {node!r}")
    return node
