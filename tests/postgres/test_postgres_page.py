"""The page on Postgres: its query and its command run, on a server of another port."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.docs.block import blocks
from tests.postgres.server import Server
from tidegate.cli.main import invoke
from tidegate.sink import PostgresSink

PAGE = "docs/postgres.md"


def test_the_query_and_the_sink_of_the_page(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PGPASSWORD", raising=False)
    (sql,), (console,), (program,) = (blocks(PAGE, kind) for kind in ("sql", "console", "python"))
    port = str(server.port)
    Path("fares.sql").write_text(sql.replace("5433", port))
    rides = [f"2024-01-01T0{hour}:00:01Z,{zone},2.5" for hour in range(3) for zone in (1, 1, 2, 3)]
    Path("rides.csv").write_text("\n".join(["ts,zone,fare", *rides]) + "\n")
    server.ask("CREATE SCHEMA page; CREATE TABLE page.zones (id int PRIMARY KEY, name text)")
    server.ask("INSERT INTO page.zones VALUES (1, 'Port'), (2, 'Hill')")
    server.ask("ALTER ROLE tidegate SET search_path = page")
    try:
        (command,) = console.splitlines()
        assert invoke(shlex.split(command.replace("5433", port))[2:]) == 0
    finally:
        server.ask("ALTER ROLE tidegate RESET search_path")
    found = server.ask("SELECT name, n, fares FROM page.fares ORDER BY window_start, name DESC")
    assert found == [("Port", 2, 5.0), ("Hill", 1, 2.5)] * 3
    given: dict[str, object] = {}
    exec(compile(program, PAGE, "exec"), given)
    sink = given["sink"]
    assert isinstance(sink, PostgresSink)
    assert sink.upserts
    assert sink.where.endswith("table public.newest_fares")
