"""Streams with a column called ts that is not their time: * has it as ts_1, nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from tidegate import col, left, right
from tidegate.query.stream import Stream
from tidegate.schema import TIME
from tidegate.session.session import Session

AT = [1, 2, 3]
OTHER = [300, None, 100]


def streams() -> tuple[Session, Stream, Stream]:
    session = Session(master="none")
    at = pa.array(AT).cast(TIME)
    odd = pa.table({"at": at, "ts": pa.array(OTHER).cast(TIME), "k": [1, 1, 1]})
    plain = pa.table({"at": at, "k": [1, 1, 1]})
    made = session.stream(odd, time="at", name="odd")
    return session, made, session.stream(plain, time="at", name="plain")


def numbers(table: pa.Table) -> dict[str, list[int | None]]:
    return {n: table.column(n).cast(pa.int64()).to_pylist() for n in table.column_names}


ALL = {"ts": AT, "at": AT, "ts_1": OTHER, "k": [1, 1, 1]}
PAIRS = "FROM odd [RANGE 0 SECONDS] AS o JOIN plain [RANGE 0 SECONDS] AS p ON o.k = p.k"
EARLY = "ts < TIMESTAMP '1970-01-01 00:00:00.000050'"
WHOLE = {
    "SELECT * FROM odd": ALL,
    "SELECT * FROM odd LIMIT 2": {n: v[:2] for n, v in ALL.items()},
    "SELECT * FROM odd WHERE ts IS NOT NULL": {n: [v[0], v[2]] for n, v in ALL.items()},
    "SELECT *, k AS z FROM odd": {**ALL, "z": [1, 1, 1]},
    "SELECT * EXCEPT (ts) FROM odd": {n: v for n, v in ALL.items() if n != "ts_1"},
    "SELECT * RENAME (ts AS x) FROM odd": {"ts": AT, "at": AT, "x": OTHER, "k": [1, 1, 1]},
    "SELECT ts_1 FROM (SELECT * FROM odd)": {"ts": AT, "ts_1": OTHER},
    f"SELECT o.* {PAIRS}": ALL,
    f"SELECT o.k AS k {PAIRS} WHERE {EARLY}": {"ts": AT, "k": [1, 1, 1]},
    f"SELECT ts AS e, o.ts AS f, p.ts AS g {PAIRS}": {"ts": AT, "e": AT, "f": OTHER, "g": AT},
}


@pytest.mark.parametrize("text", WHOLE)
def test_all_columns_in_sql(text: str) -> None:
    session, odd, plain = streams()
    assert numbers(session.sql(text, odd=odd, plain=plain).preview().table) == WHOLE[text]


def joined(odd: Stream, plain: Stream) -> Stream:
    keyless = plain.select(n="k")
    return odd.join(keyless, within="0 seconds", on=left.k == right.n)


MADE: dict[str, tuple[Callable[[Stream, Stream], Any], dict[str, Any]]] = {
    "preview": (lambda odd, plain: odd, ALL),
    "limit": (lambda odd, plain: odd.limit(2), {n: v[:2] for n, v in ALL.items()}),
    "star": (lambda odd, plain: odd.select("*", z="k"), {**ALL, "z": [1, 1, 1]}),
    "with": (lambda odd, plain: odd.with_columns(z=col("ts")), {**ALL, "z": OTHER}),
    "drop": (lambda odd, plain: odd.drop("ts"), {n: v for n, v in ALL.items() if n != "ts_1"}),
    "rename": (
        lambda odd, plain: odd.rename(ts="x", k="y"),
        {"ts": AT, "at": AT, "x": OTHER, "y": [1] * 3},
    ),
    "union": (lambda odd, plain: odd.union(odd.drop("ts").select("at", t="at", k="k")), {}),
    "join": (joined, {**ALL, "n": [1, 1, 1]}),
}


@pytest.mark.parametrize("name", MADE)
def test_all_columns_in_python(name: str) -> None:
    _, odd, plain = streams()
    make, wanted = MADE[name]
    found = numbers(make(odd, plain).preview().table)
    if name == "union":
        assert list(found) == ["ts", "at", "ts_1", "k"]
        assert sorted(found["ts"]) == sorted([*AT, *AT])
    else:
        assert found == wanted


def test_a_number_that_is_taken_is_passed_over() -> None:
    session = Session(master="none")
    at = pa.array([1]).cast(TIME)
    odd = session.stream(pa.table({"at": at, "ts": [1], "ts_1": [2], "TS_2": [3]}), time="at")
    assert odd.preview().table.column_names == ["ts", "at", "ts_3", "ts_1", "TS_2"]
