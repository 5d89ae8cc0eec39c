"""SELECT * over streams with any names of columns: each column once, under a name of its own."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidegate import col
from tidegate.errors import SourceError
from tidegate.query.stream import Stream
from tidegate.schema import TIME
from tidegate.session.session import Session

WORDS = """time timestamp window_start window_end WINDOW_END order select from range rows session
final kept exact key row count c0 c1 _ __ input source position trigger_ts __ts ts_1 ts_2 batch
bucket null true case end with as
limit offset qualify distinct unnest interval 1 1a * % $a""".split()
ODD = [*WORDS, "", "a b", " a", "a ", "a.b", "s.a", "a`b", 'a"b', "a'b", "a;b", "a--b", "a,b"]
ODD += ["a\nb", "\\", "ä", "日本", "😀", "sum(x)", "{x}", "[a]", "x" * 300]
TIMES = pa.array([1, 2]).cast(TIME)
STAR = "SELECT * FROM s LIMIT 5"


def stream(names: list[str], time: str, session: Session) -> Stream:
    """Column number i has the values 10 i and 10 i + 1."""
    values = [pa.array([10 * i, 10 * i + 1]) for i in range(len(names))]
    table = pa.Table.from_arrays([*values, TIMES], names=[*names, time])
    return session.stream(table, time=time, name="s")


def first_row(names: list[str], time: str) -> dict[str, int]:
    session = Session(master="none")
    table = session.sql(STAR, s=stream(names, time, session)).preview().table
    assert table.num_rows == 2
    assert len({n.lower() for n in table.column_names}) == table.num_columns
    return {n: table.column(n).cast(pa.int64())[0].as_py() for n in table.column_names}


@pytest.mark.parametrize("name", ODD)
def test_a_column_of_any_name(name: str) -> None:
    assert first_row(["x", name], "at") == {"ts": 1, "x": 0, name: 10, "at": 1}
    if name:
        assert first_row(["x"], name) == {"ts": 1, "x": 0, name: 1}


def test_all_of_them_at_once() -> None:
    names = list(dict.fromkeys(n for n in ODD if n != "WINDOW_END"))
    row = first_row(names, "at")
    assert row == {"ts": 1, **{name: 10 * i for i, name in enumerate(names)}, "at": 1}


@pytest.mark.parametrize(
    ("names", "time", "row"),
    [
        (["a", "A"], "ts", {"ts": 1, "a": 0, "A_1": 10}),
        (["A_1", "a", "A"], "ts", {"ts": 1, "A_1": 0, "a": 10, "A_2": 20}),
        (["a", "A", "a_1", "ä", "Ä"], "ts", {"a": 0, "A_2": 10, "a_1": 20, "ä": 30, "Ä_1": 40}),
        (["x"], "TS", {"ts": 1, "x": 0}),
        (["TS"], "ts", {"ts": 1, "TS_1": 0}),
        (["ts"], "TS", {"ts": 1, "ts_1": 0, "TS_2": 1}),
        (["Ts", "ts"], "at", {"ts": 1, "Ts_1": 0, "ts_2": 10, "at": 1}),
    ],
)
def test_names_that_case_alone_tells_apart_get_numbers(
    names: list[str], time: str, row: dict[str, int]
) -> None:
    assert first_row(names, time) == {"ts": 1, **row}


def test_a_time_column_called_ts_in_capitals_is_the_event_time() -> None:
    session = Session(master="none")
    made = stream(["x"], "TS", session)
    for query in ("SELECT TS, x FROM s", "SELECT ts, x FROM s WHERE TS > TIMESTAMP '1969-01-01'"):
        assert session.sql(query, s=made).preview().table.column_names == ["ts", "x"]
    assert made.select("TS", "x").columns == ("ts", "x")
    assert made.where(col("TS").is_not_null()).columns == ("ts", "x")
    counted = session.sql("SELECT COUNT(TS) AS n FROM s [RANGE 1 SECOND]", s=made).preview()
    assert counted.table.column("n").to_pylist() == [2]


def test_files_too(tmp_path: Path) -> None:
    names = ["TS", "a", "A", "order", "a b", "ts_1"]
    columns = [TIMES, *(pa.array([i, i + 1]) for i in range(1, len(names)))]
    pq.write_table(pa.Table.from_arrays(columns, names=names), tmp_path / "s.parquet")
    session = Session(master="none")
    made = session.sql(f"CREATE STREAM s FROM '{tmp_path}/s.parquet' TIME TS; {STAR}")
    assert made.preview().table.column_names == ["ts", "a", "A_1", "order", "a b", "ts_1"]


def test_a_name_twice_is_refused() -> None:
    rows = pa.Table.from_arrays([TIMES, pa.array([1, 2]), pa.array([3, 4])], names=["ts", "a", "a"])
    with pytest.raises(SourceError) as refused:
        Session(master="none").stream(rows, name="s")
    assert str(refused.value) == (
        "stream s: column names must be distinct; got a more than once. Rename the columns."
    )
