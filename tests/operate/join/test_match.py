"""Pairs by every method equal a nested loop, for any cut into batches and any instances."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.batch import ORDER, SEQ, SRC, TS
from tidegate.expression.tree import Call, Column, Expr, Literal
from tidegate.operate.join import pair_step, search
from tidegate.operate.join.chain.chain import BUCKET
from tidegate.operate.join.chain.newest import newest_of
from tidegate.operate.join.match import RANK, HeldTuples, MatchedPairs, Matching, StoredTuples, ints
from tidegate.operate.join.pieces import PIECE_PAIRS, in_pieces
from tidegate.operate.join.predicate.decide import GatheredRows, true_of
from tidegate.operate.join.search import ComparedWork, News
from tidegate.operate.join.spec import (
    BAND,
    EQUAL,
    HASH,
    SCAN,
    UNION,
    JoinSide,
    JoinSpec,
    PairInterval,
    Probe,
    WindowExtent,
)
from tidegate.operate.join.tuple_order import arranged, order_columns
from tidegate.operate.join.tuple_order import places as places_of

DOUBLE, LONG, BOOL = pa.float64(), pa.int64(), pa.bool_()
L0, L1, R0, R1 = (Column(n, t) for n, t in zip(("l0", "l1", "r0", "r1"), (DOUBLE, LONG) * 2))
Row = tuple[int, float | None, int | None]
Key = tuple[int, int, int]


def moved(column: Expr, by: float) -> Expr:
    return Call("add", (column, Literal(by, DOUBLE)), DOUBLE)


NEAR = PairInterval(BAND, "near", L0, moved(L0, -2), moved(L0, 2), R0, moved(R0, -2), moved(R0, 2))
SAME = PairInterval(EQUAL, "same", L1, None, None, R1, None, None)
IS_NEAR = Call(
    "le",
    (Call("abs", (Call("subtract", (L0, R0), DOUBLE),), DOUBLE), Literal(2.0, DOUBLE)),
    BOOL,
)
IS_SAME = Call("eq", (L1, R1), BOOL)


SAFE = Call("null_safe_eq", (L1, R1), BOOL)
NULL_SAFE = replace(SAME, text="safe", null_safe=True)
NEXT = Call(
    "subtract",
    (Call("add", (R1, Literal(2**63 - 2, LONG)), LONG), Literal(2**63 - 3, LONG)),
    LONG,
)
"""One more; it overflows for 2, whose pairs are left to a predicate that does not look at it."""
IS_NEXT = Call(
    "case",
    (
        Call("lt", (R1, Literal(2, LONG)), BOOL),
        Call("eq", (L1, NEXT), BOOL),
        Literal(False, BOOL),
    ),
    BOOL,
)
ONE_MORE = PairInterval(EQUAL, "next", L1, None, None, NEXT, None, None)


def is_next(left: Row, right: Row) -> bool:
    return left[2] is not None and right[2] in (0, 1) and left[2] == right[2] + 1


def safe(left: Row, right: Row) -> bool:
    return left[2] == right[2]


def near(left: Row, right: Row) -> bool:
    return left[1] is not None and right[1] is not None and abs(left[1] - right[1]) <= 2


def same(left: Row, right: Row) -> bool:
    return left[2] is not None and left[2] == right[2]


@dataclass(frozen=True)
class Query:
    predicate: tuple[Expr, ...]
    intervals: tuple[PairInterval, ...]
    plain: Callable[[Row, Row], bool]

    branches: tuple[Probe, ...] = ()

    @property
    def specs(self) -> list[int | str | None]:
        """Every way to find the pairs: by an interval, by none, by the branches."""
        union = [UNION] if self.branches else []
        return [None, *range(len(self.intervals)), *union]

    def spec(self, method: int | str | None, left: WindowExtent, right: WindowExtent) -> JoinSpec:
        name = SCAN
        if isinstance(method, int):
            name = BAND if self.intervals[method].kind == BAND else HASH
        sides = [
            JoinSide(((f"{c}0", DOUBLE), (f"{c}1", LONG)), e)
            for c, e in (("l", left), ("r", right))
        ]
        if method == UNION:
            branches = self.branches
            return JoinSpec(*sides, self.predicate, None, (), UNION, None, branches)
        index = method if isinstance(method, int) else None
        return JoinSpec(*sides, self.predicate, None, self.intervals, name, index)


QUERIES = [
    Query((IS_NEAR,), (NEAR,), near),
    Query((IS_SAME,), (SAME,), same),
    Query((IS_NEAR, IS_SAME), (NEAR, SAME), lambda a, b: near(a, b) and same(a, b)),
    Query((IS_NEAR, IS_SAME), (), lambda a, b: near(a, b) and same(a, b)),
    Query((), (), lambda a, b: True),
    Query((SAFE,), (NULL_SAFE,), safe),
    Query(
        (Call("or", (IS_NEAR, Call("or", (IS_SAME, SAFE), BOOL)), BOOL),),
        (),
        lambda a, b: near(a, b) or safe(a, b),
        (Probe((NEAR,), 0), Probe((SAME,), 0), Probe((NULL_SAFE,), 0)),
    ),
    Query(
        (Call("or", (Call("and", (IS_SAME, IS_NEAR), BOOL), IS_NEXT), BOOL),),
        (),
        lambda a, b: (same(a, b) and near(a, b)) or is_next(a, b),
        (Probe((SAME, NEAR), 0), Probe((ONE_MORE,), 0), Probe((NEAR, SAME), 0)),
    ),
]
NAMES = ("near", "same", "both", "no interval", "all", "null-safe", "any", "a guarded overflow")
rows = st.lists(
    st.tuples(
        st.integers(0, 30),
        st.none() | st.integers(-3, 9).map(lambda v: v / 2),
        st.none() | st.integers(0, 2),
    ),
    max_size=25,
).map(lambda found: sorted(found, key=lambda r: r[0]))
extents = st.integers(0, 20).map(lambda us: WindowExtent(us, None)) | st.integers(1, 6).map(
    lambda n: WindowExtent(None, n)
)


def table(side: int, found: list[Row]) -> pa.Table:
    c = "lr"[side]
    return pa.table(
        {
            TS: pa.array([r[0] for r in found], LONG),
            SRC: pa.array([side << 32] * len(found), LONG),
            SEQ: pa.array(range(len(found)), LONG),
            BUCKET: pa.array([i % 4 for i in range(len(found))], pa.int32()),
            f"{c}0": pa.array([r[1] for r in found], DOUBLE),
            f"{c}1": pa.array([r[2] for r in found], LONG),
        }
    )


def keys(found: pa.Table) -> list[Key]:
    return list(zip(*(found.column(c).to_pylist() for c in ORDER)))


def plain(
    query: Query, left: list[Row], right: list[Row], extents: tuple[WindowExtent, WindowExtent]
) -> tuple[list[tuple[Key, Key]], int]:
    """Every pair looked at; the matching ones, and how many are in each other's windows."""
    sides = [left, right]
    order = sorted(
        ((r[0], side << 32, i), side)
        for side, found in enumerate(sides)
        for i, r in enumerate(found)
    )
    pairs, compared = [], 0
    for place, (later, side) in enumerate(order):
        before = [k for k, other in order[:place] if other != side]
        extent = extents[1 - side]
        if extent.rows is not None:
            before = before[-extent.rows :]
        else:
            assert extent.range_us is not None
            before = [k for k in before if later[0] - k[0] <= extent.range_us]
        compared += len(before)
        for earlier in before:
            one, other = (earlier, later) if side == 1 else (later, earlier)
            if query.plain(left[one[2]], right[other[2]]):
                pairs.append((later, earlier))
    return sorted(pairs), compared


