"""The rows of a table that is read again are those of the time of a row, while they are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tidegate.driver.loop import Loop
from tidegate.driver.options import RunOptions
from tidegate.errors import StateError
from tidegate.query.output import Output
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.planning import plan_for
from tidegate.session.script import outputs_of
from tidegate.session.why.answer import why_committed
from tidegate.sink.folder.files import FileSink
from tidegate.sink.folder.written_rows import EventSpan, rows_of
from tidegate.testing.clock import ManualClock

CREATE = """
CREATE STREAM rides FROM 'rides.csv' TIME ts;
CREATE TABLE zones FROM 'zones.csv' REFRESH EVERY '10 minutes';
"""
ROWS = "SELECT r.n, z.name FROM rides AS r LEFT JOIN zones AS z ON r.zone = z.id"
WINDOWS = (
    "SELECT z.name, COUNT(*) AS c FROM rides AS r [RANGE {} SECONDS] "
    "JOIN zones AS z ON r.zone = z.id GROUP BY z.name"
)


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve rides, a second apart, to three zones in turn, of which the table has two."""
    monkeypatch.chdir(tmp_path)
    rides = [f"2024-01-01T00:00:{second:02d}Z,{second},{second % 3}" for second in range(12)]
    Path("rides.csv").write_text("\n".join(["ts,n,zone", *rides]) + "\n")


def zones(*names: str) -> None:
    lines = [f"{number},{name}" for number, name in enumerate(names)]
    Path("zones.csv").write_text("\n".join(["id,name", *lines]) + "\n")


def outputs(query: str) -> list[Output]:
    return list(outputs_of(CREATE + query, {}))


def run(query: str, keep_us: int | None) -> None:
    """Batches of four rides; before the second one the table has other rows, in another order."""
    clock = ManualClock()
    zones("a", "b")
    place, sink = Place("none"), FileSink("out")
    options = RunOptions(instances=2, buckets=8, batch_rows=4, keep_us=keep_us)
    plan = plan_for(outputs(query), place)
    loop: Loop = prepare(plan, place, {None: sink}, options, "ck", clock=clock)
    clock.sleep(1)
    loop.step()
    Path("zones.csv").write_text("id,name\n7,z\n1,y\n0,x\n")
    clock.sleep(601)
    while loop.step() is not None:
        pass
    loop.close()
    zones("what it is now")


def why(query: str, row: str) -> dict[str, Any]:
    return why_committed("ck", outputs(query), None, row)


@pytest.mark.parametrize("keep_us", [None, 3_600_000_000])
def test_the_rows_of_the_version_are_listed(keep_us: int | None) -> None:
    run(ROWS, keep_us)
    late = why(ROWS, "n = 10")
    assert late["table_rows"] == [{"table": "zones", "row": 1, "values": {"id": 1, "name": "y"}}]
    assert late["again"]["equal"]
    missed = why(ROWS, "n = 11")
    assert missed["table_rows"] == []
    assert len(missed["tuples"]) == 1


def test_an_earlier_version_is_there_if_states_are_kept() -> None:
    run(ROWS, 3_600_000_000)
    early = why(ROWS, "n = 1")
    assert early["table_rows"] == [{"table": "zones", "row": 1, "values": {"id": 1, "name": "b"}}]
    assert not any("as it is now" in note for note in early["notes"])


def test_windows_have_the_rows_of_their_time() -> None:
    query = WINDOWS.format(1)
    run(query, 3_600_000_000)
    for name, row in (("y", 1), ("a", 0)):
        facts = why(query, f"name = '{name}'")
        assert [each["row"] for each in facts["table_rows"]] == [row]
        assert facts["again"]["tuples"] == len(facts["tuples"]) == 1


def test_of_equal_rows_each_has_its_own_tuple() -> None:
    """Rows before are those of another table, so that the row has another number now."""
    query = "SELECT z.name FROM rides AS r JOIN zones AS z ON r.zone = z.id"
    lines = [f"2024-01-01T00:00:{second:02d}Z,{second},0" for second in (0, 1, 2, 3, 9, 9, 9, 10)]
    Path("rides.csv").write_text("\n".join(["ts,n,zone", *lines]) + "\n")
    run(query, None)
    rows = [row for batch in rows_of("out", EventSpan()) for row in batch.to_pylist()]
    assert [row["name"] for row in rows[-4:]] == ["x"] * 4
    found = [why_committed("ck", outputs(query), None, n) for n in range(len(rows) - 4, len(rows))]
    assert [each["tuples"][0]["values"]["n"] for each in found] == [9, 9, 9, 10]
    assert len({each["tuples"][0]["row"] for each in found}) == 4


def test_a_row_of_two_versions_says_so() -> None:
    run(WINDOWS.format(12), 3_600_000_000)
    with pytest.raises(StateError, match="must come again when the query is run") as raised:
        why(WINDOWS.format(12), "name = 'x'")
    assert "zones" in raised.value.remedy
