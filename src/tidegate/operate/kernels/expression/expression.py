"""Evaluates typed expression trees over columns of Arrow arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.descent import Step, descend
from tidegate.errors import TaskError
from tidegate.expression.tree import (
    Call,
    Column,
    Expr,
    Literal,
    describe,
    user_function,
)
from tidegate.expression.user_function import USER
from tidegate.operate.kernels.expression import (
    arithmetic,
    cast,
    comparison,
    mathematics,
    rounding,
    temporal,
    text,
)
from tidegate.operate.kernels.expression.condition import in_turns, must_take_turns, places_of
from tidegate.operate.kernels.expression.failure import RowFailure
from tidegate.operate.kernels.expression.user import called
from tidegate.operate.kernels.expression.vector import repeat
from tidegate.operate.kernels.order import flat


def _field(type_: pa.DataType, value: Any, name: Any) -> Any:
    return pc.struct_field(value, name.as_py()).cast(type_)


OPS: dict[str, Callable[..., Any]] = {
    **arithmetic.OPS,
    **cast.OPS,
    **comparison.OPS,
    **mathematics.OPS,
    **rounding.OPS,
    **temporal.OPS,
    **text.OPS,
    "field": _field,
}
"""Kernels by operation. A kernel gets the result type and the arguments: at least one array, the
others arrays of its length or scalars. `condition` decides which rows it gets."""


def evaluate(expr: Expr, table: pa.Table) -> pa.Array:
    """The value of an expression for every row of a table, as one flat array of its type.

    Costs one pass per operation; a column that is one chunk is not copied. Raises TaskError,
    naming the expression and the values, when a row has no value under ANSI rules.
    """
    if not table.num_rows:
        return pa.array([], expr.type)
    if isinstance(expr, Column):
        column = flat(table.column(expr.name))
        return column if column.type == expr.type else column.cast(expr.type)
    shared = expr.shared if isinstance(expr, Call) else frozenset[int]()
    return descend(_Rows(table.num_rows, lambda n: flat(table.column(n)), shared).array(expr))


class _Rows:
    """Rows that an expression is evaluated on.

    A column is fetched once, and a subexpression that occurs several times is computed once. Other
    results are not kept, so a long sum holds two arrays and not one for each term.
    """

    def __init__(
        self,
        rows: int,
        fetch: Callable[[str], Any],
        shared: frozenset[int],
        careful: bool = False,
    ) -> None:
        self._rows = rows
        self._fetch = fetch
        self._shared = shared
        self._careful = careful
        self._columns: dict[str, Any] = {}
        self._known: dict[int, Any] = {}

    def __len__(self) -> int:
        return self._rows

    def take(self, indices: np.ndarray[Any, Any], careful: bool) -> _Rows:
        places = pa.array(indices)
        return _Rows(
            len(indices),
            lambda name: self._column(name).take(places),
            self._shared,
            careful or self._careful,
        )

    def array(self, expr: Expr) -> Step[Any]:
        value = yield self.value(expr)
        return repeat(value, self._rows) if isinstance(value, pa.Scalar) else value

    def value(self, expr: Expr) -> Step[Any]:
        if not isinstance(expr, Call):
            return self._plain(expr)
        if id(expr) not in self._shared:
            return (yield self._call(expr))
        if id(expr) not in self._known:
            self._known[id(expr)] = yield self._call(expr)
        return self._known[id(expr)]

    def _plain(self, expr: Column | Literal) -> Any:
        if isinstance(expr, Literal):
            return pa.scalar(expr.value, expr.type)
        column = self._column(expr.name)
        return column if column.type == expr.type else column.cast(expr.type)

    def _column(self, name: str) -> Any:
        if name not in self._columns:
            self._columns[name] = self._fetch(name)
        return self._columns[name]

    def _call(self, call: Call) -> Step[Any]:
        if call.op == USER:
            return (yield self._user(call))
        known: dict[int, Any] = {}
        if self._careful or must_take_turns(call):
            return (yield in_turns(self, call, _computed, known))
        try:
            for place in places_of(call.op, len(call.args)):
                arg = call.args[place]
                known[place] = (
                    (yield self.value(arg)) if isinstance(arg, Call) else self._plain(arg)
                )
        except TaskError as failure:
            return (yield in_turns(self, call, _computed, known, failure))
        return _computed(call, [known[place] for place in range(len(call.args))])

    def _user(self, call: Call) -> Step[Any]:
        args = []
        for arg in call.args[1:]:
            args.append((yield self.array(arg)))
        return called(call, user_function(call), args, self._rows)


def _computed(call: Call, args: list[Any]) -> Any:
    constant = all(isinstance(arg, pa.Scalar) for arg in args)
    if constant:
        args[0] = repeat(args[0], 1)
    try:
        result = OPS[call.op](call.type, *args)
    except RowFailure as failure:
        raise TaskError(
            f"expression {describe(call)}", failure.requirement, failure.got, failure.remedy
        ) from None
    return result[0] if constant else result
