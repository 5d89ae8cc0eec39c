"""Windows that overlap much: the twin's results, merges that no cut decides, and few of them."""

from __future__ import annotations

import math
import tracemalloc
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cost import calls
from tests.operate.aggregate.stream import (
    Course,
    by_hash,
    courses,
    functions,
    lines,
    rows_for,
    run,
    specs,
    sum_of_products,
)
from tests.operate.aggregate.test_pane import check, place
from tests.oracle.aggregate import windows
from tidegate.batch import MAX_US, MIN_US
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.pane import closing, overlap
from tidegate.operate.aggregate.pane.overlap import MANY
from tidegate.operate.aggregate.pane.pane import AggregateSpec, close, close_steps, fold
from tidegate.operate.aggregate.pane.pane_window import PaneWindow
from tidegate.operate.aggregate.user import Aggregator, State

USERS = {"u": sum_of_products}
SECOND = 1_000_000
HOUR = 3600 * SECOND


@st.composite
def overlapping(draw: st.DrawFn) -> AggregateSpec:
    """Slides from one pane to several, in ranges that are multiples of them and that are not."""
    spec = draw(specs())
    slide = draw(st.integers(1, 3))
    length = draw(st.integers((MANY - 1) * slide + 1, 27 * slide))
    return AggregateSpec(PaneWindow(length, slide), spec.keys, draw(functions()))


@given(st.data())
def test_any_course_gives_what_the_twin_gives(data: st.DataObject) -> None:
    spec = data.draw(overlapping())
    rows = data.draw(rows_for(spec))
    tables = run(spec, rows, data.draw(courses(len(rows))))
    for each in tables:
        each.validate(full=True)
        assert each.schema == spec.result_schema
        assert [place(spec, r) for r in lines(each)] == sorted(place(spec, r) for r in lines(each))
    mine = [line for each in tables for line in lines(each)]
    check(spec, sorted(mine, key=lambda r: place(spec, r)), windows(spec, rows, users=USERS))


@given(st.data())
def test_windows_that_overlap_little_may_share_too(data: st.DataObject) -> None:
    """Any window can go either way; which way it goes is a matter of cost."""
    spec = data.draw(specs())
    rows = data.draw(rows_for(spec))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overlap, "MANY", 1)
        (shared,) = run(spec, rows, Course([], 0, [0], []))
    check(spec, lines(shared), windows(spec, rows, users=USERS))


def test_steps_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    spec, made = hourly(400, 7, ("sum", "quantile", "distinct", "approx_count_distinct", "last"))
    panes = fold(spec, made, by_hash(4))
    whole = close(spec, panes, MIN_US, MAX_US)
    monkeypatch.setattr(closing, "_STEP_WINDOWS", 500)
    monkeypatch.setattr("tidegate.operate.aggregate.pane.overlap._STEP_WORDS", 3000)
    stepped = close(spec, panes, MIN_US, MAX_US)
    assert stepped["window_end"].num_chunks > 10
    assert stepped.combine_chunks().equals(whole.combine_chunks())


def test_functions_that_merge_stand_beside_those_that_slide() -> None:
    """Where windows overlap some, but not so much that a tree is worthwhile."""
    spec, made = hourly(60, 3, ("sum", "quantile", "distinct", "approx_count_distinct", "var"))
    spec = replace(spec, window=replace(spec.window, range_us=7 * SECOND))
    panes = fold(spec, made, by_hash(4))
    twin = windows(spec, made.to_pylist())
    ends = [end for _, end, *_ in twin]
    check(spec, lines(close(spec, panes, MIN_US, MAX_US)), twin)
    check(spec, lines(close(spec, panes, MIN_US, ends[40])), [r for r in twin if r[1] <= ends[40]])


