"""Streams joined to tables of Postgres: as to the same rows in a file, in every version."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import tidegate as tg
from tests.driver.test_tables import QUERY, loop_over, names, recorded, rest
from tests.postgres.server import Server
from tidegate.errors import SourceError
from tidegate.schema import TIME
from tidegate.sink.memory import MemorySink
from tidegate.source.subscription import AS_FOUND
from tidegate.source.table import open_table, table_parts
from tidegate.testing.clock import ManualClock

ZONES = """
CREATE TABLE zones (id int PRIMARY KEY, name text, fee numeric(6,2), since timestamptz);
INSERT INTO zones VALUES
    (3, 'Hill', 1.50, '2024-01-01'), (1, 'Port "old"', NULL, '2024-01-01 12:00+02'),
    (2, '', 2, NULL), (4, NULL, -1.25, '2024-01-03');
CREATE TABLE prices (zone int, price float8, since timestamp);
INSERT INTO prices VALUES
    (1, 1.5, '2024-01-01'), (1, 2.5, '2024-01-01 00:30'), (2, 9, '2024-01-01 00:10'), (1, 7, NULL);
"""
RIDES = [
    {"ts": f"2024-01-01T00:{minute:02d}:00Z", "zone": zone, "fare": float(minute)}
    for minute, zone in enumerate([1, 2, 3, 9, 1, 1, 2, 4] * 6)
]


@pytest.fixture(scope="module", autouse=True)
def zones(server: Server) -> None:
    server.ask(ZONES)


def rides(session: tg.Session) -> tg.Stream:
    return session.stream(pa.Table.from_pylist(RIDES).set_column(0, "ts", _times()), time="ts")


def _times() -> pa.Array:
    return pa.array([row["ts"] for row in RIDES]).cast(TIME)


def read(uri: str) -> pa.Table:
    schema = open_table(uri, "t", AS_FOUND).schema
    parts = table_parts([uri], "t", schema, AS_FOUND)
    return pa.concat_tables([schema.empty_table(), *parts])


QUERIES = {
    "SELECT r.fare, z.name, z.fee FROM rides AS r LEFT JOIN zones AS z ON r.zone = z.id": "zones",
    "SELECT r.fare, p.price FROM rides AS r JOIN zones AS p ON r.zone = p.zone": "prices",
    "SELECT z.name, COUNT(*) AS n, SUM(z.fee) AS fees FROM rides AS r [RANGE 10 MINUTES] "
    "JOIN zones AS z ON r.zone = z.id GROUP BY z.name": "zones",
    "SELECT r.fare FROM rides AS r ANTI JOIN zones AS z ON r.zone = z.id": "zones",
}


@pytest.mark.parametrize("query", QUERIES)
def test_a_join_gives_the_rows_of_a_join_to_a_file(
    server: Server, tmp_path: Path, query: str
) -> None:
    file, uri = tmp_path / "t.parquet", server.uri(QUERIES[query])
    pyarrow.parquet.write_table(read(uri), file)
    session, given = tg.Session(master="none"), []
    for source in (uri, str(file)):
        stream, table = rides(session), session.table(source, name="zones")
        given.append(session.sql(query, rides=stream, zones=table).to_arrow())
    assert given[0].equals(given[1])
    assert given[0].num_rows > 5


def test_versions_by_a_column_of_times(server: Server, tmp_path: Path) -> None:
    file, uri = tmp_path / "t.parquet", server.uri("prices")
    pyarrow.parquet.write_table(read(uri), file)
    query = "SELECT r.fare, p.price FROM rides AS r LEFT JOIN prices AS p ON r.zone = p.zone"
    session, given = tg.Session(master="none"), []
    for source in (uri, str(file)):
        prices = session.table(source, name="prices", valid_from="since")
        given.append(session.sql(query, rides=rides(session), prices=prices).to_arrow())
    assert given[0].equals(given[1])
    assert {row["price"] for row in given[0].to_pylist()} == {1.5, 2.5, 9.0, None}


def test_a_query_says_which_rows_and_in_which_order(server: Server) -> None:
    select = "SELECT id, upper(name) AS name FROM zones WHERE id %3C 4 ORDER BY id DESC;"
    found = read(server.uri("").replace("table=", f"query={select}"))
    assert found.to_pydict() == {"id": [3, 2, 1], "name": ["HILL", "", 'PORT "OLD"']}


def test_the_order_is_that_of_the_key_wherever_rows_lie(server: Server) -> None:
    server.ask("CREATE TABLE moved (b text, a int, PRIMARY KEY (a, b)); CREATE TABLE loose (a int)")
    server.ask("INSERT INTO moved VALUES ('x', 2), ('y', 1), ('x', 1)")
    server.ask("INSERT INTO loose VALUES (2), (NULL), (1)")
    for _ in range(2):
        assert read(server.uri("moved")).to_pydict() == {"b": ["x", "y", "x"], "a": [1, 1, 2]}
        assert read(server.uri("loose")).to_pydict() == {"a": [1, 2, None]}
        server.ask("UPDATE moved SET b = b WHERE a = 1; UPDATE loose SET a = a WHERE a = 1")


def test_a_table_without_rows_and_one_of_many(server: Server) -> None:
    server.ask("CREATE TABLE empty (a int); CREATE TABLE one_column (a int)")
    assert read(server.uri("empty")).num_rows == 0
    server.ask("INSERT INTO one_column VALUES (NULL), (NULL), (7)")
    assert read(server.uri("one_column")).to_pydict() == {"a": [7, None, None]}
    select = "query=SELECT i, repeat(chr(10) || i, 3) AS t FROM generate_series(1, 300000) AS i"
    found = read(server.uri("").replace("table=", select))
    assert found.num_rows == 300_000
    assert found["t"][299_999].as_py() == "\n300000" * 3


def test_read_again_while_the_query_runs_and_kept_for_a_restart(
    server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server.ask("CREATE TABLE refreshed (id int PRIMARY KEY, name text)")
    server.ask("INSERT INTO refreshed VALUES (0, 'a'), (1, 'b')")
    rows = [f"2024-01-01T00:00:{second:02d}Z,{second},{second % 3}" for second in range(12)]
    (tmp_path / "rides.csv").write_text("\n".join(["ts,n,zone", *rows]) + "\n")
    query = QUERY.replace("{folder}/zones.csv", server.uri("refreshed"))
    sink, clock = MemorySink(), ManualClock()
    clause = " REFRESH EVERY '10 minutes'"
    loop = loop_over(tmp_path, sink, clause, query, clock=clock)
    loop.step()
    server.ask("UPDATE refreshed SET name = 'x' WHERE id = 0")
    clock.sleep(600)
    loop.step()
    loop.close()
    assert names(sink) == ["a", "b", None, "x", "b", None, "x"]
    assert len(recorded(tmp_path)) == 2
    server.ask("ALTER TABLE refreshed RENAME TO away")
    server.ask("CREATE VIEW refreshed AS SELECT id, 1 / (id - id) || name AS name FROM away")
    with caplog.at_level(logging.WARNING):
        again = loop_over(tmp_path, sink, clause, query, clock=clock)
        clock.sleep(600)
        rest(again)
    assert names(sink)[-3:] == ["x", "b", None]
    assert "cannot be read again: table zones, postgresql://tidegate@127" in caplog.text
    assert "division by zero" in caplog.text


MISTAKES = {
    "table=nowhere": 'relation "nowhere" does not exist. Check the name of the table',
    "table=a&query=SELECT 1": "must name a table or a query, one of both; got table and query",
    "sslmode=disable": "must name a table or a query, one of both; got neither",
    "tabel=zones": r"parameters must be those of Postgres; got tabel=\.\.\. Did you mean table\?",
    "table=zones&port=1": "Write it before the \\?, as in postgresql://user@host:port/database",
    "table=zones&table=b": "a parameter can be given once; got table twice",
}


@pytest.mark.parametrize("query", MISTAKES)
def test_mistakes_in_the_uri(server: Server, query: str) -> None:
    with pytest.raises(SourceError, match=MISTAKES[query]):
        open_table(server.uri("").replace("table=", query), "zones", AS_FOUND)


def test_declared_columns_and_streams_are_refused(server: Server) -> None:
    session = tg.Session(master="none")
    declared: Any = pa.schema([("id", pa.int64())])
    with pytest.raises(SourceError, match="Leave them out: it says its columns"):
        session.table(server.uri("zones"), name="z", schema=declared)
    with pytest.raises(SourceError, match="is read as a table, which streams are joined to"):
        session.stream(server.uri("zones"), time="since", name="z")