@pytest.mark.parametrize("query", QUERIES, ids=NAMES)
@given(
    left=rows,
    right=rows,
    windows=st.tuples(extents, extents),
    cuts=st.lists(st.integers(0, 31), max_size=3).map(sorted),
    instances=st.integers(1, 3),
    few_pairs=st.sampled_from([0, search._FEW_PAIRS]),
    few_asks=st.sampled_from([0, search._FEW_ASKS]),
    compiled=st.sampled_from([0, search.COMPILED_PAIRS]),
    most=st.sampled_from([1, 4, PIECE_PAIRS]),
)
def test_all_methods_equal_a_nested_loop(
    query: Query,
    left: list[Row],
    right: list[Row],
    windows: tuple[WindowExtent, WindowExtent],
    cuts: list[int],
    instances: int,
    few_pairs: int,
    few_asks: int,
    compiled: int,
    most: int,
) -> None:
    """Also by the compiled loops, which few pairs are not worth, and in pieces of few pairs."""
    expected = plain(query, left, right, windows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "_FEW_PAIRS", few_pairs)
        patch.setattr(search, "_FEW_ASKS", few_asks)
        patch.setattr(search, "COMPILED_PAIRS", compiled)
        patch.setattr(pair_step, "_MOST_HITS", most)
        for method in query.specs:
            spec = query.spec(method, *windows)
            sides = [table(0, left), table(1, right)]
            assert batches(spec, sides, cuts, instances, most) == expected


def check_pieces(pieces: list[list[MatchedPairs]], most: int) -> None:
    """One after the other in the order of the later tuples, and none larger than it must be."""
    last = -1
    for piece in pieces:
        places = sorted(int(n) for p in piece for n in p.place)
        assert len(places) <= most or len(set(places)) == 1
        assert not places or places[0] > last
        last = places[-1] if places else last


