"""Random tuples, cuts and steps for the tests of aggregation."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise, product
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from tests.oracle.function import About
from tidegate.batch import MAX_US, MIN_US
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.pane.pane import AggregateSpec, close, fold, merge
from tidegate.operate.aggregate.pane.pane_window import PaneWindow
from tidegate.operate.aggregate.parameter import Way
from tidegate.operate.aggregate.user import Aggregator, State
from tidegate.route.hash import Hash
from tidegate.route.mapping import even
from tidegate.route.partitioner import Router
from tidegate.schema import TIME

NAN, INF = math.nan, math.inf
DECIMAL = pa.decimal128(12, 3)
UTC = dt.UTC

POOLS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int64(), [None, 0, 1, -1, 7, -(2**57), 2**57 - 1, 2**33, 3]),
    "small": (pa.int16(), [None, 0, 1, -1, 32767, -32768]),
    "float": (pa.float64(), [None, 0.0, -0.0, 1.5, -2.25, 0.1, 1e16, -1e16, NAN, 3.0]),
    "edge": (pa.float64(), [None, 1.7e308, -1.7e308, 5e-324, 1.0, -1e-300]),
    "single": (pa.float32(), [None, 0.0, -0.0, 0.5, NAN, -1.5]),
    "wild": (pa.float64(), [1.0, INF, -INF, NAN, -0.0, None]),
    "text": (pa.string(), [None, "", "a", "b", "ab", "\u00e9", "z", "\U0001f30a", "\uffff"]),
    "bytes": (pa.binary(), [None, b"", b"\x00", b"\xff", b"a"]),
    "flag": (pa.bool_(), [None, True, False]),
    "day": (pa.date32(), [None, dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(1970, 1, 1)]),
    "time": (TIME, [None, *(dt.datetime(y, 1, 1, tzinfo=UTC) for y in (1960, 1970, 2024))]),
    "price": (DECIMAL, [None, *map(Decimal, ("0.000", "1.005", "-3.250", "999999999.999"))]),
}

ANY = ("min", "max", "first", "last", "distinct", "count", "approx_count_distinct")
ANY += ("mode", "mode_desc", "collect_set", "array_agg")
SHARES = ("quantile", "percentile_cont_desc", "percentile_disc", "percentile_disc_desc")
NUMERIC = ("sum", "mean", "var", "stddev", *SHARES, "approx_percentile")
NUMBERS = ("int", "small", "float", "edge", "single", "wild", "price")
COMBINATIONS: list[tuple[str, ...]] = [(kind, x) for x in POOLS for kind in ANY]
COMBINATIONS += [(kind, x) for x in NUMBERS for kind in NUMERIC]
COMBINATIONS += [(kind, "flag") for kind in ("bool_and", "bool_or", "count_if")]
COMBINATIONS += [(kind, x) for kind in ("approx_percentile",) for x in ("day", "time")]
COMBINATIONS += [(kind, "text") for kind in ("string_agg", "string_set")]
PAIRS = [
    (kind, x, y)
    for kind in ("min_by", "max_by", "last_by", "array_agg", "array_agg")
    for x in POOLS
    for y in POOLS
]
PAIRS += [("string_agg", "text", y) for y in POOLS]
PAIRS += [
    (kind, x, y) for kind in ("corr", "covar_samp", "covar_pop") for x in NUMBERS for y in NUMBERS
]


def by_hash(buckets: int) -> Router:
    """Keys to so many buckets of one instance."""
    return Router(Hash(), even(buckets, 1))


class SumOfProducts(Aggregator):
    """Sum of x * y over rows where both are there, and how many: exact while it fits an int64."""

    state = {"total": pa.int64(), "rows": pa.int64()}  # noqa: RUF012
    result = pa.int64()

    def __init__(self, factor: int = 1) -> None:
        self.factor = factor

    def init(self, n: int) -> State:
        return {"total": np.zeros(n, np.int64), "rows": np.zeros(n, np.int64)}

    def fold(self, state: State, groups: Any, *columns: pa.Array) -> State:
        x, y = (c.fill_null(0).to_numpy().astype(np.int64) for c in columns)
        np.add.at(state["total"], groups, self.factor * (x % 1000) * (y % 1000))
        np.add.at(state["rows"], groups, 1)
        return state

    def merge(self, state: State, groups: Any, other: State) -> State:
        for name, column in other.items():
            np.add.at(state[name], groups, column)
        return state

    def finish(self, state: State) -> pa.Array:
        return pa.array(state["total"] + state["rows"])


def sum_of_products(arguments: list[tuple[Any, ...]]) -> int:
    return sum((x or 0) % 1000 * ((y or 0) % 1000) + 1 for x, y in arguments)


WAYS = [Way(*flags) for flags in product((False, True), repeat=2)]


def parameters_of(
    kind: str, fraction: float, ways: tuple[Way, ...] = (), separator: str = ", "
) -> tuple[Any, ...]:
    """The parameters of a function: shares have a fraction, lists a way for each key."""
    if kind in (*SHARES, "approx_percentile"):
        return (fraction,)
    texts = (separator,) if kind.startswith("string_") else ()
    return (*texts, ways) if kind in ("array_agg", "string_agg") else texts


@st.composite
def functions(draw: st.DrawFn) -> tuple[Function, ...]:
    which = st.sampled_from(COMBINATIONS) | st.sampled_from(PAIRS)
    chosen = draw(st.lists(which, min_size=1, max_size=6))
    fraction = draw(st.sampled_from([0.0, 0.25, 0.3, 0.5, 0.9, 1.0]))
    made = []
    for i, (kind, *columns) in enumerate(chosen):
        types = tuple(POOLS[x][0] for x in columns)
        ways = tuple(draw(st.sampled_from(WAYS)) for _ in columns[1:])
        given = parameters_of(kind, fraction, ways, draw(st.sampled_from(["", ", "])))
        made.append(Function(f"a{i}", kind, tuple(columns), types, given))
    made.append(Function("n", "count"))
    types = (POOLS["int"][0], POOLS["small"][0])
    made.append(Function("u", "user", ("int", "small"), types, (SumOfProducts(),)))
    return tuple(made)


@st.composite
def specs(draw: st.DrawFn) -> AggregateSpec:
    slide = draw(st.integers(1, 12))
    length = draw(st.one_of(st.integers(slide, 40), st.sampled_from([slide, 3 * slide])))
    names = draw(st.lists(st.sampled_from(sorted(POOLS)), max_size=3, unique=True))
    keys = tuple((f"k_{name}", POOLS[name][0]) for name in names)
    return AggregateSpec(PaneWindow(length, slide), keys, draw(functions()))


@st.composite
def rows_for(draw: st.DrawFn, spec: AggregateSpec) -> list[dict[str, Any]]:
    """Tuples in any order; (src, seq) is unique, as it is in a stream."""
    used = {a for f in spec.functions for a in f.arguments}
    tuples = []
    size = draw(st.integers(0, 25))
    width = draw(st.sampled_from([1, 2, 9]))
    span = draw(st.sampled_from([1, 30, 1000]))
    for i in range(size):
        row: dict[str, Any] = {"ts": draw(st.integers(-span, span)), "src": i % 3, "seq": i}
        for name, _ in spec.keys:
            row[name] = draw(st.sampled_from(POOLS[name.removeprefix("k_")][1][:width]))
        for name in sorted(used):
            row[name] = draw(st.sampled_from(POOLS[name][1]))
        tuples.append(row)
    return tuples


def table(spec: AggregateSpec, rows: list[dict[str, Any]]) -> pa.Table:
    used = sorted({a for f in spec.functions for a in f.arguments})
    fields = [(n, pa.int64()) for n in ("ts", "src", "seq")]
    schema = pa.schema([*fields, *spec.keys, *((x, POOLS[x][0]) for x in used)])
    return pa.Table.from_pylist(rows, schema=schema)


def same(mine: Any, twin: Any) -> bool:
    """Equal to the bit, except where the twin says how far off it may be."""
    if isinstance(mine, float) and isinstance(twin, float):
        if math.isnan(mine) or math.isnan(twin):
            return math.isnan(mine) and math.isnan(twin)
        if isinstance(twin, About):
            return abs(mine - twin) <= twin.within
        return mine == twin and math.copysign(1, mine) == math.copysign(1, twin)
    if isinstance(mine, list) and isinstance(twin, list):
        return len(mine) == len(twin) and all(map(same, mine, twin))
    return type(mine) is type(twin) and bool(mine == twin)


def lines(closed: pa.Table) -> list[tuple[Any, ...]]:
    """A table of closed windows as the oracle writes it, times in microseconds."""
    columns = [closed.column(i) for i in range(closed.num_columns)]
    times = [column.cast(pa.int64()) for column in columns[:2]]
    return list(zip(*(c.to_pylist() for c in [*times, *columns[2:]]), strict=True))


@dataclass(frozen=True)
class Course:
    """How a run went: where the rows were cut, how partials met, who owned them, when F moved."""

    cuts: list[int]
    early: int
    owners: list[int]
    frontiers: list[int]


@st.composite
def courses(draw: st.DrawFn, rows: int) -> Course:
    return Course(
        sorted(draw(st.lists(st.integers(0, rows), max_size=4))),
        draw(st.integers(0, 3)),
        draw(st.lists(st.integers(0, 2), min_size=8, max_size=8)),
        sorted(draw(st.lists(st.integers(-60, 60), max_size=4))),
    )


def run(spec: AggregateSpec, rows: list[dict[str, Any]], course: Course) -> list[pa.Table]:
    """Fold, merge and close along a course; one table per step and owner."""
    edges = [0, *course.cuts, len(rows)]
    buckets = len(course.owners)
    parts = [fold(spec, table(spec, rows[a:b]), by_hash(buckets)) for a, b in pairwise(edges)]
    parts = [merge(spec, parts[: course.early]), *parts[course.early :]]
    whole = merge(spec, parts)
    output = []
    for owner in sorted(set(course.owners)):
        mine = [b for b, o in enumerate(course.owners) if o == owner]
        held = whole.filter(np.isin(whole["bucket"].to_numpy(), mine))
        above = MIN_US
        for upto in [*course.frontiers, MAX_US]:
            output.append(close(spec, held, above, upto))
            held = held.filter(held["pane"].to_numpy() >= spec.window.needed_from(upto))
            above = upto
    return output