def hourly(
    rows: int, keys: int, kinds: tuple[str, ...], span_us: int = HOUR
) -> tuple[AggregateSpec, pa.Table]:
    """Tuples of an hour, with NULL among them, in windows of a minute that slide by a second."""
    chance = np.random.default_rng(rows + keys)
    columns = {"ts": np.sort(chance.integers(-span_us // 2, span_us // 2, rows))}
    columns |= {"src": np.zeros(rows, np.int64), "seq": np.arange(rows)}
    columns |= {"k": chance.integers(0, keys, rows)}
    values = pa.array(np.round(chance.normal(size=rows), 2), mask=chance.random(rows) < 0.05)
    made = pa.table(columns).append_column("x", values)
    chosen = tuple(
        Function(f"a_{k}", k, ("x",), (pa.float64(),), (0.3,) if k == "quantile" else ())
        for k in kinds
    )
    return AggregateSpec(PaneWindow(60 * SECOND, SECOND), (("k", pa.int64()),), chosen), made


class Calls(Aggregator):
    """A sum of floats, rounded at every merge, that counts how many states it was given."""

    state = {"total": pa.float64()}  # noqa: RUF012
    result = pa.float64()
    given = 0

    def init(self, n: int) -> State:
        return {"total": np.zeros(n)}

    def fold(self, state: State, groups: Any, *columns: pa.Array) -> State:
        np.add.at(state["total"], groups, columns[0].fill_null(0).to_numpy())
        return state

    def merge(self, state: State, groups: Any, other: State) -> State:
        type(self).given += len(groups)
        for group, value in zip(groups, other["total"], strict=True):
            state["total"][group] = round(state["total"][group] * 1.001 + value, 3)
        return state

    def finish(self, state: State) -> pa.Array:
        return pa.array(state["total"])


def test_no_cut_decides_which_states_are_merged() -> None:
    """A merge that is far from associative shows every change of their order."""
    spec, made = hourly(3000, 3, ())
    function = Function("u", "user", ("x",), (pa.float64(),), (Calls(),))
    spec = AggregateSpec(PaneWindow(77 * SECOND, 3 * SECOND), spec.keys, (function,))
    panes = fold(spec, made, by_hash(4))
    whole = close(spec, panes, MIN_US, MAX_US).combine_chunks()
    ends = np.unique(whole["window_end"].cast(pa.int64()).to_numpy())
    for cuts in (ends[100:101], ends[[5, 6, 7, 400, 401]], ends[::50] + 17):
        held, parts = panes, []
        for above, upto in pairwise([MIN_US, *cuts.tolist(), MAX_US]):
            parts.append(close(spec, held, above, upto))
            held = held.filter(held["pane"].to_numpy() >= spec.window.needed_from(upto))
        assert pa.concat_tables(parts).combine_chunks().equals(whole)
    for key in range(3):
        alone = close(spec, panes.filter(panes["k"].to_numpy() == key), MIN_US, MAX_US)
        assert alone.equals(whole.filter(whole["k"].to_numpy() == key))


@pytest.mark.parametrize("length", [64, 1000, 3600])
def test_a_window_takes_log_many_merges_and_not_one_for_each_pane(length: int) -> None:
    function = Function("u", "user", ("x",), (pa.float64(),), (Calls(),))
    spec = AggregateSpec(PaneWindow(length, 1), (), (function,))
    rows = 2 * length
    ids = np.arange(rows)
    made = pa.table({"ts": ids, "src": ids * 0, "seq": ids, "x": np.ones(rows)})
    panes = fold(spec, made, by_hash(1))
    Calls.given = 0
    assert close(spec, panes, MIN_US, MAX_US).num_rows == rows + length - 1
    assert 0 < Calls.given <= 15 * rows
    Calls.given = 0
    assert close(spec, panes, rows - 1, rows).num_rows == 1
    assert 0 < Calls.given <= 2 * length + 8 * math.log2(length)


def test_a_gap_of_years_costs_only_the_windows_that_have_tuples() -> None:
    spec, made = hourly(3, 1, ("sum", "quantile", "distinct"))
    spec = AggregateSpec(PaneWindow(HOUR, SECOND), spec.keys, spec.functions)

    def with_gaps(unit_us: int) -> pa.Table:
        times = pa.array([-200 * unit_us, 0, 5000 * unit_us])
        rows = made.set_column(0, "ts", times)
        return close(spec, fold(spec, rows, by_hash(4)), MIN_US, MAX_US)

    year = 365 * 24 * HOUR
    assert calls(lambda: with_gaps(year)) <= 2 * calls(lambda: with_gaps(HOUR))
    closed = with_gaps(year)
    assert closed.num_rows == 3 * 3600
    ends = closed["window_end"].cast(pa.int64()).to_numpy()
    assert np.all(np.diff(ends) > 0)
    assert set(np.unique(np.diff(ends))) > {SECOND}


def test_groups_that_miss_most_panes_are_those_of_the_twin() -> None:
    spec, made = hourly(40, 6, ("sum", "mean", "quantile", "distinct", "min", "first", "count"))
    closed = close(spec, fold(spec, made, by_hash(4)), MIN_US, MAX_US)
    check(spec, lines(closed), windows(spec, made.to_pylist()))


def test_a_million_windows_of_one_tuple_come_in_bounded_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(closing, "_STEP_WINDOWS", 50_000)
    spec, made = hourly(1, 1, ("sum", "quantile"))
    spec = AggregateSpec(PaneWindow(SECOND, 1), spec.keys, spec.functions)
    panes, windows_made = fold(spec, made, by_hash(1)), 0
    tracemalloc.start()
    before = pa.total_allocated_bytes()
    for rows in close_steps(spec, panes, MIN_US, MAX_US, partly=False):
        assert rows["a_sum"].unique().to_pylist() == made["x"].to_pylist()
        assert pa.total_allocated_bytes() - before < 200 * 50_000
        windows_made += rows.num_rows
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert windows_made == SECOND
    assert peak < 400 * 50_000
