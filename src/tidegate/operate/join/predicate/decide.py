"""Evaluates the predicate of a join on candidate pairs."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.batch import TS
from tidegate.errors import TaskError
from tidegate.expression.tree import Call, Column, Expr, columns_of
from tidegate.operate.join.spec import JoinSpec, PairFunction
from tidegate.operate.kernels.expression.expression import evaluate
from tidegate.operate.kernels.order import flat

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_WIDE_BYTES = 256
"""Texts at least this long on average are compared by code where rows are in several pairs."""


@dataclass(frozen=True)
class GatheredRows:
    """Rows of a table by their places; a column is gathered only when it is read.

    Places are all from 0 on, or all -1: then they stand for missing tuples, whose columns are NULL.
    """

    table: pa.Table
    places: Ints

    def take(self, kept: Ints | Mask) -> GatheredRows:
        """Some of the rows."""
        return GatheredRows(self.table, self.places[kept])

    def column(self, name: str) -> pa.Array | pa.ChunkedArray:
        """The values of a column."""
        column = self.table.column(name)
        return (column.chunk(0) if column.num_chunks == 1 else column).take(self._index)

    def columns(self, names: Sequence[str]) -> pa.Table:
        """Some columns of the rows."""
        return self.table.select(list(names)).take(self._index)

    @cached_property
    def _index(self) -> pa.Array:
        if self.is_missing:
            return pa.nulls(len(self.places), pa.int64())
        return pa.array(self.places)

    @property
    def is_missing(self) -> bool:
        return bool(len(self.places) and self.places[0] < 0)

    def is_wide(self, name: str) -> bool:
        """Whether gathering a column of text copies far more than there is of it."""
        column = self.table.column(name)
        rows = max(self.table.num_rows, 1)
        return len(self.places) > rows and bool(column.nbytes > _WIDE_BYTES * rows)


def joined(parts: Sequence[GatheredRows], names: Sequence[str]) -> GatheredRows | None:
    """Rows of several tables of one side as rows of one table, with some columns.

    None where gathering them would copy long values: then each table is treated by itself.
    """
    first, *others = (rows.table for rows in parts)
    if all(table is first for table in others):
        return GatheredRows(first, np.concatenate([rows.places for rows in parts]))
    own = [n for n in names if n in first.column_names] or [TS]
    if any(_is_long(rows.table.column(n)) for rows in parts for n in own):
        return None
    columns = {n: pa.concat_arrays([flat(rows.column(n)) for rows in parts]) for n in own}
    return GatheredRows(pa.table(columns), np.arange(sum(len(rows.places) for rows in parts)))


def _is_long(column: pa.ChunkedArray) -> bool:
    return bool(column.nbytes > _WIDE_BYTES * max(len(column), 1))


def true_of(
    spec: JoinSpec,
    left: GatheredRows,
    right: GatheredRows,
    conjuncts: Sequence[Expr] | None = None,
) -> Ints:
    """The numbers of the pairs that fulfil the predicate; row i of both sides is pair i.

    Each conjunct sees only the pairs that the ones before it left, so a guard like `b <> 0` keeps
    its effect. `conjuncts` are those still to be decided, None for all.
    """
    kept: Ints = np.arange(len(left.places))
    on_left = left.table.column_names
    for conjunct in spec.predicate if conjuncts is None else conjuncts:
        true = _decide_equality(conjunct, left, right)
        if true is None:
            sides = {n: left if n in on_left else right for n in columns_of(conjunct)}
            columns = {n: rows.column(n) for n, rows in sides.items()}
            true = is_true(conjunct, pa.table(columns or {TS: pa.array(kept)}))
        if true.all():
            continue  # the common case after an index: nothing is copied
        kept, left, right = kept[true], left.take(true), right.take(true)
        if not len(kept):
            return kept
    if spec.function is not None:
        rows_of = [
            r.columns([n for n, _ in s.columns])
            for r, s in ((left, spec.left), (right, spec.right))
        ]
        kept = kept[_call_predicate(spec.function, rows_of[0], rows_of[1])]
    return kept


def is_true(condition: Expr, rows: pa.Table) -> Mask:
    """The rows for which a condition is TRUE; NULL is not."""
    truth = evaluate(condition, rows)
    if truth.null_count:
        truth = pc.fill_null(truth, False)
    mask: Mask = truth.to_numpy(zero_copy_only=False)
    return mask


def _decide_equality(conjunct: Expr, left: GatheredRows, right: GatheredRows) -> Mask | None:
    """Decides an equality of two columns without gathering both for all pairs.

    None for other conjuncts and for columns where gathering is as good.
    """
    if not isinstance(conjunct, Call) or conjunct.op != "eq":
        return None
    names = [arg.name for arg in conjunct.args if isinstance(arg, Column)]
    on_left = [n for n in names if n in left.table.column_names]
    if len(names) < 2 or len(on_left) != 1:
        return None
    (name,) = (n for n in names if n not in on_left)
    columns = left.table.column(on_left[0]), right.table.column(name)
    places = left.places, right.places
    if pa.types.is_integer(columns[0].type):
        return _same_integer(columns, places) if all(c.num_chunks == 1 for c in columns) else None
    wide = left.is_wide(on_left[0]) and right.is_wide(name)
    if not wide or not pa.types.is_string(columns[0].type):
        return None
    return _same_text(columns, places)


def _same_integer(columns: Sequence[pa.ChunkedArray], places: Sequence[Ints]) -> Mask:
    """Which pairs have equal integers, read from the columns' buffers; NULL equals nothing."""
    values, known = [], np.ones(len(places[0]), np.bool_)
    for column, rows in zip(columns, places, strict=True):
        chunk = column.chunk(0)
        valid, data = chunk.buffers()
        at = rows + chunk.offset
        values.append(np.frombuffer(data, f"i{chunk.type.byte_width}")[at])
        if chunk.null_count:
            bits = np.frombuffer(valid, np.uint8)
            known &= (bits[at >> 3] >> (at & 7) & 1).astype(np.bool_)
    return np.asarray((values[0] == values[1]) & known)


