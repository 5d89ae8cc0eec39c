"""Tuples that are appended to a gate one at a time: the same tuples as in tables, and fast."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import SourceError
from tidegate.gate.gate import Gate
from tidegate.gate.loose import LooseRun, RowFitter

START = datetime(2024, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema(
    [
        ("at", pa.timestamp("us", "UTC")),
        ("n", pa.int32()),
        ("x", pa.float64()),
        ("who", pa.string()),
        ("on", pa.bool_()),
    ]
)


def row(at: int, n: object = 1, x: object = 0.5, who: object = "a", on: object = True) -> dict:
    return {"at": START + timedelta(microseconds=at), "n": n, "x": x, "who": who, "on": on}


ROWS = st.builds(
    row,
    st.integers(0, 9),
    st.one_of(st.integers(-(2**31), 2**31 - 1), st.none()),
    st.one_of(st.floats(), st.integers(0, 9)),
    st.one_of(st.text(st.characters(codec="utf-8"), max_size=3), st.none()),
    st.booleans(),
)


@given(
    st.lists(st.tuples(st.sampled_from("ab"), ROWS, st.sampled_from(["row", "table", "read"]))),
    st.integers(0, 3),
)
def test_single_tuples_are_those_of_tables(
    steps: list[tuple[str, dict[str, Any], str]], disorder: int
) -> None:
    gates = [
        Gate(time="at", schema=SCHEMA, sources=["a", "b"], readers="r", disorder=disorder)
        for _ in range(2)
    ]
    given_back, read = [[], []], [[], []]
    for source, one, how in steps:
        table = pa.Table.from_pylist([one], SCHEMA)
        for gate, rows, backs in zip(
            gates, ([one] if how == "row" else table, table), given_back, strict=True
        ):
            told = gate.append(source, rows)
            backs.append((told.rows, told.late.to_pylist(), told.rejected.to_pylist()))
        if how == "read":
            for gate, seen in zip(gates, read, strict=True):
                seen.extend(map(repr, gate.next_ready("r", 2).to_pylist()))
    for gate, seen in zip(gates, read, strict=True):
        gate.end("a")
        gate.end("b")
        assert gate.status().waiting_rows == 0
        seen.extend(map(repr, gate.next_ready("r").to_pylist()))
    assert repr(given_back[0]) == repr(given_back[1])
    assert read[0] == read[1]


def test_what_does_not_fit_is_refused_when_it_is_appended() -> None:
    gate = Gate(time="at", schema=SCHEMA, sources="a", readers="r")
    gate.append("a", [row(1)])
    for wrong in (row(2, n=2**40), row(2, n="x"), {**row(2), "more": 1}, row(2, who="\ud800")):
        with pytest.raises((SourceError, UnicodeEncodeError)):
            gate.append("a", [wrong])
    assert gate.status().waiting_rows == 1


def test_a_caller_may_change_the_row_afterwards() -> None:
    gate = Gate(time="at", schema=SCHEMA, sources="a", readers="r")
    one = row(1)
    gate.append("a", [one])
    one["n"] = 7
    gate.end("a")
    assert gate.next_ready("r")["n"].to_pylist() == [1]


def test_single_tuples_wait_in_one_run() -> None:
    gate = Gate(time="at", schema=SCHEMA, sources="a", readers="r")
    for at in range(1_000):
        gate.append("a", [row(at)])
    (run,) = gate._sources["a"]._runs
    assert isinstance(run, LooseRun)
    assert run.rows == 1_000
    assert gate.next_ready("r").num_rows == 999


def test_a_single_tuple_costs_no_table() -> None:
    """Some microseconds of CPU time, of which a busy machine takes none; a table takes hundreds."""
    gate = Gate(time="at", schema=SCHEMA, sources="a", readers="r")
    rows = [[row(at)] for at in range(5_000)]
    begun = time.process_time()
    for one in rows:
        gate.append("a", one)
    assert (time.process_time() - begun) / len(rows) < 50e-6


def test_types_that_need_a_conversion_go_by_table() -> None:
    schema = pa.schema([("at", pa.timestamp("us", "UTC")), ("d", pa.decimal128(9, 2))])
    assert RowFitter(schema, "at").fit([{"at": START, "d": 1}]) is None
    assert RowFitter(SCHEMA, "at").fit([row(1)]) is not None
