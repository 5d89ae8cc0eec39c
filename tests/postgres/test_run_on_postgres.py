"""Whole runs to Postgres: killed around commits, fenced, cut off, and gone on with."""

from __future__ import annotations

import itertools
import logging
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import tidegate as tg
from tests.crash.process import wait_for
from tests.driver.scene import COUNTS, csv, drain, loop_of, memory, opened, plan_of
from tests.postgres.proxy import Proxy
from tests.postgres.server import Server
from tidegate.cli.main import invoke
from tidegate.driver.loop import Loop
from tidegate.errors import FencedError, SinkError
from tidegate.sink import memory as memory_sink
from tidegate.sink import postgres
from tidegate.state.lock import Lock

ROWS = [(second, key, second) for second in range(60) for key in "abc"]
_places = itertools.count()


def place() -> str:
    return f"simulated_{next(_places)}"


def found(server: Server, table: str) -> list[dict[str, Any]]:
    """The rows in the order in which they were written; none where there is no table yet."""
    if server.ask("SELECT to_regclass(%s)", table) == [(None,)]:
        return []
    with server.connect() as connection:
        cursor = connection.execute(f"SELECT * FROM {table} ORDER BY ctid")  # type: ignore[arg-type]
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor]


@pytest.mark.parametrize("step", ["before commit", "after commit"])
@pytest.mark.parametrize("rest", [1, 12])
def test_a_driver_that_was_paused_while_another_took_over(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, rest: int
) -> None:
    """As from two hosts; the first goes on in the middle of its commit, or of its publishing."""
    monkeypatch.setattr(Lock, "take", lambda lock: None)
    table, others = place(), list[Loop]()
    source = csv(tmp_path / "s.csv", *ROWS)

    def started(**more: Any) -> Loop:
        given = [opened(source, False)]
        sink = postgres(server.uri(table))
        return loop_of(plan_of(COUNTS), given, tmp_path / "c", sink, **more)

    def pause(seen: str, batch: int) -> None:
        if (seen, batch) == (step, 2) and not others:
            others.append(started(batch_rows=13))
            for _ in range(rest):
                others[0].step()

    zombie = started(observer=pause, batch_rows=20)
    with pytest.raises((FencedError, SinkError), match="took it over"):
        zombie.run()
    drain(others[0])
    others[0].close()
    plain = memory_sink()
    loop_of(plan_of(COUNTS), [opened(source, False)], tmp_path / "m", plain).run()
    written = server.ask(f"SELECT k, v, n FROM {table} ORDER BY ctid")
    assert written == [tuple(row.values())[2:] for row in plain.table().to_pylist()]
    assert len(written) == 18


def test_the_newest_of_each_key_is_that_of_the_memory_sink(server: Server, tmp_path: Path) -> None:
    """With a restart in the middle, and updates of windows that are open."""
    query = f"{COUNTS} EMIT EVERY 2 SECONDS"
    first, rest = ROWS[:90], ROWS[90:]
    kept = memory_sink(newest=True)
    whole = loop_of(plan_of(query), [memory(*ROWS, end=True)], tmp_path / "m", kept, batch_rows=7)
    whole.run()
    path, uri = tmp_path / "s.csv", server.uri("newest", "newest=true")
    source = csv(path, *first)
    for more in (False, True):
        if more:
            csv(path, *rest, more=True)
        connection = opened(source, follow=not more)
        loop = loop_of(plan_of(query), [connection], tmp_path / "p", postgres(uri), batch_rows=7)
        loop.run() if more else drain(loop)
        loop.close()
    expected = sorted(tuple(row.values()) for row in kept.table().to_pylist())
    assert sorted(server.ask("SELECT * FROM newest")) == expected
    assert len(expected) == 18
    with pytest.raises(tg.OptionError, match="so the rows of the query must have one"):
        loop_of(plan_of("SELECT k FROM s"), [], tmp_path / "q", postgres(uri))


def test_a_key_with_nulls_and_a_table_without_an_index(server: Server, tmp_path: Path) -> None:
    rows = [(second, None if second % 2 else "a", 1) for second in range(20)]
    query = f"{COUNTS} EMIT EVERY 1 SECONDS"
    uri = server.uri("nulls", "newest=true")
    loop_of(
        plan_of(query), [memory(*rows, end=True)], tmp_path / "p", postgres(uri), batch_rows=3
    ).run()
    assert server.ask("SELECT k, n FROM nulls ORDER BY window_start, k") == [
        ("a", 5),
        (None, 5),
        ("a", 5),
        (None, 5),
    ]
    server.ask("CREATE TABLE plain AS SELECT * FROM nulls WITH NO DATA")
    with pytest.raises(tg.OptionError, match="CREATE UNIQUE INDEX ON") as told:
        loop_of(plan_of(query), [], tmp_path / "q", postgres(server.uri("plain", "newest=true")))
    statement = str(told.value.remedy).partition(", or make")[0]
    server.ask(statement)
    loop_of(
        plan_of(query), [], tmp_path / "r", postgres(server.uri("plain", "newest=true"))
    ).close()


def test_a_server_that_is_stopped_in_a_run(server: Server, tmp_path: Path) -> None:
    """The run ends with one sentence; the next one goes on, and loses and doubles nothing."""
    plan, uri = plan_of(COUNTS), server.uri("stopped")
    source = csv(tmp_path / "s.csv", *ROWS)

    def stop(step: str, batch: int) -> None:
        if (step, batch) == ("after commit", 3):
            server.stop()

    loop = loop_of(
        plan, [opened(source, False)], tmp_path / "c", postgres(uri), observer=stop, batch_rows=20
    )
    try:
        with pytest.raises(SinkError, match=r"batch 3 is committed and must be .* the server"):
            loop.run()
        loop.close()
    finally:
        server.start()
    ((before,),) = server.ask("SELECT batch FROM tidegate_ledger WHERE target = 'stopped'")
    assert before < 3
    for _ in range(2):  # the second has nothing to do
        again = loop_of(plan, [opened(source, False)], tmp_path / "c", postgres(uri), batch_rows=20)
        again.run()
    assert len(found(server, "stopped")) == 18
    restarted = server.ask("SELECT k, v, n FROM stopped ORDER BY ctid")
    known = memory_sink()
    loop_of(plan, [opened(source, False)], tmp_path / "m", known).run()
    assert restarted == [tuple(row.values())[2:] for row in known.table().to_pylist()]


