"""Evaluates each argument of a call only on the rows on which Spark evaluates it.

Guards must work: in ``CASE WHEN b <> 0 THEN a / b END`` no row with ``b = 0`` may reach the
division. So the arguments of a call take turns. After a turn, rows that need no further argument
leave with their value, and the next argument is evaluated on the others alone. Most operations stop
at the first NULL; `_ORDERS` declares the turns of all others.

`in_turns` is a step of a descent: it yields the evaluations that it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.descent import Step
from tidegate.errors import TaskError
from tidegate.expression.tree import Call, Expr, is_total
from tidegate.operate.kernels.expression.vector import repeat

Ints = np.ndarray[Any, Any]

Leaves = Callable[[Any], Any]
"""From the values of an argument to the flags of rows that need no other argument; never NULL."""


@dataclass(frozen=True)
class Turn:
    """One turn: the argument at `place` is evaluated on the rows that have not left.

    Rows that leave get the value of the argument at `takes`, evaluated on them alone; NULL where
    `takes` is None.
    """

    place: int
    leaves: Leaves
    takes: int | None = None


@dataclass(frozen=True)
class ArgumentTurns:
    """The turns of a call, by its number of arguments.

    Rows that never leave get what the kernel computes from all arguments. `guards` says that users
    write such a call to keep rows from an argument that can fail. All other calls first try every
    argument on all rows, which is cheaper, and take turns only where that fails.
    """

    turns: Callable[[int], tuple[Turn, ...]]
    guards: bool = False


class EvaluatedRows(Protocol):
    """The rows on which an expression is evaluated; `kernels.expression` implements it."""

    def value(self, expr: Expr) -> Step[Any]:
        """The value of an expression on every row; a scalar where it is a constant."""
        ...

    def take(self, indices: Ints, careful: bool) -> EvaluatedRows:
        """Some of the rows; if `careful`, every call on them takes turns from the first."""
        ...

    def __len__(self) -> int: ...


def _nobody(values: Any) -> Any:
    return repeat(pa.scalar(False), len(values))


def _everyone(values: Any) -> Any:
    return repeat(pa.scalar(True), len(values))


def _null(values: Any) -> Any:
    return values.is_null()


def _given(values: Any) -> Any:
    return values.is_valid()


def _true(values: Any) -> Any:
    return values.fill_null(False)


def _false(values: Any) -> Any:
    return pc.invert(values.fill_null(True))


def _not_nan(values: Any) -> Any:
    return pc.invert(pc.is_nan(values).fill_null(False))


def _each(leaves: Leaves, count: int) -> tuple[Turn, ...]:
    return tuple(Turn(place, leaves) for place in range(count))


def _case(count: int) -> tuple[Turn, ...]:
    """Arguments: condition, value, ..., default. The first condition that is true decides."""
    conditions = (Turn(place, _true, place + 1) for place in range(0, count - 1, 2))
    return (*conditions, Turn(count - 1, _everyone, count - 1))


def _coalesce(count: int) -> tuple[Turn, ...]:
    first = (Turn(place, _given, place) for place in range(count - 1))
    return (*first, Turn(count - 1, _everyone, count - 1))


def _connective(decides: Leaves) -> ArgumentTurns:
    return ArgumentTurns(lambda _: (Turn(0, decides, 0), Turn(1, _nobody)), guards=True)


STRICT = ArgumentTurns(lambda count: _each(_null, count))
"""From left to right; a row leaves at its first NULL, which is then its value."""

_DIVISOR_FIRST = ArgumentTurns(lambda _: (Turn(1, _null), Turn(0, _null)))
_ALL = ArgumentTurns(lambda count: _each(_nobody, count))

_ORDERS: dict[str, ArgumentTurns] = {
    "case": ArgumentTurns(_case, guards=True),
    "coalesce": ArgumentTurns(_coalesce, guards=True),
    "nanvl": ArgumentTurns(lambda _: (Turn(0, _not_nan, 0), Turn(1, _everyone, 1)), guards=True),
    "and": _connective(_false),
    "or": _connective(_true),
    **dict.fromkeys("divide int_divide remainder positive_remainder".split(), _DIVISOR_FIRST),
    **dict.fromkeys("null_safe_eq greatest least in is_null is_true is_false is_nan".split(), _ALL),
}
"""The orders of operations by name; all others are STRICT."""


def order_of(op: str) -> ArgumentTurns:
    """The order in which an operation has its arguments evaluated."""
    return _ORDERS.get(op, STRICT)


@cache
def turns_of(op: str, count: int) -> tuple[Turn, ...]:
    """The turns of a call with so many arguments."""
    return order_of(op).turns(count)


@cache
def places_of(op: str, count: int) -> tuple[int, ...]:
    """The places of all arguments in the order in which they are evaluated."""
    return tuple(dict.fromkeys([*(turn.place for turn in turns_of(op, count)), *range(count)]))


def must_take_turns(call: Call) -> bool:
    """Whether a guard may keep rows from an argument that can fail."""
    return order_of(call.op).guards and not all(map(is_total, call.args[1:]))


def in_turns(
    rows: EvaluatedRows,
    call: Call,
    compute: Callable[[Call, list[Any]], Any],
    known: Mapping[int, Any],
    failure: TaskError | None = None,
) -> Step[Any]:
    """The values of a call whose arguments take turns.

    `known` has arguments by place that were evaluated on all rows, before one ended in `failure`.
    That one is not tried on the same rows again. On fewer rows every call takes turns from the
    start: trying all rows first at each level would double the work with every level of a long sum.
    """
    careful = failure is not None
    settled = _Settled(call.type)
    open_, part = np.arange(len(rows)), rows
    values: dict[int, tuple[Ints, Any]] = {}
    for turn in turns_of(call.op, len(call.args)):
        if turn.place in known:
            value = _some(known[turn.place], open_, len(rows))
        # The argument that failed on all rows: no guard has taken a row away before it.
        elif failure is not None and part is rows:
            raise failure
        else:
            value = yield part.value(call.args[turn.place])
        leaves = _flags(turn.leaves, value, len(open_))
        values[turn.place] = open_, value
        if not leaves.any():
            continue
        gone = open_[leaves]
        if turn.takes == turn.place:
            settled.add(gone, _some(value, np.flatnonzero(leaves), len(open_)))
        elif turn.takes is None:
            settled.add(gone, pa.scalar(None, call.type))
        else:
            taking = part if len(gone) == len(rows) else rows.take(gone, careful)
            settled.add(gone, (yield taking.value(call.args[turn.takes])))
        open_ = open_[~leaves]
        if not len(open_):
            return settled.joined()
        part = rows.take(open_, careful)
    args = [_some(v, np.searchsorted(p, open_), len(p)) for _, (p, v) in sorted(values.items())]
    settled.add(open_, compute(call, args))
    return settled.joined()


class _Settled:
    """Collects the values of rows that have left, and puts them in the order of the rows."""

    def __init__(self, type_: pa.DataType) -> None:
        self._type = type_
        self._arrays: list[Any] = []
        self._places: list[Ints] = []

    def add(self, places: Ints, values: Any) -> None:
        is_constant = isinstance(values, pa.Scalar)
        self._arrays.append(repeat(values, len(places)) if is_constant else values)
        self._places.append(places)

    def joined(self) -> Any:
        if len(self._arrays) == 1:
            return self._arrays[0]
        order = np.concatenate(self._places)
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return pa.concat_arrays(self._arrays).take(pa.array(back))


def _some(value: Any, places: Ints, rows: int) -> Any:
    """The values of some of the rows."""
    if isinstance(value, pa.Scalar) or len(places) == rows:
        return value
    return value.take(pa.array(places))


def _flags(leaves: Leaves, value: Any, rows: int) -> np.ndarray[Any, Any]:
    array = repeat(value, 1) if isinstance(value, pa.Scalar) else value
    return np.broadcast_to(leaves(array).to_numpy(zero_copy_only=False), rows)