def batches(
    spec: JoinSpec, tuples: list[pa.Table], cuts: list[int], instances: int, most: int
) -> tuple[list[tuple[Key, Key]], int]:
    """Batch by batch; instance i holds the buckets that are i modulo their number."""
    found: list[tuple[Key, Key]] = []
    implied, before = 0, [0, 0]
    state: list[list[list[HeldTuples]]] = [[[], []] for _ in range(instances)]
    for low, high in zip([-1, *cuts], [*cuts, 99]):
        new = [
            t.filter((ints(t, TS) >= low) & (ints(t, TS) < high)).combine_chunks() for t in tuples
        ]
        place = places_of(order_columns(new[0]), order_columns(new[1]))
        for i in range(instances):
            news = [
                News(
                    t, place[s], np.asarray(t.column(BUCKET).to_numpy() % instances == i), before[s]
                )
                for s, t in enumerate(new)
            ]
            newest = newest_of(spec, 0, news[0]), newest_of(spec, 1, news[1])
            stored = StoredTuples(state[i][0]), StoredTuples(state[i][1])
            work = ComparedWork.of(news, by_row=True)
            matching = Matching(spec, (news[0], news[1]), newest, stored, by_row=True)
            found_in = in_pieces([matching], sum(map(len, place)), work, most)
            pieces = [piece for _, piece in found_in]
            pairs = [p for piece in pieces for p in piece]
            check_pieces(pieces, most)
            implied += work.implied
            assert work.made <= work.implied or spec.method != SCAN
            for p in pairs:
                later, earlier = (p.left, p.right) if p.later == 0 else (p.right, p.left)
                found += zip(keys(later.columns(ORDER)), keys(earlier.columns(ORDER)))
            for s in range(2):
                kept = news[s].table.append_column(RANK, pa.array(news[s].ranks))
                held = kept.filter(pa.array(news[s].held)).combine_chunks()
                rows, key = arranged(spec, s, held)
                state[i][s].append(HeldTuples(rows, key=key))
        before = [b + t.num_rows for b, t in zip(before, new)]
    return sorted(found), implied


@given(
    st.lists(st.sampled_from([None, "x" * 3000, "y" * 3000, "x" * 2999]), min_size=1, max_size=9),
    st.lists(st.sampled_from([None, "y" * 3000, "x" * 3000]), min_size=1, max_size=9),
)
def test_long_texts_are_compared_once_each(
    lefts: list[str | None], rights: list[str | None]
) -> None:
    """As when the texts of all pairs are gathered, which the short ones are."""
    at_left, at_right = (
        a.ravel() for a in np.meshgrid(np.arange(len(lefts)), np.arange(len(rights)))
    )
    text = pa.string()
    sides = [JoinSide(((name, text),), WindowExtent(1, None)) for name in ("l0", "r0")]
    equal = Call("eq", (Column("r0", text), Column("l0", text)), BOOL)
    spec = JoinSpec(sides[0], sides[1], (equal,), None, (), SCAN, None)
    left = GatheredRows(pa.table({"l0": pa.array(lefts, text)}), at_left)
    right = GatheredRows(pa.table({"r0": pa.array(rights, text)}), at_right)
    kept = true_of(spec, left, right).tolist()
    pairs = enumerate(zip(at_left, at_right, strict=True))
    assert kept == [i for i, (a, b) in pairs if lefts[a] is not None and lefts[a] == rights[b]]


@given(st.data(), st.sampled_from([pa.int8(), pa.int32(), pa.int64(), pa.uint64()]))
def test_integers_are_compared_where_they_lie(data: st.DataObject, type_: pa.DataType) -> None:
    """As the kernels would: with NULL, and in a slice."""
    columns = [
        pa.array(data.draw(st.lists(st.none() | st.integers(0, 3), min_size=4)), type_).slice(skip)
        for skip in (1, 3)
    ]
    spec = JoinSpec(
        JoinSide((("l0", type_),), WindowExtent(1, None)),
        JoinSide((("r0", type_),), WindowExtent(1, None)),
        (Call("eq", (Column("l0", type_), Column("r0", type_)), BOOL),),
        None,
        (),
        SCAN,
        None,
    )
    at = [a.ravel() for a in np.meshgrid(*(np.arange(len(c)) for c in columns))]
    left, right = (GatheredRows(pa.table({n: c}), a) for n, c, a in zip(("l0", "r0"), columns, at))
    one, other = (c.take(pa.array(a)).to_pylist() for c, a in zip(columns, at))
    wanted = [i for i, (a, b) in enumerate(zip(one, other)) if a is not None and a == b]
    assert true_of(spec, left, right).tolist() == wanted


@pytest.mark.parametrize("sources", [(1, 2), (2, 1), (1, 1)])
def test_places_are_those_of_both_sides_in_the_total_order(sources: tuple[int, int]) -> None:
    """Whether the sources of one side are before those of the other, or among them."""
    generator = np.random.default_rng(4)
    sides = []
    for number, rows in zip(sources, (40, 7), strict=True):
        ts = np.sort(generator.integers(-3, 3, rows))
        src = number + 2 * (generator.integers(0, 2, rows) if sources[0] == sources[1] else 0)
        columns = [ts, np.broadcast_to(src, rows), np.arange(rows)]
        order = np.lexsort(columns[::-1])
        sides.append([column[order] for column in columns])
    left, right = places_of(*sides)
    rows_of_both = list(zip(*(np.concatenate(pair).tolist() for pair in zip(*sides, strict=True))))
    expected = sorted(range(len(rows_of_both)), key=lambda row: rows_of_both[row])
    assert sorted([*left, *right]) == list(range(len(rows_of_both)))
    assert np.argsort(np.concatenate([left, right])).tolist() == expected
