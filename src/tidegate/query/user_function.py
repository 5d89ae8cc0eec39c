"""Registers users' own scalar functions (`tidegate.function`) and finds them by name.

The registry belongs to the Python process: SQL, the Python API and both runners see the same
functions.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from tidegate.errors import QueryError
from tidegate.expression.tree import Call, Expr, Literal
from tidegate.expression.user_function import USER, UserFunction
from tidegate.operate.aggregate.registry import find_sql
from tidegate.query.expression import Expression, to_node
from tidegate.query.types.coercion import NULL, STRING, cast
from tidegate.query.types.determinism import is_unstable
from tidegate.query.types.form import ALIASES
from tidegate.query.types.function import FUNCTIONS
from tidegate.query.types.sqltype import sql_type
from tidegate.schema import own_type

_KNOWN: dict[str, ColumnFunction] = {}
_CHANGES = itertools.count(1)
_newest = [0]


class ColumnFunction(UserFunction):
    """A declared function: given arrays it computes, given expressions it builds an expression."""

    def __call__(self, *arguments: Any) -> Any:
        """`tax(col("fare"))` and `tax("fare")` are expressions; `tax(array)` is what it returns."""
        if arguments and all(isinstance(a, pa.Array | pa.ChunkedArray) for a in arguments):
            return self.call(*arguments)
        check_count(self.name, len(arguments), *self.counts, self.name)
        nodes = [to_node(argument) for argument in arguments]
        return Expression(exp.Anonymous(this=self.name, expressions=nodes))

    @property
    def __doc__(self) -> str | None:  # type: ignore[override]
        return self.call.__doc__


def function(
    call: Callable[..., Any] | None = None,
    /,
    *,
    returns: str | pa.DataType | None = None,
    takes: Sequence[str | pa.DataType] | None = None,
    name: str | None = None,
) -> Any:
    """Declare a Python function over whole columns, for SQL and Python, with Spark or without.

    ::

        @tidegate.function(returns="DOUBLE")
        def tax(fare: pa.Array) -> pa.Array:
            return pc.multiply(fare, 0.2)

    It gets one pyarrow array per argument, all of equal length, and returns one of that length. A
    row's value must not depend on the other rows, and must be the same in every run. `returns` is
    its SQL type; `takes` are types that arguments are cast to. SQL calls it by its name, or by
    `name`, in any case.
    """
    if call is not None and not callable(call):
        raise QueryError("function", "a function must be given", repr(call))

    def declare(call: Callable[..., Any]) -> ColumnFunction:
        called = name or str(getattr(call, "__name__", "?"))
        where = f"function {called}"
        if returns is None:
            raise QueryError(
                where,
                "must have the type that it returns",
                "none",
                'Write @tidegate.function(returns="DOUBLE"), or another type of SQL.',
            )
        made = ColumnFunction(
            _name(called, where),
            call,
            _type(returns, where),
            None if takes is None else tuple(_type(t, where) for t in takes),
        )
        _check_signature(made, where)
        _register(made, where)
        return made

    return declare if call is None else declare(call)


def registered(name: str) -> ColumnFunction | None:
    """The function of a name, in any case; None if there is none."""
    return _KNOWN.get(name.lower())


def all_registered() -> dict[str, ColumnFunction]:
    """All functions by name."""
    return dict(_KNOWN)


def registry_version() -> int:
    """A number that changes whenever a function is registered."""
    return _newest[0]


def user_call(function: UserFunction, arguments: Sequence[Expr], where: str) -> Expr:
    """A call of a function on bound arguments, cast to the types it takes."""
    args = list(arguments)
    if function.takes is not None:
        args = [cast(a, t, where) for a, t in zip(args, function.takes, strict=False)]
    args = [Literal(None, STRING) if a.type == NULL else a for a in args]
    return Call(USER, (Literal(function, NULL), *args), function.returns)


def check_count(name: str, given: int, least: int, most: int | None, where: str) -> None:
    """Raises if a call has too few or too many arguments."""
    if least <= given and (most is None or given <= most):
        return
    more = "" if most == least else " or more" if most is None else f" to {most}"
    requirement = f"{name.upper()} must have {least}{more} argument(s)"
    raise QueryError(where, requirement, str(given))


def _register(made: ColumnFunction, where: str) -> None:
    key = made.name.lower()
    known = _KNOWN.get(key)
    if known is not None and known.place != made.place:
        raise QueryError(
            where,
            "a name must stand for one function",
            f"{known.place} and {made.place}",
            "Give one of them another name with name=.",
        )
    _KNOWN[key] = made
    _newest[0] = next(_CHANGES)


def _name(name: str, where: str) -> str:
    """Checks that SQL reads the name as an unknown function, which then means this one."""
    taken = name.lower() in FUNCTIONS or name.lower() in ALIASES or find_sql(name) is not None
    try:
        read = sqlglot.parse_one(f"{name}(x)", dialect="spark")
    except SqlglotError:
        read = exp.Null()
    if not name.isidentifier() or not isinstance(read, exp.Anonymous):
        taken = taken or isinstance(read, exp.Func)
        requirement = "a function's name must be a word that is free in SQL"
        if not taken:
            raise QueryError(where, requirement, repr(name), "Give it another with name=.")
    if taken or is_unstable(read):
        raise QueryError(
            where,
            "a function's name must be free",
            f"{name}, a function of SQL",
            "Give it another with name=.",
        )
    return name


def _type(written: str | pa.DataType, where: str) -> pa.DataType:
    if isinstance(written, pa.DataType):
        return own_type(written, where)
    try:
        return sql_type(exp.DataType.build(written, dialect="spark"), where)
    except SqlglotError:
        raise QueryError(
            where, "a type must be one of SQL", written, "Write DOUBLE, BIGINT, STRING, ..."
        ) from None


def _check_signature(made: UserFunction, where: str) -> None:
    try:
        _, most = made.counts
    except (TypeError, ValueError):
        most = None  # a built-in that does not tell
    if most == 0:
        raise QueryError(where, "must take at least one array", str(inspect.signature(made.call)))
    if made.takes is not None and most is not None and len(made.takes) != most:
        raise QueryError(
            where, f"takes= must have {most} types, one for each argument", str(len(made.takes))
        )
