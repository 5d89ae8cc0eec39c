"""The registry: every row is whole, every name leads to one, and nothing else knows of kinds."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

import tidegate
from tests.oracle import function as twins
from tidegate.errors import QueryError
from tidegate.operate.aggregate import registry
from tidegate.operate.aggregate.definition import AggregateFunction, WithinFunction
from tidegate.operate.aggregate.function import Function
from tidegate.operate.aggregate.functions.collection import TRACED
from tidegate.operate.aggregate.functions.held_tuples import HELD
from tidegate.operate.aggregate.functions.raw_arguments import UNFOLDED
from tidegate.operate.aggregate.functions.spread import SPREAD
from tidegate.operate.aggregate.functions.total import COUNTED_MEAN
from tidegate.operate.aggregate.process import PROCESS
from tidegate.operate.aggregate.sample.quantile_sample import RANKED
from tidegate.operate.aggregate.sample.sample_pool import DRAWN
from tidegate.operate.aggregate.sample.sample_state import SAMPLED
from tidegate.operate.aggregate.shed.candidates import CANDIDATES
from tidegate.operate.aggregate.shed.concept_aggregate import REPRESENTED
from tidegate.operate.aggregate.user import USER

SOURCE = Path(tidegate.__file__).parent
TYPES = (pa.int32(), pa.float64(), pa.string(), pa.bool_(), pa.decimal128(9, 2), pa.date32())
INNER = (
    *(USER, PROCESS, SAMPLED, RANKED, DRAWN, HELD, UNFOLDED, REPRESENTED, CANDIDATES),
    SPREAD,
    COUNTED_MEAN,
    TRACED,
)
REACHED = {
    *(f.distinct for f in registry.TABLE),
    *(f.filtered for f in registry.TABLE),
    *(f.descending for f in registry.TABLE if isinstance(f, WithinFunction)),
}
"""The functions that others name: users need no word for them."""

ROWS = pytest.mark.parametrize(
    "row",
    [f for f in registry.TABLE if f not in INNER],
    ids=lambda row: row.name,
)


def test_no_name_is_there_twice() -> None:
    for names in (
        [f.name for f in registry.TABLE],
        registry.sql_names(),
        [f.python for f in registry.TABLE if f.python is not None],
    ):
        assert [name for name, times in Counter(names).items() if times > 1] == []


@ROWS
def test_a_row_is_found_by_all_its_names(row: AggregateFunction) -> None:
    assert registry.find(row.name) is row
    assert row.python is None or registry.find_python(row.python) is row
    assert (row.python is None) <= (row.name in REACHED)
    for name in row.sql:
        assert name == name.upper()
        assert registry.find_sql(name) is registry.find_sql(name.lower()) is row


@ROWS
def test_a_row_says_what_its_kernels_need(row: AggregateFunction) -> None:
    """Its kernels are made for every type that its rules let through, and none is empty-handed."""
    assert row.doc.endswith(".")
    parameters = tuple(0.5 if p.default is None else p.default for p in row.parameters)
    made = 0
    for type_ in TYPES:
        targets = [rule.target(type_) for rule in row.arguments[: row.width(ordered=False)]]
        if None in targets:
            continue
        columns = tuple(f"x{i}" for i in range(len(targets)))
        function = Function("a", row.name, columns, tuple(targets), parameters)
        assert function.state
        assert function.result is not None
        assert function.inputs[: len(columns)] == columns
        assert (len(function.inputs) > len(columns)) == row.in_order
        made += 1
    assert made >= 1


@ROWS
def test_what_it_refers_to_is_there(row: AggregateFunction) -> None:
    if row.distinct is not None:
        there = registry.find(row.distinct)
        assert there.width(ordered=False) == row.width(ordered=False) or row.name == "count"
    assert row.skips_null == (row.filtered is None)
    if row.filtered is not None:
        assert len(registry.find(row.filtered).arguments) == len(row.arguments) + 1
        assert registry.find(row.filtered).decides == len(row.arguments)
    if isinstance(row, WithinFunction):
        assert registry.find(row.descending).parameters == row.parameters
    if row.means is not None:
        name, fixed = row.means
        assert len(registry.find(name).parameters) == len(row.parameters) + len(fixed)
    if row.edge is not None:
        assert row.in_order
        assert not row.skips_null


@ROWS
def test_every_function_has_a_plain_twin(row: AggregateFunction) -> None:
    known = {*twins.OF_TUPLES, *twins.OF_ANY, *twins.OF_SOME}
    assert (row.means[0] if row.means else row.name) in known


def test_an_unknown_function_is_told_with_the_near_ones() -> None:
    with pytest.raises(QueryError, match=r"the kind must be known; got cor\. Did you mean corr"):
        registry.find("cor")
    assert registry.find_sql("COR") is None
    assert registry.find_python("cor") is None


def test_nothing_outside_asks_which_function_it_is() -> None:
    """No module compares a kind with a name: what it must know is in the row."""
    kinds = "|".join(f.name for f in registry.TABLE)
    asks = re.compile(rf"kind\s*(?:==|!=|in|not in)\s*\(?[\"'](?:{kinds})[\"']")
    read = 0
    for path in sorted(SOURCE.rglob("*.py")):
        assert not asks.search(path.read_text(encoding="utf-8")), path
        read += 1
    assert read > 200