def _same_text(columns: Sequence[pa.ChunkedArray], places: Sequence[Ints]) -> Mask:
    """Which pairs have equal texts; each text is read once, however many pairs it is in."""
    parts, at = [], []
    for column, rows in zip(columns, places, strict=True):
        chosen, back = np.unique(rows, return_inverse=True)
        at.append(back)
        parts.append(column if len(chosen) == len(column) else column.take(pa.array(chosen)))
    numbers = pa.chunked_array([*parts[0].chunks, *parts[1].chunks]).dictionary_encode()
    codes = numbers.combine_chunks().indices.fill_null(-1).to_numpy()
    one, other = codes[at[0]], codes[len(parts[0]) + at[1]]
    return np.asarray((one == other) & (one >= 0))


def _call_predicate(function: PairFunction, left: pa.Table, right: pa.Table) -> Mask:
    """The function's answer for each pair, NULL as false; a TaskError where it raises.

    SystemExit counts as raising: a user's `exit()` must not end a worker in silence.
    """
    where = _where(function.call)
    try:
        answer = function.call(
            left.rename_columns(list(function.left_names)),
            right.rename_columns(list(function.right_names)),
        )
    except (Exception, SystemExit) as error:
        got = f"{type(error).__name__}: {error}".strip(": ")
        raise TaskError(where, "the predicate must not raise", got) from error
    return _checked(answer, left.num_rows, where)


def _checked(answer: Any, pairs: int, where: str) -> Mask:
    wanted = f"the predicate must return one boolean for each of {pairs:,} pairs"
    if isinstance(answer, pa.ChunkedArray):
        answer = answer.combine_chunks()
    if isinstance(answer, pa.Array):
        if not pa.types.is_boolean(answer.type):
            raise TaskError(where, wanted, f"an array of {answer.type}")
        answer = answer.fill_null(False).to_numpy(zero_copy_only=False)
    try:
        array = np.asarray(answer)
    except ValueError as error:
        raise TaskError(where, wanted, str(error)) from None
    if array.shape != (pairs,):
        shape = "a single value" if array.shape == () else f"shape {array.shape}"
        raise TaskError(where, wanted, shape)
    if array.dtype != np.bool_:
        raise TaskError(where, wanted, f"an array of {array.dtype}")
    return array


def _where(call: Any) -> str:
    """The function's name, file and line."""
    name = getattr(call, "__qualname__", None) or type(call).__name__
    code = getattr(inspect.unwrap(call), "__code__", None)
    return f"{name} ({code.co_filename}:{code.co_firstlineno})" if code else name
