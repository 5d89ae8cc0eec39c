"""Computes the inputs of a compiled predicate from the tuples of either side.

The columns of stored tuples are computed once, and serve all batches that ask them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.errors import TaskError
from tidegate.expression import pair_code as step
from tidegate.expression.pair_code import CodedConjunct
from tidegate.expression.tree import Expr
from tidegate.operate.join.predicate.program import ASKING, EXACT, STORED, PairProgram, ProgramInput
from tidegate.operate.kernels.expression.expression import evaluate
from tidegate.operate.kernels.join.program import Doubles, Flags, PairRun, ProgramColumns

Ints = npt.NDArray[np.int64]

_MOST_TRIES = 128
"""How often an expression is evaluated, at most, to find the tuples for which it fails."""


@dataclass(frozen=True)
class SideColumn:
    """One input of a program, for all tuples of a table.

    `numbers` has NaN for NULL; it is None for codes, which need the values of both sides. `known`
    flags the tuples where the input is not NULL (None: all of them), `doubt` those where it is not
    certain (None: no tuple). `peak` is the largest absolute value.
    """

    numbers: Doubles | None
    known: Flags | None
    doubt: Flags | None
    peak: float
    values: pa.DictionaryArray | pa.Array | None = None

    @property
    def nbytes(self) -> int:
        arrays = (self.numbers, self.known, self.doubt, self.values)
        return sum(int(a.nbytes) for a in arrays if a is not None)

    @staticmethod
    def of(given: ProgramInput, table: pa.Table) -> SideColumn:
        array, failed = _evaluated(given.expr, table)
        known = None
        if array.null_count:
            known = array.is_valid().to_numpy(zero_copy_only=False).view(np.uint8)
        numbers = _numbers(array)
        if numbers is None:
            return SideColumn(None, known, failed, 0.0, array.dictionary_encode())
        peak = float(np.fmax.reduce(np.abs(numbers), initial=0.0))
        if pa.types.is_floating(array.type) or peak <= EXACT:
            return SideColumn(numbers, known, failed, peak)
        # Integers beyond 2**53 are compared by code where the input is coded, else in doubt.
        if given.coded:
            return SideColumn(None, known, failed, 0.0, array)
        beyond = (np.abs(numbers) > EXACT).view(np.uint8)
        return SideColumn(numbers, known, beyond if failed is None else beyond | failed, peak)


@dataclass(frozen=True)
class SideColumns:
    """The inputs of a program for all tuples of a table; `side` is STORED or ASKING."""

    program: PairProgram
    side: int
    columns: tuple[SideColumn, ...]
    rows: int

    @staticmethod
    def of(program: PairProgram, side: int, table: pa.Table) -> SideColumns:
        columns = tuple(SideColumn.of(given, table) for given in program.inputs[side])
        return SideColumns(program, side, columns, table.num_rows)

    @property
    def nbytes(self) -> int:
        """Bytes of the columns, and of the matrix that is made of them at the first read."""
        return 2 * sum(c.nbytes for c in self.columns)

    @cached_property
    def matrix(self) -> Doubles:
        """A row for each column; zeros where a column has no numbers."""
        found = np.zeros((len(self.columns), self.rows))
        for row, column in zip(found, self.columns, strict=True):
            if column.numbers is not None:
                row[:] = column.numbers
        return found

    @cached_property
    def flags(self) -> tuple[Flags, tuple[int, ...], tuple[int, ...]]:
        """The flags that are not the same for all tuples, a row each, and where to find them.

        The second result has the row for each set of inputs that must not be NULL, the third the
        row for each conjunct's doubts; -1 where no tuple has any.
        """
        rows: list[Flags] = []
        known = [
            _added(rows, [self.columns[c].known for c in wanted], np.bitwise_and)
            for wanted in self.program.known[self.side]
        ]
        doubts = [
            _added(rows, [self.columns[c].doubt for c in certain[self.side]], np.bitwise_or)
            for certain in self.program.doubts
        ]
        made = np.array(rows, np.uint8).reshape(len(rows), self.rows)
        return made, tuple(known), tuple(doubts)


def pair_run(
    stored: SideColumns, asking: SideColumns, rows: Ints | None, order: Ints | None
) -> PairRun:
    """A program, ready to run over the tuples of two tables.

    `rows` has the stored tuple at each place of the run, `order` the asking tuple of each probe;
    None where they are numbered alike.
    """
    program = stored.program
    matrices = _coded(stored, asking)
    flags, known, doubts = stored.flags
    asked_flags, asked_known, asked_doubts = asking.flags
    peaks = [c.peak for c in stored.columns], [c.peak for c in asking.columns]
    conjuncts = tuple(
        CodedConjunct(
            _needed_steps(program, conjunct, peaks, known, asked_known),
            conjunct.total,
            (doubts[number], asked_doubts[number]),
        )
        for number, conjunct in enumerate(program.code.conjuncts)
    )
    asks, their_flags = matrices[ASKING].T, asked_flags.T
    columns = ProgramColumns(
        np.ascontiguousarray(matrices[STORED]),
        np.ascontiguousarray(flags),
        rows,
        np.ascontiguousarray(asks if order is None else asks[order]),
        np.ascontiguousarray(their_flags if order is None else their_flags[order]),
    )
    return PairRun(
        replace(program.code, conjuncts=conjuncts), columns, tuple(range(len(conjuncts)))
    )


def _coded(stored: SideColumns, asking: SideColumns) -> tuple[Doubles, Doubles]:
    """The matrices of both sides, with codes filled in where an input has no numbers."""
    matrices = [stored.matrix, asking.matrix]
    inputs = stored.program.inputs
    codes = sum(given.coded for given in inputs[STORED])
    copied = False
    for number in range(codes):
        at = [len(inputs[i]) - codes + number for i in (STORED, ASKING)]
        pair = stored.columns[at[STORED]], asking.columns[at[ASKING]]
        if all(column.numbers is not None for column in pair):
            continue
        # The matrices belong to the tables, and codes only to this pair of tables: so a copy.
        if not copied:
            matrices, copied = [m.copy() for m in matrices], True
        for matrix, row, found in zip(matrices, at, _ranks(*pair), strict=True):
            matrix[row] = found
    return matrices[STORED], matrices[ASKING]


def _ranks(*pair: SideColumn) -> list[Doubles]:
    """The codes of two columns: the rank of each value among the distinct values of both."""
    parts, ends = [], [0]
    for column in pair:
        values = column.values
        if values is None:  # integers that would do as numbers, beside some that would not
            assert column.numbers is not None
            values = pa.array(np.nan_to_num(column.numbers).astype(np.int64))
        encoded = values if isinstance(values, pa.DictionaryArray) else values.dictionary_encode()
        parts.append(encoded)
        ends.append(ends[-1] + len(encoded.dictionary))
    type_ = next(c.values for c in pair if c.values is not None).type
    plain = type_.value_type if pa.types.is_dictionary(type_) else type_
    distinct = pa.concat_arrays(
        [_plain(part.dictionary).cast(_plain_type(plain)) for part in parts]
    )
    ranks = pc.rank(distinct, sort_keys="ascending", tiebreaker="dense").to_numpy()
    found = []
    for part, begin in zip(parts, ends, strict=False):
        places = part.indices.fill_null(0).to_numpy().astype(np.int64) + begin
        some = ranks[places] if len(ranks) else np.zeros(len(places))
        found.append(some.astype(np.float64))
    return found


def _plain(array: pa.Array) -> pa.Array:
    """An array, times as the integers that they are stored as."""
    width = _plain_type(array.type)
    return array if width == array.type else array.view(width)


def _plain_type(type_: pa.DataType) -> pa.DataType:
    if not pa.types.is_temporal(type_):
        return type_
    return pa.int32() if type_.bit_width == 32 else pa.int64()


def _needed_steps(
    program: PairProgram,
    conjunct: CodedConjunct,
    peaks: Sequence[Sequence[float]],
    known: Sequence[int],
    asked_known: Sequence[int],
) -> tuple[tuple[int, ...], ...]:
    """The steps of a conjunct, without the checks that no pair of these tuples can fail.

    The size of a result is bounded by the sizes of its operands, so the peaks of the columns often
    show that an integer cannot leave its range. Flags are those of these tables.
    """
    sizes = {**dict(enumerate(peaks[STORED]))}
    scalars = [*peaks[ASKING], *map(abs, program.code.constants)]
    sizes |= {-1 - i: size for i, size in enumerate(scalars)}
    found = []
    for what, to, one, two, flag, asked in conjunct.steps:
        if what == step.CHECK:
            if sizes.get(one, np.inf) <= scalars[-1 - two]:
                continue
            sizes[one] = scalars[-1 - two]
        elif what < step.EQ:
            sizes[to] = _size(what, sizes.get(one, np.inf), sizes.get(two, np.inf))
        flags = (-1 if flag < 0 else known[flag], -1 if asked < 0 else asked_known[asked])
        found.append((what, to, one, two, *flags))
    return tuple(found)


def _size(what: int, one: float, two: float) -> float:
    if what in (step.ADD, step.SUBTRACT):
        return one + two
    if what == step.MULTIPLY:
        return one * two if one and two else 0.0
    return one if what in (step.NEGATE, step.ABS) else np.inf


def _added(rows: list[Flags], flags: Sequence[Flags | None], joined: np.ufunc) -> int:
    """Append several flags combined as one row, and return its number; -1 where none is given."""
    some = [f for f in flags if f is not None]
    if not some:
        return -1
    rows.append(joined.reduce(some))
    return len(rows) - 1


def _numbers(array: pa.Array) -> Doubles | None:
    """Values as the nearest doubles, NULL as NaN; None for texts, decimals and the like."""
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.int8())
    elif pa.types.is_temporal(array.type):
        array = _plain(array)
    if not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
        return None
    numbers: Doubles = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers


def _evaluated(expr: Expr, table: pa.Table) -> tuple[pa.Array, Flags | None]:
    """The values of an expression, and flags for the tuples for which it fails (None: no tuple).

    Failing tuples are found by bisection. When that has been tried too often, whole stretches count
    as failing: their pairs are then evaluated by the kernels, which is slower and as right.
    """
    try:
        return evaluate(expr, table), None
    except TaskError:
        parts, failed = list[pa.Array](), np.zeros(table.num_rows, np.uint8)
    waiting, tries = [(0, table.num_rows)], 0
    while waiting:
        low, high = waiting.pop()
        tries += 1
        try:
            if tries <= _MOST_TRIES:
                parts.append(evaluate(expr, table.slice(low, high - low)))
                continue
        except TaskError:
            if high - low > 1:
                middle = (low + high) // 2
                waiting += [(middle, high), (low, middle)]
                continue
        failed[low:high] = 1
        parts.append(pa.nulls(high - low, expr.type))
    return pa.concat_arrays(parts), failed
