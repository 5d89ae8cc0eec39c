"""Streams with declared columns and options, as SQL and programs write them."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tidegate.errors import OptionError, QueryError, SourceError
from tidegate.schema import TIME


def rows_of(stream: Any) -> list[dict[str, Any]]:
    sink = tg.sink.memory()
    stream.start(sink=sink).wait()
    found: list[dict[str, Any]] = sink.table().to_pylist()
    return found


DATA = """\
00123;12.50;31.01.2024 10:00;-;x
+4470;7;31.01.2024 10:01;2;"y;z"
00123;oops;31.01.2024 10:02;3;
"""
COLUMNS = "zip STRING, amount DECIMAL(10,2), t TIMESTAMP, n INT"
OPTIONS = {"sep": ";", "header": False, "nullValue": "-", "timestampFormat": "dd.MM.yyyy HH:mm"}


def test_sql_declares_columns_and_says_how_text_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(DATA)
    sql = f"""
        CREATE STREAM r (zip STRING, amount DECIMAL(10,2), t TIMESTAMP, n INT)
        FROM '{tmp_path}/a.csv' TIME t
        OPTIONS (delimiter ';', header false, nullValue '-',
                 'timestampFormat' = 'dd.MM.yyyy HH:mm');
        SELECT zip, amount, n FROM r
    """
    found = rows_of(tg.Session(master="none").sql(sql))
    assert [(r["zip"], r["amount"], r["n"]) for r in found] == [
        ("00123", Decimal("12.50"), None),
        ("+4470", Decimal("7.00"), 2),
    ]


@pytest.mark.parametrize(
    "schema",
    [
        COLUMNS,
        {"zip": "string", "amount": pa.decimal128(10, 2), "t": "TIMESTAMP", "n": "int"},
        pa.schema(
            [
                ("zip", pa.large_string()),
                ("amount", pa.decimal128(10, 2)),
                ("t", pa.timestamp("ms")),
                ("n", pa.int32()),
            ]
        ),
    ],
)
def test_a_program_declares_columns_in_three_ways(tmp_path: Path, schema: Any) -> None:
    (tmp_path / "a.csv").write_text(DATA)
    session = tg.Session(master="none")
    stream = session.stream(f"{tmp_path}/a.csv", time="t", schema=schema, options=OPTIONS)
    keywords = session.stream(f"{tmp_path}/a.csv", time="t", schema=schema, **OPTIONS)
    assert stream.node.stream.schema == pa.schema(
        [("zip", pa.string()), ("amount", pa.decimal128(10, 2)), ("t", TIME), ("n", pa.int32())]
    )
    assert [r["zip"] for r in rows_of(stream.select("zip"))] == ["00123", "+4470"]
    assert keywords.node.stream.reading == stream.node.stream.reading


def test_what_is_wrong_is_told_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,Zip,n\n2024-01-01,1,2\n")
    pq.write_table(pa.table({"t": [date(2024, 1, 1)], "n": [2]}), tmp_path / "a.parquet")
    session = tg.Session(master="none")

    def refused(kind: type[Exception], match: str, name: str = "a.csv", **options: Any) -> None:
        with pytest.raises(kind, match=match):
            session.stream(f"{tmp_path}/{name}", time="t", **options)

    refused(OptionError, r"option delimeter\. Did you mean delimiter\?", delimeter=";")
    refused(OptionError, "sep twice", sep=";", delimiter="|")
    refused(OptionError, "one ASCII character; got '||'", sep="||")
    refused(OptionError, "true or false; got 'no'", header="no")
    refused(OptionError, "as Spark has them; got '%Y'", dateFormat="%Y")
    refused(OptionError, "must have year, month and day; got 'HH:mm'", timestampFormat="HH:mm")
    refused(OptionError, "encoding in which lines can be found; got 'utf-7'", encoding="utf-7")
    refused(OptionError, "option header is for CSV files", "a.parquet", header=False)
    refused(OptionError, "option header is for CSV files", "a.parquet", header=True)
    refused(OptionError, "option format is for the values of messages", format="json")
    refused(SourceError, "no column zop. Did you mean Zip", schema="t DATE, zop STRING")
    refused(SourceError, "declared SMALLINT.*got bigint", "a.parquet", schema="t DATE, n SMALLINT")
    refused(SourceError, "no column z. The file has t, n", "a.parquet", schema="t DATE, z INT")
    refused(
        QueryError, "the type must be one that columns can have", schema="t DATE, z MAP<INT,INT>"
    )
    refused(QueryError, "expected the type of the column", schema="t DATE, z")
    refused(OptionError, "one cell can hold", schema="t DATE, n ARRAY<INT>")
    memory = tg.MemorySource(pa.table({"t": [date(2024, 1, 1)]}), time="t")
    with pytest.raises(OptionError, match="only files can be read with schema="):
        session.stream(memory, time="t", schema="t DATE")
    with pytest.raises(SourceError, match="a generator says its columns"):
        session.stream("generator:taxi", time="dropoff_time", header=False)


def test_declared_columns_of_parquet_are_cast_without_loss(tmp_path: Path) -> None:
    table = pa.table({"T": [date(2024, 1, 1)], "n": pa.array([2], pa.int32()), "more": [1]})
    pq.write_table(table, tmp_path / "a.parquet")
    session = tg.Session(master="none")
    schema = "n DECIMAL(12,1), t TIMESTAMP"
    stream = session.stream(f"{tmp_path}/a.parquet", time="t", schema=schema)
    assert stream.node.stream.schema.names == ["n", "t"]
    (row,) = rows_of(stream.select("n"))
    assert (row["n"], row["ts"].year) == (Decimal("2.0"), 2024)


def test_declared_columns_of_json_are_null_where_they_are_absent(tmp_path: Path) -> None:
    lines = (
        '{"t":"2024-01-01","a":1.5,"d":"31/01/24"}\n{"t":"2024-01-02","b":[{"k":2}]}\n{"t":"x"}\n'
    )
    (tmp_path / "a.json").write_text(lines)
    session = tg.Session(master="none")
    stream = session.stream(
        f"{tmp_path}/a.json",
        time="t",
        schema="t TIMESTAMP, a DECIMAL(5,2), b ARRAY<STRUCT<k: INT>>, c STRING, d DATE",
        dateFormat="dd/MM/yy",
    )
    found = [
        {k: v for k, v in r.items() if k != "ts"} for r in rows_of(stream.select("a", "c", "d"))
    ]
    assert found == [
        {"a": Decimal("1.50"), "c": None, "d": date(2024, 1, 31)},
        {"a": None, "c": None, "d": None},
    ]


def test_values_of_json_that_do_not_fit_are_told_with_their_column(tmp_path: Path) -> None:
    cells = ["300", "1.5", '"x"', "7"]
    lines = [f'{{"t":"2024-01-01","n":{n},"d":1.25}}\n' for n in cells]
    (tmp_path / "a.json").write_text("".join(lines) + '{"t":"2024-01-01","n":1,"d":1.255}\n')
    session = tg.Session(master="none")
    schema = "t TIMESTAMP, n TINYINT, d DECIMAL(4,2)"
    stream = session.stream(f"{tmp_path}/a.json", time="t", schema=schema)
    sink = tg.sink.files(str(tmp_path / "out"), format="json")
    stream.select("n").start(sink=sink).wait()
    (rejected,) = (tmp_path / "out").glob("_rejected/*/*.json")
    reasons = [json.loads(line)["_reason"] for line in rejected.read_text().splitlines()]
    assert reasons == [
        "line 1, column n: 300 is not a tinyint",
        "line 2, column n: 1.5 is not a tinyint",
        'line 3, column n: "x" is not a tinyint',
        "line 5, column d: 1.255 is not a decimal(4,2)",
    ]


def test_options_are_part_of_a_querys_meaning_and_declared_types_as_inferred_ones(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.csv").write_text("t,n\n2024-01-01,2\n")
    session = tg.Session(master="none")

    def plan(**options: Any) -> str:
        stream = session.stream(f"{tmp_path}/a.csv", time="t", name="s", **options)
        return stream.select("n").explain().splitlines()[-1]

    assert plan().startswith("fingerprint")
    assert plan() == plan(schema="n BIGINT, t DATE") == plan(sep=",", header=True)
    assert len({plan(), plan(nullValue="-"), plan(schema="n INT, t DATE")}) == 3
