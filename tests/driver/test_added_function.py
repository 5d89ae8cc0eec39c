"""An aggregate function that is new on a checkpoint: refused, or it begins with the next tuples."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tests.driver.scene import Row, compacted, loop_of, memory, moment, plan_of, rows_of
from tests.property.queries import CALLS, OTHER_TYPES, columns_of
from tidegate.errors import CheckpointError
from tidegate.operate.aggregate.function import Function
from tidegate.operate.kernels.group import Groups
from tidegate.plan.physical import Plan
from tidegate.sink.memory import MemorySink
from tidegate.state.inspect import inspect
from tidegate.state.store import Store

ROWS: list[Row] = [(i * 0.7, "abcd"[i * i % 3], (i * 5) % 11) for i in range(60)]
AT = 6
"""The batch from which on the query has more functions; batches are of four rows."""

WINDOWS = {
    "time": "RANGE 12 SECONDS SLIDE 3 SECONDS",
    "sessions": "SESSION GAP 4 SECONDS MAX 20 SECONDS",
    "days": "RANGE 1 DAY TIME ZONE 'Asia/Tokyo'",
}
QUERY = "SELECT k, SUM(v) AS s{more} FROM s [{window}] GROUP BY k"
NEW = ("COUNT(*)", "MAX(v)", "MEDIAN(v)", "AVG(v)", "FIRST(v)", "LAST(v)", "STDDEV(v)", "MODE(v)")


def since(batch: int, window: str) -> str:
    """Only tuples that a batch or a later one folds: of sessions the last of each batch waits."""
    row = 4 * batch - (1.5 if window == "sessions" else 0.5)
    return f"FILTER (WHERE ts >= TIMESTAMP '{moment(row * 0.7)}')"


def query(window: str, *calls: str, later: str = "") -> str:
    more = "".join(f", {call} {later} AS c{i}" for i, call in enumerate(calls))
    return QUERY.format(window=WINDOWS[window], more=more)


def run(plan: Plan, place: Path, batches: int | None, **options: Any) -> list[list[Any]]:
    """The rows of each batch."""
    sink, counts = MemorySink(), [0]
    loop = loop_of(plan, [memory(*ROWS, end=True)], place, sink, batch_rows=4, **options)
    for _ in itertools.count() if batches is None else range(batches):
        if loop.step() is None:
            break
        compacted(loop)
        counts.append(sink.table().num_rows)
    loop.close()
    rows = rows_of(sink)
    return [rows[a:b] for a, b in itertools.pairwise(counts)]


@pytest.mark.parametrize("window", WINDOWS)
def test_new_functions_begin_with_the_next_tuples_and_the_others_go_on(
    window: str, tmp_path: Path
) -> None:
    """As if a filter had kept all earlier tuples from the new ones alone."""
    wanted = run(plan_of(query(window, *NEW, later=since(AT, window))), tmp_path / "whole", None)
    place = tmp_path / "changed"
    run(plan_of(query(window)), place, AT, instances=2)
    with pytest.raises(CheckpointError) as refused:
        run(plan_of(query(window, *NEW)), place, 1)
    assert "the state of aggregate does not have COUNT(*), MAX(v) of bigint, " in str(refused.value)
    assert "would start empty" in str(refused.value)
    assert "+ select MAX(v) as c1" in str(refused.value)
    assert "With --start-empty" in str(refused.value)
    found = run(plan_of(query(window, *NEW)), place, 3, instances=3, start_empty=True)
    found += run(plan_of(query(window, *NEW)), place, None, instances=1)
    assert found == wanted[AT:]
    assert sum(map(len, found)) > 1
    facts = inspect(Store.open(place), verify=True)
    assert facts["verified"]["problems"] == []
    (change,) = facts["query_changes"]
    assert change["batch"] == AT
    assert "MAX(v) of bigint starts empty" in change["changed"]


def test_a_name_is_not_used_again_while_segments_may_have_it(tmp_path: Path) -> None:
    """The states of a function that went are still in files; the next one is not read from them."""
    for calls, batches in ((("MAX(v + 99)",), 2), ((), 1), (("MAX(v)",), 1)):
        run(plan_of(query("time", *calls)), tmp_path / "changed", batches, start_empty=True)
    found = run(plan_of(query("time", "MAX(v)")), tmp_path / "changed", None)
    once = query("time", "MAX(v)", later=since(3, "time"))
    wanted = run(plan_of(once), tmp_path / "whole", None)
    assert found == wanted[4:]


def test_what_is_answered_from_samples_does_not_begin_empty(tmp_path: Path) -> None:
    rest = "WITH ERROR 10 PERCENT BUDGET 30 ROWS"
    run(plan_of(f"{query('time', 'MEDIAN(v)')} {rest}"), tmp_path, 2)
    more = f"{query('time', 'MEDIAN(v)', 'QUANTILE(v, 0.9)')} {rest}"
    with pytest.raises(CheckpointError, match="the state of aggregate "):
        run(plan_of(more), tmp_path, 1, start_empty=True)


class Product(tg.Aggregator):
    """The product of what is not zero; not made for no rows."""

    state: ClassVar = {"p": pa.float64()}
    result = pa.float64()

    def init(self, n: int) -> dict[str, Any]:
        return {"p": np.ones(n)}

    def fold(self, state: Any, groups: Any, values: pa.Array) -> Any:
        assert len(values)
        np.multiply.at(state["p"], groups, np.asarray(values.fill_null(1), dtype=float))
        return state

    def merge(self, state: Any, groups: Any, other: Any) -> Any:
        np.multiply.at(state["p"], groups, other["p"])
        return state

    def finish(self, state: Any) -> Any:
        return state["p"]


FUNCTIONS = [
    *(columns_of([], [call])[1][0] for call in (CALLS | OTHER_TYPES)),
    *(Function("a0", kind, ("x",), (pa.int64(),)) for kind in ("mode", "array_agg")),
    Function("a0", "string_agg", ("x",), (pa.string(),), (",",)),
    Function("a0", "user", ("x",), (pa.int64(),), (Product(),)),
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f"{f.kind} {f.types}")
def test_a_state_of_no_rows_changes_no_other(function: Function) -> None:
    """Merged before and after one of a row."""
    none = list(function.unfolded.values())
    assert [column.type for column in none] == [type_ for _, type_ in function.state]
    one = [pa.array([7 + i], pa.int64()) for i in range(len(function.inputs))]
    given = [
        pa.nulls(1, type_) if not pa.types.is_integer(type_) else column
        for type_, column in zip((*function.types, *(pa.int64(),) * 3), one)
    ]
    family = function.family
    alone = family.fold(Groups(np.zeros(1, np.int64), 1), given)
    wanted = family.finish(family.merge(Groups(np.zeros(1, np.int64), 1), alone))
    for order in ([none, alone], [alone, none], [none, alone, none]):
        columns = [pa.concat_arrays(parts) for parts in zip(*order, strict=True)]
        found = family.merge(Groups(np.zeros(len(order), np.int64), 1), columns)
        assert family.finish(found).equals(wanted)
