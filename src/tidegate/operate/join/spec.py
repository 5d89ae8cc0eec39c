"""Describes a join: its sides and windows, the intervals of its predicate, and its method.

All of it is plain picklable data. A plan makes it, and every task gets a copy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import pyarrow as pa

from tidegate.expression.tree import Expr, columns_of, exact_text
from tidegate.operate.join.kind import INNER, LEFT, RIGHT, JoinKind
from tidegate.operate.join.predicate.program import PairProgram

EQUAL = "equal"
BAND = "band"
BOUND = "bound"

HASH = "hash"
SCAN = "scan"
UNION = "union"


@dataclass(frozen=True)
class WindowExtent:
    """The window of a side: a length of time (inclusive) or the last n tuples, exactly one."""

    range_us: int | None
    rows: int | None

    def __post_init__(self) -> None:
        if (self.range_us is None) == (self.rows is None):
            raise ValueError(f"a window is of time or of tuples: {self}")
        if self.range_us is not None and self.range_us < 0:
            raise ValueError(f"a window cannot be shorter than nothing: {self}")
        if self.rows is not None and self.rows < 1:
            raise ValueError(f"a window holds at least one tuple: {self}")

    @property
    def meaning(self) -> str:
        """The window in fingerprints. Checkpoints keep those, so this text must never change."""
        return f"Extent(range_us={self.range_us}, rows={self.rows})"


@dataclass(frozen=True)
class JoinSide:
    """One side of a join: the columns of its prefixes, named l0, l1, ... or r0, r1, ..."""

    columns: tuple[tuple[str, pa.DataType], ...]
    extent: WindowExtent


@dataclass(frozen=True)
class PairInterval:
    """A conjunct as a test of numbers that a pair must pass, seen from either side.

    The test is conservative: it may pass a pair that the conjunct refuses, never the reverse.

    EQUAL: left_value = right_value, of one type (SQL equality: NULL never, NaN = NaN,
    -0.0 = 0.0); the bounds are None. With `null_safe` NULL equals NULL, as with `<=>`.
    BAND, BOUND: every expression is DOUBLE. A pair passes when right_low <= left_value <=
    right_high and left_low <= right_value <= left_high; a None bound is open. A band has both
    bounds as seen from one side at least, a bound has one on each. NULL in any of them means no
    match; NaN does not occur.

    left_* read left columns only, right_* right columns only. `text` is the conjunct as SQL.
    """

    kind: str
    text: str
    left_value: Expr
    left_low: Expr | None
    left_high: Expr | None
    right_value: Expr
    right_low: Expr | None
    right_high: Expr | None
    null_safe: bool = False

    def __post_init__(self) -> None:
        bounds = (self.left_low, self.left_high, self.right_low, self.right_high)
        if self.kind == EQUAL:
            if any(b is not None for b in bounds) or self.left_value.type != self.right_value.type:
                raise ValueError(f"an equality has one type and no bounds: {self.text}")
            return
        given = sum(b is not None for b in bounds)
        if self.null_safe:
            raise ValueError(f"only an equality can be of NULL and NULL: {self.text}")
        if (self.kind, given) not in ((BAND, 4), (BAND, 3), (BOUND, 2)):
            raise ValueError(f"a {self.kind} cannot have {given} bounds: {self.text}")
        for expr in (self.left_value, self.right_value, *bounds):
            if expr is not None and expr.type != pa.float64():
                raise ValueError(f"an interval is over doubles: {self.text}")

    @cached_property
    def exact(self) -> str:
        """Text that identifies the test, whatever the query calls the columns."""
        tested = (
            self.left_value,
            self.left_low,
            self.left_high,
            self.right_value,
            self.right_low,
            self.right_high,
        )
        return repr((self.kind, self.null_safe, [e and exact_text(e) for e in tested]))

    def value(self, side: int) -> Expr:
        """The expression that the conjunct compares, over tuples of a side."""
        return self.left_value if side == LEFT else self.right_value

    def bounds(self, side: int) -> tuple[Expr | None, Expr | None]:
        """The bounds, over tuples of the other side, for the value of `side`; None is open."""
        if side == LEFT:
            return self.right_low, self.right_high
        return self.left_low, self.left_high


@dataclass(frozen=True)
class Probe:
    """A way to find candidates: they pass all intervals; the interval `index` is searched.

    Where `index` is None, all pairs of the window are tested.
    """

    intervals: tuple[PairInterval, ...]
    index: int | None

    @property
    def equalities(self) -> tuple[PairInterval, ...]:
        return tuple(i for i in self.intervals if i.kind == EQUAL)

    @property
    def indexed(self) -> tuple[PairInterval, ...]:
        """The intervals that the index answers: one band or bound, or all equalities together."""
        if self.index is None:
            return ()
        chosen = self.intervals[self.index]
        return self.equalities if chosen.kind == EQUAL else (chosen,)

    @property
    def tests(self) -> tuple[PairInterval, ...]:
        """The other intervals, with which candidates are tested."""
        indexed = self.indexed
        return tuple(i for i in self.intervals if i not in indexed)

    @property
    def one_key(self) -> bool:
        """Whether all that the index finds for a tuple has one key, and so is in time order."""
        return self.index is not None and self.intervals[self.index].kind == EQUAL


@dataclass(frozen=True)
class PairFunction:
    """The user's vectorised predicate.

    `call` gets the left rows and the right rows of pairs, aligned, with the user's column names; it
    must return one boolean per pair. The names belong to l0.. and r0.. in their order.
    """

    call: Callable[[pa.Table, pa.Table], Any]
    left_names: tuple[str, ...]
    right_names: tuple[str, ...]


@dataclass(frozen=True)
class JoinSpec:
    """A join as its kernels need it.

    A pair matches iff every conjunct of `predicate` is TRUE (also those that are intervals) and the
    function, if there is one, returns true. `index` is the interval that is searched: an EQUAL one
    for the method "hash", a BAND or BOUND for "band", None for "scan" and "union".

    `branches` are for "union": at least one of them finds a pair that matches. Each has the
    `intervals` too, which hold in every branch. `kind` says what the join puts out.
    """

    left: JoinSide
    right: JoinSide
    predicate: tuple[Expr, ...]
    function: PairFunction | None
    intervals: tuple[PairInterval, ...]
    method: str
    index: int | None
    branches: tuple[Probe, ...] = ()
    kind: JoinKind = INNER

    def __post_init__(self) -> None:
        wanted = {HASH: (EQUAL,), BAND: (BAND, BOUND), SCAN: (), UNION: ()}[self.method]
        if bool(self.branches) != (self.method == UNION):
            raise ValueError(f"the method {self.method} cannot have {len(self.branches)} branches")
        if any(branch.index is None for branch in self.branches):
            raise ValueError(f"every branch needs an index: {self.branches}")
        if (self.index is None) != (not wanted):
            raise ValueError(f"the method {self.method} cannot probe interval {self.index}")
        if self.index is not None and self.intervals[self.index].kind not in wanted:
            raise ValueError(f"the method {self.method} cannot probe {self.intervals[self.index]}")

    def side(self, side: int) -> JoinSide:
        """The left or the right side, by its number."""
        return self.left if side == LEFT else self.right

    @cached_property
    def decided_by(self) -> tuple[str, ...]:
        """The columns of both sides that the predicate and the function read."""
        names = [name for conjunct in self.predicate for name in columns_of(conjunct)]
        if self.function is not None:
            names += [name for side in (self.left, self.right) for name, _ in side.columns]
        return tuple(dict.fromkeys(names))

    @cached_property
    def programs(self) -> tuple[PairProgram | None, PairProgram | None]:
        """The compiled part of the predicate, by the side whose stored tuples are asked.

        Both compile the same conjuncts.
        """
        names = tuple(frozenset(n for n, _ in s.columns) for s in (self.left, self.right))
        of = partial(PairProgram.of, self.predicate, (names[LEFT], names[RIGHT]))
        return of(LEFT), of(RIGHT)

    @property
    def compiled(self) -> tuple[int, ...]:
        """The numbers of the conjuncts that are compiled."""
        program = self.programs[LEFT]
        return () if program is None else program.compiled

    @property
    def probe(self) -> Probe:
        """How a method other than union finds candidates."""
        return Probe(self.intervals, self.index)

    @property
    def probes(self) -> tuple[Probe, ...]:
        """How any method finds candidates: by each of these."""
        return self.branches or (self.probe,)

    @property
    def in_time_order(self) -> bool:
        """Whether stored tuples are in the total order, rather than in the order of an index."""
        return self.index is None

    @property
    def equalities(self) -> tuple[PairInterval, ...]:
        """The conjuncts that are equalities of the two sides, in the order of the predicate."""
        return tuple(i for i in self.intervals if i.kind == EQUAL)

    @property
    def counts(self) -> bool:
        """Whether a window counts tuples: then every instance must see all that arrive."""
        return any(side.extent.rows is not None for side in (self.left, self.right))