def test_a_server_that_is_restarted_between_batches(server: Server, tmp_path: Path) -> None:
    """A connection that is gone is made anew: the run goes on."""

    def restart(step: str, batch: int) -> None:
        if (step, batch) == ("before commit", 2):
            server.stop()
            server.start()

    sink = postgres(server.uri("restarted"))
    source = memory(*ROWS, end=True)
    loop_of(plan_of(COUNTS), [source], tmp_path, sink, observer=restart, batch_rows=20).run()
    assert len(found(server, "restarted")) == 18


SQL = "SELECT k, COUNT(*) AS n FROM r [RANGE 10 SECONDS] GROUP BY k"


def test_a_process_that_is_killed_around_its_commits(server: Server, tmp_path: Path) -> None:
    """With SIGKILL, while the server waits for a COMMIT or has just done it; then it goes on."""
    query, source = tmp_path / "q.sql", csv(tmp_path / "r.csv", *ROWS)
    query.write_text(SQL)
    proxy = Proxy(server.port, [])
    options = ["run", str(query), "--stream", f"r={source}", "--time", "r=ts", "--master", "none"]
    options += ["--checkpoint", str(tmp_path / "c"), "--batch-rows", "20"]
    options += ["--out", server.uri("killed", port=proxy.port)]
    started = [sys.executable, "-m", "tidegate", *options]
    for cut in ("before", "after"):
        held = proxy.hold(cut, after=2)
        process = subprocess.Popen(started, stderr=subprocess.PIPE)
        wait_for(held.reached.is_set, f"the run is {cut} its second COMMIT")
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        held.let_go.set()
        assert process.returncode == -signal.SIGKILL
    assert invoke(options) == 0
    assert invoke(options) == 0
    proxy.close()
    expected = [(k, 10) for _ in range(6) for k in "abc"]
    assert server.ask("SELECT k, n FROM killed ORDER BY ctid") == expected


def test_no_password_is_in_what_is_kept_or_said(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    """The password works from the environment; in a URI it is refused, and not repeated."""
    secret = "hunter2hunter2"
    server.ask(f"CREATE USER guarded PASSWORD '{secret}'; CREATE SCHEMA AUTHORIZATION guarded")
    server.ask("CREATE TABLE guarded.zones AS SELECT 'a' AS k, 1 AS zone")
    server.ask("GRANT ALL ON guarded.zones TO guarded")
    query = tmp_path / "q.sql"
    source = csv(tmp_path / "r.csv", *ROWS, (3, "late", 1))
    table = server.uri("guarded.zones", user="guarded")
    query.write_text(
        f"CREATE STREAM r FROM '{source}' TIME ts; CREATE TABLE zones FROM '{table}';\n"
        "SELECT r.k, z.zone FROM r LEFT JOIN zones AS z ON r.k = z.k;"
    )
    out = server.uri("guarded.out", user="guarded")
    options = ["run", str(query), "--master", "none", "--checkpoint", str(tmp_path / "c")]
    options += ["--summary", str(tmp_path / "summary"), "--log", "debug", "--out"]
    logging.getLogger("psycopg").setLevel("DEBUG")
    assert invoke([*options, out]) == 2
    assert "Give the user and the password that it wants: PGPASSWORD" in capfd.readouterr().err
    monkeypatch.setenv("PGPASSWORD", secret)
    assert invoke([*options, out]) == 0
    assert invoke(["explain", str(query), "--master", "none"]) == 0
    assert invoke(["state", str(tmp_path / "c"), "--verify"]) == 0
    said = "".join(capfd.readouterr())
    assert "late rows are in table guarded.out_late" in said
    assert server.ask("SELECT count(*), count(zone) FROM guarded.out") == [(180, 60)]
    for wrong in (
        out.replace("guarded@", f"guarded:{secret}@"),
        f"{out}&password={secret}",
        f"{out}&sslpassword={secret}",
        f"{out}&password={secret}&password={secret}",
        f"{out}&password={secret}&strange",
    ):
        assert invoke([*options, wrong]) == 2
        assert invoke([*options, wrong, "--format", "csv"]) == 2
        joined = query.with_name("p.sql")
        joined.write_text(query.read_text().replace(table, wrong.replace("out", "zones")))
        assert invoke(["explain", str(joined), "--master", "none"]) == 2
        joined.unlink()
    told = capfd.readouterr()
    said += told.out + told.err
    assert said.count("a URI must be without keys and passwords") >= 7
    assert secret not in said
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(kept) > 5
    assert [path for path in kept if secret.encode() in path.read_bytes()] == []


def test_times_come_back_as_they_were(server: Server, tmp_path: Path) -> None:
    """What a reader in another time zone sees is the same instant."""
    source = memory((3, "a", 1), end=True)
    loop_of(plan_of(COUNTS), [source], tmp_path, postgres(server.uri("zoned"))).run()
    with server.connect() as connection:
        connection.execute("SET timezone = 'Asia/Tokyo'")
        ((start,),) = connection.execute("SELECT window_start FROM zoned").fetchall()
    assert start == datetime(1970, 1, 1, tzinfo=UTC)
