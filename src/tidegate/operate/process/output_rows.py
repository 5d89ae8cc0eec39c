"""Collects the rows that user code returns into one table.

Rows are checked when they are given. They become columns later, those of many buckets together.
Each row is stored with the tuple or timer for which it was made.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tidegate.cancellation import between_pieces
from tidegate.operate.kernels.group import run_starts
from tidegate.operate.kernels.order import Ints, flat
from tidegate.operate.process.definition import ROW, ProcessSpec
from tidegate.operate.process.feed import Trigger
from tidegate.schema import type_name

_AT_ONCE = 65_536
"""At most so many rows wait to become columns."""


class Mistake(Exception):
    """Rows that break the promise of their class.

    `made_by` is the bucket and the tuple or timer of the first wrong row; None for the current one.
    """

    def __init__(
        self, requirement: str, got: str, made_by: tuple[int, Trigger] | None = None
    ) -> None:
        self.requirement = requirement
        self.got = got
        self.made_by = made_by
        super().__init__(requirement, got, made_by)


class OutputRows:
    """Collects the rows of all objects of one instance in a batch."""

    def __init__(self, spec: ProcessSpec) -> None:
        self._spec = spec
        self._names = [name for name, _ in spec.output]
        self._output, self._result = pa.schema(spec.output), spec.result
        self._nested = [i for i, (_, t) in enumerate(spec.output) if _can_change(t)]
        self._rows: list[tuple[Any, ...]] = []
        self._triggers: list[tuple[int, int, int, int, int]] = []
        self._methods: list[str] = []
        self._given: list[tuple[int, list[Ints], pa.Table]] = []
        self._tables: list[pa.Table] = []

    def add(self, bucket: int, method: str, trigger: Trigger, made: Any) -> None:
        """Add rows for one tuple or timer: a dict, a tuple, a list of these, or an Arrow table."""
        kind = type(made)
        if kind is list:
            rows = made
        elif kind is dict or isinstance(made, Mapping | tuple):
            rows = (made,)
        elif isinstance(made, pa.Table | pa.RecordBatch):
            self._add_table(bucket, method, trigger, made)
            return
        elif isinstance(made, list):
            rows = made
        else:
            got = kind.__name__
            raise Mistake(self._must(method, "return rows: dicts, tuples, or a list of them"), got)
        for number, row in enumerate(rows):
            self._rows.append(self._cells(method, row))
            self._triggers.append((*trigger, bucket, number))
            self._methods.append(method)
        if len(self._rows) >= _AT_ONCE:
            self._settle()

    def add_batch(self, bucket: int, made: Any, order: Sequence[Ints]) -> None:
        """Add what `process` returned; `order` has the places of its batch in the total order."""
        if made is None:
            return
        table = self._table("process", made, [*self._names, ROW])
        rows = table.column(ROW)
        if not pa.types.is_integer(rows.type) or rows.null_count:
            raise Mistake(self._must("process", f"give integers as {ROW}"), str(rows.type))
        numbers = rows.to_numpy().astype(np.int64)
        count = len(order[0])
        if not len(numbers):
            return
        if numbers.min() < 0 or numbers.max() >= count:
            wrong = numbers[(numbers < 0) | (numbers >= count)]
            requirement = self._must("process", f"name rows from 0 to {count - 1} as {ROW}")
            raise Mistake(requirement, str(wrong[0]))
        between_pieces(len(numbers))
        places = np.argsort(numbers, kind="stable")
        # Taking copies: memory that the object lent may change in its next call.
        kept = table.select(self._names).take(pa.array(places))
        triggers = [column[numbers[places]] for column in order]
        self._given.append((bucket, triggers, self._cast("process", kept)))

    def table(self) -> pa.Table:
        """All rows, with the columns that order them; they are not sorted yet."""
        if self._rows:
            self._settle()
        if self._given:
            self._tables.append(self._of_given())
        return pa.concat_tables(self._tables) if self._tables else self._result.empty_table()

    def _settle(self) -> None:
        """Turn the rows that wait into columns."""
        between_pieces(len(self._rows))
        columns = [self._column(place, values) for place, values in enumerate(zip(*self._rows))]
        rows = pa.table(columns, schema=self._output)
        self._tables.append(self._with(rows, list(np.array(self._triggers, np.int64).T)))
        self._rows, self._triggers, self._methods = [], [], []

    def _of_given(self) -> pa.Table:
        """The rows that came as tables."""
        buckets, triggers, tables = zip(*self._given)
        bucket = np.repeat(np.array(buckets, np.int64), [table.num_rows for table in tables])
        beside = [*(np.concatenate(column) for column in zip(*triggers)), bucket]
        return self._with(pa.concat_tables(tables).combine_chunks(), [*beside, _counts(beside)])

    def _add_table(self, bucket: int, method: str, trigger: Trigger, made: Any) -> None:
        table = self._table(method, made, self._names)
        count = table.num_rows
        between_pieces(count)
        kept = self._cast(method, table.select(self._names).take(pa.array(np.arange(count))))
        self._given.append((bucket, [np.full(count, t, np.int64) for t in trigger], kept))

    def _cells(self, method: str, row: Any) -> tuple[Any, ...]:
        if type(row) is dict or isinstance(row, Mapping):
            if len(row) != len(self._names) or any(name not in row for name in self._names):
                requirement = self._must(method, f"give rows of {', '.join(self._names)}")
                raise Mistake(requirement, ", ".join(map(str, row)) or "no columns")
            cells = tuple(row[name] for name in self._names)
        elif isinstance(row, tuple):
            if len(row) != len(self._names):
                requirement = self._must(method, f"give rows of {', '.join(self._names)}")
                raise Mistake(requirement, f"{len(row)} values")
            cells = row
        else:
            got = f"a row of type {type(row).__name__}"
            raise Mistake(self._must(method, "give dicts or tuples as rows"), got)
        if self._nested:
            # The object may go on changing what it gave.
            cells = tuple(copy.deepcopy(c) if i in self._nested else c for i, c in enumerate(cells))
        return cells

    def _column(self, place: int, values: Sequence[Any]) -> pa.Array:
        name, type_ = self._spec.output[place]
        try:
            return _array(values, type_)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            for row, value in enumerate(values):
                try:
                    _array([value], type_)
                except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
                    requirement = self._must(
                        self._methods[row], f"give {type_name(type_)} as {name}"
                    )
                    ts, src, seq, bucket, _ = self._triggers[row]
                    made_by = bucket, (ts, src, seq)
                    raise Mistake(requirement, f"{value!r}", made_by) from error
            raise

    def _table(self, method: str, made: Any, names: Sequence[str]) -> pa.Table:
        if isinstance(made, pa.RecordBatch):
            made = pa.Table.from_batches([made])
        if not isinstance(made, pa.Table):
            raise Mistake(self._must(method, "return an Arrow table"), type(made).__name__)
        if sorted(made.column_names) != sorted(names):
            requirement = self._must(method, f"return the columns {', '.join(names)}")
            raise Mistake(requirement, ", ".join(made.column_names) or "none")
        return made

    def _cast(self, method: str, table: pa.Table) -> pa.Table:
        if table.schema.equals(self._output):
            return table
        columns = []
        for name, type_ in self._spec.output:
            try:
                columns.append(flat(table.column(name), type_))
            except pa.ArrowException as error:
                requirement = self._must(method, f"give {type_name(type_)} as {name}")
                raise Mistake(requirement, str(error)) from error
        return pa.table(columns, schema=self._output)

    def _with(self, rows: pa.Table, beside: Sequence[Ints]) -> pa.Table:
        """Add the columns that order the rows; `beside` has all but the user's own order."""
        *triggers, bucket, numbers = beside
        order = [*triggers, self._order(rows, beside), bucket, numbers]
        return pa.table([*rows.columns, *map(pa.array, order)], schema=self._result)

    def _order(self, rows: pa.Table, beside: Sequence[Ints]) -> Ints:
        name = self._spec.order
        if name is None:
            return np.zeros(rows.num_rows, np.int64)
        column = rows.column(name)
        if column.null_count:
            row = column.is_null().index(True).as_py()
            ts, src, seq, bucket, _ = (int(values[row]) for values in beside)
            requirement = f"{self._spec.name} must give a number as {name}, its order"
            raise Mistake(requirement, "NULL", (bucket, (ts, src, seq)))
        values: Ints = column.to_numpy().astype(np.int64)
        return values

    def _must(self, method: str, what: str) -> str:
        return f"{self._spec.name}.{method} must {what}"


def _array(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """Values as a column; a float for an integer must be whole, where Arrow would truncate it."""
    if pa.types.is_integer(type_) and any(issubclass(t, _REAL) for t in set(map(type, values))):
        return pa.array(values, pa.float64()).cast(type_)
    return pa.array(values, type_)


_REAL = (float, np.floating)


def _counts(beside: Sequence[Ints]) -> Ints:
    """The number of each row among the rows of its tuple and bucket, which must be adjacent."""
    count = len(beside[0])
    starts = np.flatnonzero(run_starts(*beside))
    numbers: Ints = np.arange(count) - np.repeat(starts, np.diff(np.append(starts, count)))
    return numbers


def _can_change(type_: pa.DataType) -> bool:
    return bool(pa.types.is_nested(type_) or pa.types.is_binary(type_))
