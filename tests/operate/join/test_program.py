"""The compiled predicate says what the plain evaluation does, and fails where that fails."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidegate.errors import TaskError
from tidegate.expression.tree import Call, Column, Expr, Literal
from tidegate.operate.join.kind import LEFT, RIGHT
from tidegate.operate.join.predicate.decide import GatheredRows, true_of
from tidegate.operate.join.predicate.program import ASKING, STORED
from tidegate.operate.join.predicate.program_columns import SideColumns, pair_run
from tidegate.operate.join.spec import SCAN, JoinSide, JoinSpec, WindowExtent

BOOL, DOUBLE, FLOAT, LONG, INT = pa.bool_(), pa.float64(), pa.float32(), pa.int64(), pa.int32()
TEXT, MONEY, TIME = pa.string(), pa.decimal128(9, 2), pa.timestamp("us", "UTC")
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    DOUBLE: st.sampled_from([0.0, -0.0, 1.0, -1.5, 0.1, 3e200, 1e-300, np.inf, -np.inf, np.nan]),
    FLOAT: st.sampled_from([0.0, 1.0, 0.1, -3e38, 1e-40, np.inf, np.nan]).map(
        lambda v: float(np.float32(v))
    ),
    LONG: st.sampled_from([0, 1, -3, 7, 2**31, 3037000500, 2**53 - 1, 2**53, 2**53 + 1, -(2**63)]),
    INT: st.sampled_from([0, 1, -3, 46341, 2**31 - 1, -(2**31)]),
    TEXT: st.sampled_from(["", "a", "b", "ab", "ä"]),
    MONEY: st.sampled_from([Decimal("0.10"), Decimal("0.20"), Decimal("-7.00")]),
    TIME: st.sampled_from([0, 1, -5, 2**60]),
    BOOL: st.booleans(),
}
TYPES = list(VALUES)


def column(side: str, type_: pa.DataType) -> Column:
    return Column(f"{side}{TYPES.index(type_)}", type_)


def numbers(type_: pa.DataType) -> st.SearchStrategy[Expr]:
    """Expressions of a type over both sides."""
    leaves = [column("l", type_), column("r", type_), Literal(3, type_)]
    if type_ != LONG and type_ != INT:
        leaves[2] = Literal(0.5, type_)

    def larger(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
        two = ["add", "subtract", "multiply"] + ["divide"] * (type_ == DOUBLE)
        one = ["negate", "abs"] + ["sqrt"] * (type_ == DOUBLE)
        return st.one_of(
            st.builds(lambda o, a, b: Call(o, (a, b), type_), st.sampled_from(two), inner, inner),
            st.builds(lambda o, a: Call(o, (a,), type_), st.sampled_from(one), inner),
        )

    found = st.recursive(st.sampled_from(leaves), larger, max_leaves=5)
    if type_ in (LONG, INT):
        return found
    narrow = [FLOAT, LONG, INT] if type_ == DOUBLE else [INT, LONG]
    casts = (numbers(source).map(lambda e: Call("cast", (e,), type_)) for source in narrow)
    return st.one_of(found, found, *casts)


COMPARISONS = st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"])


def compared(type_: pa.DataType) -> st.SearchStrategy[Expr]:
    """Comparisons of values of a type."""
    sides = st.sampled_from([column("l", type_), column("r", type_)])
    args = numbers(type_) if type_ in (DOUBLE, FLOAT, LONG, INT) else sides
    return st.builds(lambda o, a, b: Call(o, (a, b), BOOL), COMPARISONS, args, args)


def connected(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    two = st.sampled_from(["and", "or"])
    return st.one_of(
        st.builds(lambda o, a, b: Call(o, (a, b), BOOL), two, inner, inner),
        st.builds(lambda a: Call("not", (a,), BOOL), inner),
        st.builds(lambda a: Call("is_null", (a,), BOOL), inner),
    )


CONDITIONS = st.recursive(
    st.one_of(*(compared(t) for t in TYPES), st.just(column("r", BOOL))), connected, max_leaves=3
)


def tables(
    draw: Callable[[st.SearchStrategy[Any]], Any], rows: tuple[int, int]
) -> tuple[pa.Table, pa.Table]:
    found = []
    for side, count in zip("lr", rows, strict=True):
        arrays = {}
        for type_ in TYPES:
            values = st.none() | VALUES[type_]
            drawn = draw(st.lists(values, min_size=count, max_size=count))
            plain = LONG if type_ == TIME else type_
            array = pa.array(drawn, plain)
            arrays[column(side, type_).name] = array.cast(TIME) if type_ == TIME else array
        found.append(pa.table(arrays))
    return found[0], found[1]


def spec_of(predicate: tuple[Expr, ...]) -> JoinSpec:
    sides = [
        JoinSide(tuple((column(s, t).name, t) for t in TYPES), WindowExtent(1, None)) for s in "lr"
    ]
    return JoinSpec(sides[0], sides[1], predicate, None, (), SCAN, None)


def gathered(
    both: tuple[pa.Table, pa.Table], pairs: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]
) -> tuple[GatheredRows, GatheredRows]:
    return GatheredRows(both[0], pairs[0]), GatheredRows(both[1], pairs[1])


def evaluated(spec: JoinSpec, both: tuple[pa.Table, pa.Table]) -> list[tuple[int, int]] | None:
    """All pairs by the plain evaluation; None where it fails."""
    left, right = (
        a.ravel() for a in np.meshgrid(*(np.arange(t.num_rows) for t in both), indexing="ij")
    )
    try:
        kept = true_of(spec, *gathered(both, (left, right)))
    except TaskError:
        return None
    return sorted(zip(left[kept].tolist(), right[kept].tolist(), strict=True))


def compiled(
    spec: JoinSpec, both: tuple[pa.Table, pa.Table], side: int, sparse: bool
) -> list[tuple[int, int]] | None:
    """The same by the program, where the left or the right tuples are the stored ones."""
    program = spec.programs[side]
    assert program is not None
    stored, asking = both[side], both[1 - side]
    columns = [SideColumns.of(program, s, t) for s, t in ((STORED, stored), (ASKING, asking))]
    run = pair_run(columns[0], columns[1], None, None)
    first, last = np.zeros(asking.num_rows, np.int64), np.full(asking.num_rows, stored.num_rows)
    run = run.ordered(first, last)
    if sparse:
        every = np.repeat(np.arange(asking.num_rows), stored.num_rows)
        found = run.passing(every, np.tile(np.arange(stored.num_rows), asking.num_rows))
    else:
        everything = run.find(first, last, 2**62)
        assert everything is not None
        found = everything
    pairs = list[tuple[int, int]]()
    for (asks, held), conjuncts in zip(found, (program.rest, None), strict=True):
        left, right = (held, asks) if side == LEFT else (asks, held)
        try:
            kept = true_of(spec, *gathered(both, (left, right)), conjuncts)
        except TaskError:
            return None
        pairs += zip(left[kept].tolist(), right[kept].tolist(), strict=True)
    return sorted(pairs)


L, R = column("l", DOUBLE), column("r", DOUBLE)
RATIO = Call("gt", (Call("divide", (L, R), DOUBLE), Literal(0.5, DOUBLE)), BOOL)
PRODUCT = Call(
    "eq", (Call("multiply", (column("l", LONG), column("r", LONG)), LONG), Literal(21, LONG)), BOOL
)
OWN = Call("lt", (Call("divide", (Literal(1.0, DOUBLE), L), DOUBLE), R), BOOL)


@given(
    data=st.data(),
    predicate=st.lists(CONDITIONS, min_size=1, max_size=3).map(tuple),
    rows=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    side=st.sampled_from([LEFT, RIGHT]),
    sparse=st.booleans(),
)
@example(data=None, predicate=(RATIO, PRODUCT), rows=(0, 0), side=LEFT, sparse=False)
def test_a_program_equals_the_evaluation(
    data: st.DataObject | None,
    predicate: tuple[Expr, ...],
    rows: tuple[int, int],
    side: int,
    sparse: bool,
) -> None:
    spec = spec_of(predicate)
    if data is None or spec.programs[side] is None:
        assert (spec.programs[LEFT] is None) == (spec.programs[RIGHT] is None)
        return
    both = tables(data.draw, rows)
    assert compiled(spec, both, side, sparse) == evaluated(spec, both)


@given(
    data=st.data(),
    predicate=st.permutations([RATIO, PRODUCT, OWN, Call("ne", (L, R), BOOL)]),
    side=st.sampled_from([LEFT, RIGHT]),
)
def test_conjuncts_that_fail_stay_in_their_order(
    data: st.DataObject, predicate: list[Expr], side: int
) -> None:
    """Whichever comes first: what it drops hides the failures of those after it, of no other."""
    spec, both = spec_of(tuple(predicate)), tables(data.draw, (6, 7))
    assert spec.compiled == (0, 1, 2, 3)
    assert compiled(spec, both, side, sparse=False) == evaluated(spec, both)


def test_long_runs_equal_the_evaluation() -> None:
    """Several blocks, with NULL and zero divisors beyond a guard, and all orders of conjuncts."""
    generator = np.random.default_rng(7)
    both = []
    for side, count in (("l", 37), ("r", 5_000)):
        numbers = generator.integers(-40, 40, count) / 8
        nulls = generator.random(count) < 0.1
        arrays = {column(side, t).name: pa.nulls(count, t) for t in TYPES}
        arrays[column(side, DOUBLE).name] = pa.array(numbers, mask=nulls)
        arrays[column(side, LONG).name] = pa.array(generator.integers(0, 9, count))
        both.append(pa.table(arrays))
    guard = Call("ne", (R, Literal(0.0, DOUBLE)), BOOL)
    unlike = Call("ne", (column("l", LONG), column("r", LONG)), BOOL)
    spec, tables_ = spec_of((guard, unlike, RATIO)), (both[0], both[1])
    wanted = evaluated(spec, tables_)
    assert wanted is not None
    assert 10_000 < len(wanted) < 100_000
    for side in (LEFT, RIGHT):
        for sparse in (False, True):
            assert compiled(spec, tables_, side, sparse) == wanted
    unguarded = spec_of((unlike, RATIO))
    assert evaluated(unguarded, tables_) is None
    assert compiled(unguarded, tables_, RIGHT, sparse=False) is None


@pytest.mark.parametrize(
    ("predicate", "numbers"),
    [
        ((Call("lt", (column("l", TEXT), column("r", TEXT)), BOOL), RATIO), (0, 1)),
        ((Call("null_safe_eq", (L, R), BOOL), RATIO), (1,)),  # plain, but it cannot fail
        (
            (
                Call(
                    "lt",
                    (
                        Call("add", (column("l", MONEY), column("r", MONEY)), MONEY),
                        Literal(Decimal(1), MONEY),
                    ),
                    BOOL,
                ),
                RATIO,
            ),
            (),
        ),  # a sum of decimals may fail, which a ratio after it must not hide
        ((RATIO, Call("null_safe_eq", (L, R), BOOL)), (0,)),
    ],
)
def test_which_conjuncts_are_compiled(
    predicate: tuple[Expr, ...], numbers: tuple[int, ...]
) -> None:
    assert spec_of(predicate).compiled == numbers


def of(side: str, **values: list[Any]) -> pa.Table:
    """Tuples of a side; what is not given is NULL."""
    given = {"double": DOUBLE, "long": LONG}
    count = len(next(iter(values.values())))
    columns = {column(side, t).name: pa.nulls(count, t) for t in TYPES}
    columns |= {column(side, given[n]).name: pa.array(v, given[n]) for n, v in values.items()}
    return pa.table(columns)


def test_a_guard_after_what_fails_does_not_hide_the_failure() -> None:
    """Though it drops more pairs at less cost, and would come first."""
    guard = Call("gt", (R, Literal(5.0, DOUBLE)), BOOL)
    both = of("l", double=[1.0, 2.0]), of("r", double=[0.0, 1.0, 2.0, 3.0])
    for predicate, fails in (((RATIO, guard), True), ((guard, RATIO), False)):
        spec = spec_of(predicate)
        for side in (LEFT, RIGHT):
            found = compiled(spec, both, side, sparse=False)
            assert found == evaluated(spec, both) == (None if fails else [])


def test_integers_beyond_what_doubles_hold_are_exact() -> None:
    """A product of 2**53 + 1, which is rounded to 2**53 as a double."""
    product = Call("multiply", (column("l", LONG), column("r", LONG)), LONG)
    rest = Call("subtract", (product, Literal(2**53 - 1, LONG)), LONG)
    spec = spec_of((Call("eq", (rest, Literal(2, LONG)), BOOL),))
    both = of("l", long=[321, 1]), of("r", long=[28_059_810_762_433, 7])
    for side in (LEFT, RIGHT):
        assert compiled(spec, both, side, sparse=False) == evaluated(spec, both) == [(0, 0)]
