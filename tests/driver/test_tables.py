"""Which version of a table a batch has used is in its manifest, and a restart has the same rows."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tidegate.driver.loop import Loop
from tidegate.driver.options import RunOptions
from tidegate.errors import CheckpointError, QueryError
from tidegate.plan.physical import Plan
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.planning import plan_for
from tidegate.session.script import outputs_of
from tidegate.sink.memory import MemorySink
from tidegate.state.inspect import describe, size_text
from tidegate.state.store import Store
from tidegate.testing.clock import ManualClock

QUERY = """
CREATE STREAM rides FROM '{folder}/rides.csv' TIME ts;
CREATE TABLE zones FROM '{folder}/zones.csv'{clause};
SELECT r.n, z.name FROM rides AS r LEFT JOIN zones AS z ON r.zone = z.id;
"""
COUNTED = (
    QUERY.replace("r.n, z.name", "z.name, COUNT(*) AS c")
    .replace("AS r LEFT", "AS r [RANGE 2 SECONDS] LEFT")
    .replace("z.id;", "z.id GROUP BY z.name;")
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [f"2024-01-01T00:00:{second:02d}Z,{second},{second % 3}" for second in range(12)]
    (tmp_path / "rides.csv").write_text("\n".join(["ts,n,zone", *rows]) + "\n")
    zones(tmp_path, "a", "b")
    return tmp_path


def zones(folder: Path, *names: str) -> None:
    lines = [f"{number},{name}" for number, name in enumerate(names)]
    (folder / "zones.csv").write_text("\n".join(["id,name", *lines]) + "\n")


def loop_over(
    folder: Path, sink: MemorySink, clause: str = "", query: str = QUERY, **more: Any
) -> Loop:
    return started(planned(folder, clause, query), folder, sink, **more)


def planned(folder: Path, clause: str = "", query: str = QUERY) -> Plan:
    return plan_for(outputs_of(query.format(folder=folder, clause=clause), {}), Place("none"))


def started(plan: Plan, folder: Path, sink: MemorySink, **more: Any) -> Loop:
    options = RunOptions(instances=2, buckets=8, batch_rows=4)
    return prepare(plan, Place("none"), {None: sink}, options, str(folder / "state"), **more)


def rest(loop: Loop) -> None:
    while loop.step() is not None:
        pass
    loop.close()


def names(sink: MemorySink) -> list[str | None]:
    found: list[str | None] = sink.table().column("name").to_pylist()
    return found


def recorded(folder: Path) -> list[Any]:
    manifest = Store.open(folder / "state").latest()
    assert manifest is not None
    return list(manifest.tables["zones"])


def kept(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "state" / "table").iterdir())


def test_a_restart_goes_on_with_the_rows_of_its_checkpoint_and_says_so(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sink = MemorySink()
    loop = loop_over(folder, sink)
    loop.step()
    loop.close()
    (before,) = recorded(folder)
    zones(folder, "other", "rows")
    with caplog.at_level(logging.WARNING):
        rest(loop_over(folder, sink))
    assert names(sink) == ["a", "b", None] * 4
    assert recorded(folder) == [before]
    assert kept(folder) == [Path(before["file"]).name]
    assert "table zones has changed since it was read" in caplog.text


def test_a_restart_needs_the_files_of_a_table_no_more(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sink = MemorySink()
    loop = loop_over(folder, sink)
    loop.step()
    loop.close()
    plan = planned(folder)  # while the file was there
    (folder / "zones.csv").unlink()
    with caplog.at_level(logging.WARNING):
        rest(started(plan, folder, sink))
    assert names(sink) == ["a", "b", None] * 4
    assert "table zones cannot be read" in caplog.text


def test_other_columns_are_refused(folder: Path) -> None:
    loop = loop_over(folder, MemorySink())
    loop.step()
    loop.close()
    (folder / "zones.csv").write_text("id,name\nx,a\n")
    query = QUERY.replace("r.zone = z.id", "CAST(r.zone AS STRING) = z.id")
    with pytest.raises(
        CheckpointError, match="has table zones with the columns id, name of its first run"
    ):
        rest(loop_over(folder, MemorySink(), query=query))


@pytest.mark.parametrize("query", [QUERY, COUNTED], ids=["rows", "windows"])
def test_a_table_that_is_read_again_counts_from_an_event_time_on(folder: Path, query: str) -> None:
    """The first batch has four tuples, of which the last waits until the next are there."""
    sink, clock = MemorySink(), ManualClock()
    loop = loop_over(folder, sink, " REFRESH EVERY '10 minutes'", query, clock=clock)
    loop.step()
    zones(folder, "x", "y")
    clock.sleep(599)
    loop.step()
    assert {n for n in names(sink) if n} == {"a", "b"}
    clock.sleep(2)
    rest(loop)
    old, new = recorded(folder)
    assert (old["rows"], new["rows"]) == (2, 2)
    assert new["from_us"] > old["from_us"]
    assert [Path(version["file"]).name for version in (old, new)] == kept(folder)
    if query == QUERY:
        from_s = new["from_us"] // 10**6 % 60
        wanted = [("abxy"[2 * (s >= from_s) + s % 3] if s % 3 < 2 else None) for s in range(12)]
        assert 0 < from_s < 12
        assert names(sink) == wanted


def test_a_restart_uses_the_version_of_its_record(folder: Path) -> None:
    sink, clock = MemorySink(), ManualClock()
    loop = loop_over(folder, sink, " REFRESH EVERY '10 minutes'", clock=clock)
    loop.step()
    loop.close()
    zones(folder, "x", "y")
    rest(loop_over(folder, sink, " REFRESH EVERY '10 minutes'", clock=clock))
    assert names(sink) == ["a", "b", None] * 4


def test_what_cannot_be_read_again_stays(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    sink, clock = MemorySink(), ManualClock()
    loop = loop_over(folder, sink, " REFRESH EVERY '1 second'", clock=clock)
    loop.step()
    (folder / "zones.csv").unlink()
    clock.sleep(2)
    with caplog.at_level(logging.WARNING):
        rest(loop)
    assert names(sink) == ["a", "b", None] * 4
    assert "table zones cannot be read again" in caplog.text


def test_the_record_is_shown_with_the_state(folder: Path) -> None:
    rest(loop_over(folder, MemorySink()))
    text = describe(Store.open(folder / "state"))
    (version,) = recorded(folder)
    wanted = f"table zones: 2 rows, {size_text(version['bytes'])}, version {version['digest'][:12]}"
    assert wanted in text


def test_a_table_is_joined_by_the_names_that_spark_has_for_kinds(folder: Path) -> None:
    import tidegate as tg

    session = tg.Session(master="none")
    rides = session.stream(str(folder / "rides.csv"), time="ts")
    given = session.table(pa.table({"zone": [0, 1], "name": ["a", "b"]}), name="zones")
    found = {
        how: rides.join(given, on="zone", how=how).preview(12).table.num_rows
        for how in ("inner", "left", "left_outer", "leftsemi", "left_anti")
    }
    assert found == {"inner": 8, "left": 12, "left_outer": 12, "leftsemi": 8, "left_anti": 4}
    wanted = (
        "JOIN: a stream is joined to table zones by JOIN, LEFT JOIN, SEMI JOIN or ANTI JOIN; got "
        "FULL JOIN. Its rows have no event time, and cannot stand alone: leave FULL out."
    )
    with pytest.raises(QueryError, match=f"^{re.escape(wanted)}$"):
        rides.join(given, on="zone", how="full")


def test_rows_of_a_program_are_kept_too(folder: Path) -> None:
    import tidegate as tg

    session = tg.Session(master="none")
    rides = session.stream(str(folder / "rides.csv"), time="ts")
    given = session.table(pa.table({"zone": [0, 1], "name": ["a", "b"]}), name="zones")
    sink = tg.sink.memory()
    joined = rides.join(given, on="zone", how="left")
    assert joined.columns == ("ts", "n", "zone", "name")
    joined.start(sink=sink, checkpoint=folder / "state", batch_rows=4).wait()
    assert sink.table().column("name").to_pylist() == ["a", "b", None] * 4
    assert [version["rows"] for version in recorded(folder)] == [2]
