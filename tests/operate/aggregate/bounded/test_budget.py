"""A budget bounds what is in memory for a window, over all of its groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

from tests.driver.scene import SCHEMA, loop_of, memory, plan_of
from tidegate.driver.report.status import status_of
from tidegate.errors import QueryError
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.pane.pane import AggregateSpec
from tidegate.operate.aggregate.pane.pane_window import PaneWindow
from tidegate.operate.aggregate.sample.release import released
from tidegate.operate.aggregate.sample.sample_pool import Drawing, Drawn, drawn_rows
from tidegate.operate.aggregate.sample.sample_state import Sampling
from tidegate.operate.aggregate.user import Aggregator
from tidegate.operate.instance_cache import Kept
from tidegate.operate.kernels.group import Groups
from tidegate.plan.lowering.lower import lower
from tidegate.plan.physical import Plan
from tidegate.query.aggregate import AggregateCall, aggregate, median, quantile
from tidegate.query.clause.error import ErrorBound
from tidegate.query.definition import StreamDef
from tidegate.query.name import column
from tidegate.query.node.node import Aggregate, Input
from tidegate.query.window import TimeWindow
from tidegate.sink.memory import MemorySink

WINDOW_US = 10_000_000


class Middle(Aggregator):
    """The mean, as a user may write it."""

    state: ClassVar = {"total": pa.float64(), "n": pa.int64()}
    result = pa.float64()
    mean_like = True

    def init(self, n: int) -> dict[str, Any]:
        return {"total": np.zeros(n), "n": np.zeros(n, np.int64)}

    def fold(self, state: dict[str, Any], groups: Any, v: pa.Array) -> dict[str, Any]:
        np.add.at(state["total"], groups, v.cast(pa.float64()).to_numpy())
        np.add.at(state["n"], groups, 1)
        return state

    def merge(self, state: dict[str, Any], groups: Any, other: dict[str, Any]) -> dict[str, Any]:
        for name, held in state.items():
            np.add.at(held, groups, other[name])
        return state

    def finish(self, state: dict[str, Any]) -> pa.Array:
        return pa.array(state["total"] / np.maximum(state["n"], 1))


class Alone(Middle):
    exact_fallback = False


def planned(call: AggregateCall, budget_rows: int | None = None) -> Plan:
    """An aggregate by group, exact without a budget."""
    clauses = () if budget_rows is None else (ErrorBound(0.1, 0.95, budget_rows),)
    stream = Input(StreamDef("s", (), "ts", 0, None, SCHEMA))
    window = TimeWindow(WINDOW_US, WINDOW_US)
    return lower(Aggregate(stream, window, (("k", column("k")),), (("a", call),), clauses=clauses))


@dataclass
class Course:
    """What a query gave, what it told of its last window, and the most that it held in memory."""

    rows: list[tuple[Any, ...]]
    told: dict[str, float]
    held_bytes: int


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Course]:
    """Runs a plan over two windows of so many groups, in batches of a quarter of a window."""
    held: dict[tuple[str, str], int] = {}
    most = [0]
    leave = Kept.leave

    def left(kept: Kept, what: str, value: object, nbytes: int) -> None:
        held[kept.owner, what] = nbytes
        most[0] = max(most[0], sum(held.values()))
        leave(kept, what, value, nbytes)

    monkeypatch.setattr(Kept, "leave", left)

    def ran(plan: Plan, groups: int, rows: int) -> Course:
        held.clear()
        most[0] = 0
        every = [(20 * i / rows, f"k{i * 7 % groups}", 100 + i * i % 31) for i in range(rows)]
        folder, sink = tmp_path / f"{len(list(tmp_path.iterdir()))}", MemorySink()
        loop = loop_of(plan, [memory(*every, end=True)], folder, sink, batch_rows=rows // 8)
        loop.run()
        told = status_of(loop)["newest_windows"]
        window = ([windows[-1] for windows in told.values() if windows] or [{}])[-1]
        return Course([tuple(r.values()) for r in sink.table().to_pylist()], window, most[0])

    return ran


CALLS = {"own": aggregate(Middle(), "v"), "median": median("v"), "tail": quantile("v", 0.9)}


@pytest.mark.parametrize("name", ["own", "median"])
def test_many_groups_hold_no_more_than_the_exact_query(
    name: str, course: Callable[..., Course]
) -> None:
    exact = course(planned(CALLS[name]), 4_000, 16_000)
    found = course(planned(CALLS[name], 1_000), 4_000, 16_000)
    assert exact.held_bytes > 0
    assert found.held_bytes <= exact.held_bytes
    assert found.told["sample_rows"] == 0
    assert found.told["spilled_rows"] == 8_000
    # The value, its ends, and whether it is exact.
    assert [(*r[:4], True) for r in exact.rows] == [(*r[:4], r[-1]) for r in found.rows]
    assert all(r[3] == r[4] == r[5] for r in found.rows)


@pytest.mark.parametrize("name", CALLS)
def test_a_window_draws_no_more_than_its_budget_has(
    name: str, course: Callable[..., Course]
) -> None:
    """Five groups of 2,400 tuples each: quantiles take 540 and more of each, and then all."""
    found = course(planned(CALLS[name], 3_500), 5, 24_000)
    assert found.told["rows_from_samples"] == 1
    assert 0 < found.told["sample_rows"] <= found.told["budget_rows"] == 3_500
    looked_at = found.told["sample_rows"] / 12_000
    assert found.told["tuples_looked_at"] == pytest.approx(looked_at, rel=1e-5)
    less = course(planned(CALLS[name], 600), 5, 24_000)
    assert less.told["sample_rows"] <= 600
    assert found.held_bytes == less.held_bytes == 0


def test_aggregates_share_the_budget(course: Callable[..., Course]) -> None:
    sql = "SELECT MEDIAN(v) AS m, MEDIAN(-v) AS t FROM s [RANGE 10 SECONDS] WITH ERROR 10 PERCENT "
    both = course(plan_of(sql + "BUDGET 500 ROWS"), 1, 24_000).told
    assert both["windows_from_samples"] == 1
    assert 2 * 195 <= both["sample_rows"] <= both["budget_rows"] == 500
    assert not course(plan_of(sql + "BUDGET 380 ROWS"), 1, 24_000).told.get("sample_rows")


def test_what_keeps_no_more_than_samples_has_no_budget_for_groups() -> None:
    with pytest.raises(QueryError, match="aggregate Alone keeps no more than samples") as refused:
        planned(aggregate(Alone(), "v"), 100)
    assert "Leave BUDGET out, or write exact_fallback = True" in str(refused.value)


def test_a_pane_of_too_many_groups_releases_its_priorities() -> None:
    rule = Drawing(Sampling(1, 3), 4)
    function = Function("f", "drawn", ("x",), (pa.int64(),), (rule,))
    spec = AggregateSpec(PaneWindow(10, 10), (("k", pa.int64()),), (function,))
    family = Drawn((pa.int64(),), rule)
    n = 18
    order = [pa.array(np.arange(n)), pa.array(np.zeros(n, np.int64)), pa.array(np.arange(n))]
    states = family.fold(Groups(np.arange(n) // 2, 9), [pa.array(np.arange(n)), *order])
    heads = [pa.array([0] * 9, pa.int32()), pa.array([7] * 5 + [8] * 4), pa.array(range(9))]
    partials = pa.Table.from_arrays([*heads, *states], schema=spec.partial_schema)
    left = released(spec, partials)
    sizes = pa.compute.list_value_length(left.column("f.priority")).to_pylist()
    assert sizes == [0] * 5 + [2] * 4
    assert left.drop_columns("f.priority") == partials.drop_columns("f.priority")
    merged = family.merge(
        Groups(np.array([0, 1, 2, 3, 4, 0, 5, 6, 7]), 8),
        [left.column(name).combine_chunks() for name, _ in function.state],
    )
    rows = drawn_rows(merged)
    assert rows.sizes.tolist() == [0] * 5 + [2] * 3  # released in a part, and so in the whole
    assert sorted(rows.columns[0].to_pylist()) == list(range(12, 18))
    assert merged[0].to_pylist() == [4, *[2] * 7]


def test_a_pane_whose_groups_need_more_than_the_budget_releases_its_priorities() -> None:
    """At least 3 tuples of a group, or all: 2 + 3 + 1 of one pane, 3 + 1 of the other."""
    sizes = [2, 4, 1, 9, 1]
    rows = {
        budget: _left(sizes, [7, 7, 7, 8, 8], range(5), Drawing(Sampling(1, 3), budget, 3))
        for budget in (3, 4, 5, 6)
    }
    assert rows[6] == sizes
    assert rows[5] == rows[4] == [0, 0, 0, 9, 1]
    assert rows[3] == [0] * 5


@pytest.mark.parametrize("splits_keys", [False, True])
def test_parts_of_one_group_need_no_more_than_the_group(splits_keys: bool) -> None:
    drawing = Drawing(Sampling(1, 3), 5, 3)
    left = _left([2, 2, 2], [7, 7, 7], [4, 4, 4], drawing, splits_keys=splits_keys)
    assert left == ([2, 2, 2] if splits_keys else [0, 0, 0])


def _left(
    sizes: list[int], panes: list[int], keys: Iterable[int], rule: Drawing, **how: bool
) -> list[int]:
    """How many priorities each partial has left, of as many tuples."""
    function = Function("f", "drawn", ("x",), (pa.int64(),), (rule,))
    spec = AggregateSpec(PaneWindow(10, 10), (("k", pa.int64()),), (function,))
    n = sum(sizes)
    order = [pa.array(np.arange(n)), pa.array(np.zeros(n, np.int64)), pa.array(np.arange(n))]
    groups = Groups(np.repeat(np.arange(len(sizes)), sizes), len(sizes))
    # More may be drawn of a group than it takes at least.
    family = Drawn((pa.int64(),), replace(rule, sampling=Sampling(1, 100)))
    states = family.fold(groups, [pa.array(np.arange(n)), *order])
    heads = [pa.array(range(len(sizes)), pa.int32()), pa.array(panes), pa.array(list(keys))]
    partials = pa.Table.from_arrays([*heads, *states], schema=spec.partial_schema)
    left = released(spec, partials, **how).column("f.priority")
    counts: list[int] = pa.compute.list_value_length(left).to_pylist()
    return counts
