"""The sink of Postgres call by call: what a reader sees, again, lost, late, fenced, and refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest

from tests.postgres.proxy import Cut, Proxy
from tests.postgres.server import Server
from tests.sink.output import SCHEMA, rows, started
from tidegate.batch import BatchId
from tidegate.driver.outlet import StoreKeep
from tidegate.errors import LostOutputError, OptionError, SinkError
from tidegate.schema import TIME
from tidegate.sink import PostgresSink, of, postgres
from tidegate.sink.protocol import Keep, Opening
from tidegate.sink.receipt import Part, Receipt

ROWS = rows((1, "a", 1.5), (2, None, None), (3, 'tab\t"quote"\n\\.\n', 3))


@pytest.fixture
def keep(tmp_path: Path) -> Keep:
    return StoreKeep(started(tmp_path / "checkpoint"))


def opened(
    uri: str, keep: Keep, newest: int | None = None, owner: int = 0, **more: object
) -> PostgresSink:
    sink = postgres(uri)
    batch = None if newest is None else BatchId(newest)
    sink.open(Opening(SCHEMA, None, batch, keep, owner, **more))  # type: ignore[arg-type]
    return sink


def staged(sink: PostgresSink, batch: int, table: pa.Table = ROWS) -> list[Receipt]:
    return [sink.begin(BatchId(batch)).write(Part(), table)]


def published(sink: PostgresSink, batch: int, table: pa.Table = ROWS) -> list[Receipt]:
    receipts = staged(sink, batch, table)
    sink.publish(BatchId(batch), receipts)
    return receipts


def seen(server: Server, table: str) -> list[tuple[object, ...]]:
    """The values in the order in which they were written."""
    return server.ask(f'SELECT k, v FROM "{table}" ORDER BY ctid')


def ledger(server: Server, table: str) -> tuple[object, ...]:
    (found,) = server.ask("SELECT owner, batch, rows FROM tidegate_ledger WHERE target = %s", table)
    return found


VALUES = [("a", 1.5), (None, None), ('tab\t"quote"\n\\.\n', 3.0)]


def test_a_batch_is_seen_when_it_is_published_and_once(
    server: Server, table: str, uri: str, keep: Keep
) -> None:
    sink = opened(uri, keep)
    assert server.ask("SELECT to_regclass(%s)", f'"{table}"') == [(None,)]  # nothing was begun
    receipts = staged(sink, 0)
    assert seen(server, table) == []
    for _ in range(2):
        sink.publish(BatchId(0), receipts)
        assert seen(server, table) == VALUES
    assert ledger(server, table) == (0, 0, 3)
    published(sink, 2, ROWS.slice(0, 1))
    assert seen(server, table) == [*VALUES, VALUES[0]]
    assert ledger(server, table) == (0, 2, 1)
    sink.close()
    sink.close()


def test_a_restart_publishes_what_was_committed_and_nothing_again(
    server: Server, table: str, uri: str, keep: Keep
) -> None:
    first = opened(uri, keep)
    receipts = staged(first, 0)
    first.close()
    for owner in (1, 2):
        sink = opened(uri, keep, newest=0, owner=owner)
        sink.publish(BatchId(0), receipts)
        assert seen(server, table) == VALUES
        sink.close()
    sink = opened(uri, keep, newest=0, owner=3)
    published(sink, 1, ROWS.slice(0, 1))
    sink.close()
    assert ledger(server, table) == (3, 1, 1)
    assert len(seen(server, table)) == 4


def test_what_is_lost_in_the_checkpoint_runs_again_unless_the_table_has_it(
    server: Server, table: str, uri: str, keep: Keep
) -> None:
    sink = opened(uri, keep)
    receipts = staged(sink, 0)
    keep.write(BatchId(0), receipts[0].name, b"other bytes")
    with pytest.raises(LostOutputError, match=r"batch 0 must be in the checkpoint .* a damaged"):
        sink.publish(BatchId(0), receipts)
    keep.delete(BatchId(0), receipts[0].name)
    with pytest.raises(LostOutputError, match=r"got no output\.00000000\.rows\.copy of it"):
        sink.publish(BatchId(0), receipts)
    sink.close()
    again = opened(uri, keep, newest=0, owner=1)
    receipts = published(again, 0)
    again.close()
    keep.delete(BatchId(0), receipts[0].name)
    last = opened(uri, keep, newest=0, owner=2)
    last.publish(BatchId(0), receipts)
    assert seen(server, table) == VALUES


def test_a_run_that_was_taken_over_writes_nothing(
    server: Server, table: str, uri: str, keep: Keep
) -> None:
    zombie = opened(uri, keep)
    published(zombie, 0)
    receipts = staged(zombie, 1)
    later = opened(uri, keep, newest=1, owner=1)
    later.publish(BatchId(1), receipts)
    later.begin(BatchId(2))
    count = len(seen(server, table))
    for call in (lambda: zombie.publish(BatchId(1), receipts), lambda: published(zombie, 2)):
        with pytest.raises(SinkError, match=r"by one run .* owner 1, that took it"):
            call()
    assert len(seen(server, table)) == count == 6


def test_a_run_that_was_taken_over_before_its_first_batch_does_not_take_the_table_back(
    server: Server, table: str, uri: str, keep: Keep
) -> None:
    """Else the batch that the other has committed could not be written any more."""
    first = opened(uri, keep, owner=1, checkpoint="c")
    other = opened(uri, keep, owner=2, checkpoint="c")
    receipts = staged(other, 0)
    with pytest.raises(SinkError, match="owner 2, that took it over"):
        first.begin(BatchId(0))
    other.publish(BatchId(0), receipts)
    assert seen(server, table) == VALUES
    for sink in (first, other):
        sink.close()


def test_another_query_that_takes_an_empty_table_fences_the_first(
    server: Server, table: str, uri: str, keep: Keep, tmp_path: Path
) -> None:
    first = opened(uri, keep)
    receipts = staged(first, 0)
    other = StoreKeep(started(tmp_path / "other"))
    published(opened(uri, other), 0, ROWS.slice(0, 1))
    with pytest.raises(SinkError, match=r"must be the table .* got the rows of another query"):
        first.publish(BatchId(0), receipts)
    assert len(seen(server, table)) == 1


@pytest.mark.parametrize(
    ("newest", "written", "got"),
    [
        (None, None, r"a new run needs a table without rows; got rows in public\.Results"),
        (5, [], r"a new run needs a table without rows"),
        (0, [0], r"up to batch 0; got batch 1 as the newest"),
        (9, [4, 1], r"up to batch 4; got batch 1 as the newest"),
        (9, [9, 4], r"up to batch 9; got batch 1 as the newest"),
    ],
)
def test_a_table_of_another_run_is_refused(
    uri: str, keep: Keep, newest: int | None, written: list[int] | None, got: str
) -> None:
    sink = opened(uri, keep)
    published(sink, 0)
    published(sink, 1)
    with pytest.raises(OptionError, match=got):
        opened(uri, keep, newest, owner=1, written=written)
    for fit in ((1, [1, 0]), (9, [1, 0]), (2, [2, 1])):
        opened(uri, keep, fit[0], owner=1, written=fit[1]).close()


def test_a_checkpoint_whose_table_is_gone(uri: str, keep: Keep) -> None:
    with pytest.raises(OptionError, match=r"up to batch 3; got no batch of it. Continue with"):
        opened(uri, keep, 3, owner=1, written=[3, 2])


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    made = Proxy(server.port, [])
    yield made
    made.close()


@pytest.mark.parametrize(
    "cuts", [["before"], ["after"], ["before", "after"], ["before", "before"]], ids=str
)
def test_a_connection_that_is_cut_around_the_commit(
    server: Server, table: str, keep: Keep, proxy: Proxy, cuts: list[Cut]
) -> None:
    """Within the run it is tried once more; after that the next run finds out."""
    uri = server.uri(table, port=proxy.port)
    sink = opened(uri, keep)
    receipts = staged(sink, 0)
    proxy.cuts += cuts
    if len(cuts) == 1:
        sink.publish(BatchId(0), receipts)
    else:
        with pytest.raises(SinkError, match=r"batch 0 is committed .* kept in the checkpoint"):
            sink.publish(BatchId(0), receipts)
        assert (seen(server, table) == VALUES) is (cuts[-1] == "after")
        sink = opened(uri, keep, newest=0, owner=1)
        sink.publish(BatchId(0), receipts)
    assert proxy.cuts == []
    assert seen(server, table) == VALUES
    published(sink, 1)
    sink.close()
    assert len(seen(server, table)) == 6


def test_a_session_that_holds_the_row_is_told_of(
    server: Server, table: str, uri: str, keep: Keep
) -> None:
    """As one whose process was stopped in the middle of a batch."""
    sink = opened(uri, keep)
    receipts = staged(sink, 0)
    with server.connect() as other:
        other.execute("SELECT * FROM tidegate_ledger WHERE target = %s FOR UPDATE", (table,))
        sink._cursor().execute("SET lock_timeout = '50ms'")
        sink._cursor().connection.commit()
        with pytest.raises(SinkError, match=r"Another session holds the row .* Then run again"):
            sink.publish(BatchId(0), receipts)
    sink.publish(BatchId(0), receipts)
    assert seen(server, table) == VALUES


def test_late_and_rejected_tuples_are_in_tables_beside(
    server: Server, table: str, uri: str, keep: Keep
) -> None:
    sink = opened(uri, keep)
    writer = sink.begin(BatchId(0))
    late = pa.table({"ts": ROWS.column(0), "k": ["x", 'q"\0', "y"], "v": [float("nan"), 1, 2]})
    receipts = [
        writer.write(Part(side="late", stream="rides"), late),
        writer.write(Part(side="rejected"), pa.table({"reason": ["no time"]})),
    ]
    for _ in range(2):
        sink.publish(BatchId(0), receipts)
    found = server.ask(
        f"SELECT batch, stream, tuple ->> 'k', tuple ->> 'v' FROM \"{table}_late\" ORDER BY ctid"
    )
    kept = [("x", "NaN"), ('q"\ufffd', "1"), ("y", "2")]
    assert found == [(0, "rides", *values) for values in kept]
    assert server.ask(f'SELECT * FROM "{table}_rejected"') == [(0, None, {"reason": "no time"})]
    assert seen(server, table) == []
    with pytest.raises(OptionError, match=rf"a new run .* got rows in public\.{table}_late"):
        opened(uri, keep)


MISMATCHES = {
    "k text, v float8": r"must have column window_end of type timestamp with time zone for "
    r'timestamp; got a table with k, v. ALTER TABLE "public"."{}" ADD COLUMN "window_end"',
    "window_end timestamptz, k text, v int": r"column v must be of type double precision for "
    r'double; got integer. ALTER TABLE "public"."{}" ALTER COLUMN "v" TYPE double precision',
    "window_end timestamptz(3), k text, v float8": r"column window_end must be .* got timestamp\(3",
    "window_end timestamptz, k text, v float8, w int NOT NULL": r"must have a default, or take "
    r"NULL; got w integer NOT NULL",
}


@pytest.mark.parametrize("columns", MISMATCHES)
def test_a_table_that_the_rows_do_not_fit_into(
    server: Server, table: str, uri: str, keep: Keep, columns: str
) -> None:
    server.ask(f'CREATE TABLE "{table}" ({columns})')
    with pytest.raises(OptionError, match=MISMATCHES[columns].format(table)):
        opened(uri, keep)


def test_a_table_of_the_users_own(server: Server, table: str, uri: str, keep: Keep) -> None:
    columns = "id bigserial, v float8, k varchar(30), more int, window_end timestamp"
    server.ask(f'CREATE TABLE "{table}" ({columns})')
    published(opened(uri, keep), 0)
    assert seen(server, table) == VALUES
    server.ask(f'CREATE VIEW "{table}_late" AS SELECT 1 AS one WHERE false')
    with pytest.raises(OptionError, match="must be a table; got a view"):
        opened(server.uri(f"{table}_late"), keep)


def test_a_constraint_that_the_rows_break_and_the_remedy(
    server: Server, table: str, uri: str, keep: Keep
) -> None:
    columns = "window_end timestamptz, k text, v float8 CHECK (v < 3)"
    server.ask(f'CREATE TABLE "{table}" ({columns})')
    sink = opened(uri, keep)
    receipts = staged(sink, 0)
    with pytest.raises(SinkError, match=r"violates check constraint .*Then run again") as told:
        sink.publish(BatchId(0), receipts)
    assert isinstance(told.value.__cause__, psycopg.errors.CheckViolation)
    assert seen(server, table) == []
    server.ask(f'ALTER TABLE "{table}" DROP CONSTRAINT "{table}_v_check"')
    sink.publish(BatchId(0), receipts)
    assert seen(server, table) == VALUES


def test_values_that_postgres_has_not_are_refused_before_the_commit(uri: str, keep: Keep) -> None:
    sink = opened(uri, keep)
    with pytest.raises(SinkError, match="column k must have texts without the character NUL"):
        staged(sink, 0, rows((1, "a\0b", 1)))
    far = pa.table([pa.array([-(10**17)], TIME), ["a"], [1.0]], schema=SCHEMA)
    with pytest.raises(SinkError, match=r"column window_end must have times of the years 1 to"):
        staged(sink, 0, far)
    assert published(sink, 0)


def test_names_that_postgres_would_cut(server: Server, uri: str, keep: Keep) -> None:
    with pytest.raises(OptionError, match=r"at most 63 bytes; got ttt.*_rejected"):
        postgres(server.uri("t" * 55))
    sink = postgres(uri)
    long = pa.schema([("c" * 64, pa.int64())])
    with pytest.raises(OptionError, match=r"at most 63 bytes; got ccc.* shorter name with AS"):
        sink.open(Opening(long, None, None, keep))


def test_a_server_or_a_schema_or_a_user_that_is_not_there(
    server: Server, table: str, keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(OptionError, match=r"schema \"no\" does not exist. Create the schema"):
        opened(server.uri("no.t"), keep)
    with pytest.raises(OptionError, match="See that the server runs, and that host, port"):
        opened(server.uri(table, port=1), keep)
    with pytest.raises(OptionError, match='role "nobody" does not exist'):
        opened(server.uri(table, user="nobody"), keep)
    with pytest.raises(OptionError, match=r'database "b" does not exist. Create the database'):
        opened(server.uri(table).replace("/postgres?", "/b?"), keep)
    server.ask("CREATE USER stranger")
    with pytest.raises(OptionError, match=r"denied for schema public. Grant the user"):
        opened(server.uri(table, user="stranger"), keep)


def test_named_outputs_have_tables_of_their_names(server: Server, table: str, keep: Keep) -> None:
    """Late tuples come to the first, and a later start of the second does not mind them."""
    sinks = {name: of(server.uri(table), name) for name in ("fast", "slow")}
    for name, sink in sinks.items():
        sink.open(Opening(SCHEMA, name, None, keep))
    writer, _ = (sink.begin(BatchId(0)) for sink in sinks.values())
    parts = (Part(), Part(side="late", stream="s"))
    sinks["fast"].publish(BatchId(0), [writer.write(part, ROWS) for part in parts])
    assert seen(server, f"{table}_fast") == VALUES
    assert server.ask(f'SELECT count(*) FROM "{table}_late"') == [(3,)]
    again = of(server.uri(table), "slow")
    again.open(Opening(SCHEMA, "slow", BatchId(0), keep, 1, []))
    with pytest.raises(OptionError, match="_late is the table of late tuples"):
        of(server.uri(table), "late")


def test_without_the_extra_one_sentence(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.remote.postgres.find_spec", lambda name: None)
    with pytest.raises(OptionError) as told:
        postgres(uri)
    assert str(told.value) == (
        "sink: needs psycopg; got none. Run pip install 'tidegate[postgres]'."
    )
