"""Rows of streams with IDLE: the tuples that came too late are left out, as they were recorded."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tidegate.driver.options import RunOptions
from tidegate.errors import SourceError, StateError
from tidegate.query.output import Output
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.planning import plan_for
from tidegate.session.script import outputs_of
from tidegate.session.verification.verify import verified
from tidegate.session.why.answer import why_committed
from tidegate.sink.folder.files import FileSink
from tidegate.sink.folder.written_rows import EventSpan, rows_of
from tidegate.testing.clock import ManualClock

QUERY = (
    "CREATE STREAM s (ts TIMESTAMP, k STRING) FROM 'a', 'b' TIME ts IDLE '1 second';"
    "SELECT k, COUNT(*) AS n FROM s [RANGE 10 SECONDS] GROUP BY k"
)


def add(source: str, name: str, first: int, last: int, key: str) -> None:
    """A file with a tuple a second."""
    rows = [f"2024-01-01T00:00:{second:02d}Z,{key}" for second in range(first, last)]
    Path(source).mkdir(exist_ok=True)
    Path(source, f"{name}.csv").write_text("\n".join(["ts,k", *rows]) + "\n")


def outputs() -> list[Output]:
    return list(outputs_of(QUERY, {}))


@pytest.fixture(autouse=True, params=["parquet", "csv", "json"])
def work(request: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Source `b` is silent from second 12 on; what it brings of 20 to 30 comes too late."""
    monkeypatch.chdir(tmp_path)
    add("a", "0", 0, 45, "a")
    add("b", "0", 0, 12, "b")
    clock, place = ManualClock(), Place("none")
    options = RunOptions(buckets=8, keep_us=3_600_000_000, follow=True)
    plan = plan_for(outputs(), place)
    loop = prepare(plan, place, {None: FileSink("out", request.param)}, options, "ck", clock=clock)
    loop.step()
    clock.sleep(2)
    loop.step()
    add("b", "1", 20, 50, "b")
    add("a", "1", 45, 56, "a")
    for _ in range(3):
        clock.sleep(2)
        loop.step()
    loop.close()


def rows() -> list[tuple[Any, ...]]:
    tables = rows_of("out", EventSpan())
    return [(r["window_start"].second, r["k"], r["n"]) for t in tables for r in t.to_pylist()]


def why(row: int | str) -> dict[str, Any]:
    return why_committed("ck", outputs(), None, row)


def test_every_row_is_explained_without_the_tuples_that_came_late() -> None:
    assert (30, "a", 10) in rows()
    assert (30, "b", 10) not in rows(), "the source was silent"
    assert (40, "b", 6) in rows(), "of ten tuples four came late"
    assert verified("ck", outputs(), EventSpan())["equal"]
    for number, (start, key, count) in enumerate(rows()):
        found = why(number)
        assert found["again"]["equal"], (start, key)
        assert len(found["tuples"]) == count


def test_a_damaged_file_of_late_tuples_is_named() -> None:
    part = next(Path("out/_late").glob("batch=*/s.*"))
    part.write_bytes(b"x" + part.read_bytes()[9:])
    with pytest.raises(SourceError, match="must be as it was written") as error:
        why(0)
    assert error.value.where == str(part.absolute())


def test_where_no_output_has_the_late_tuples_the_row_is_refused_with_the_reason() -> None:
    shutil.rmtree("out/_late")
    why(rows().index((30, "a", 10)))
    with pytest.raises(StateError) as error:
        why(rows().index((40, "b", 6)))
    assert "IDLE of stream s let this row go out" in str(error.value)
    assert "has changed: " not in str(error.value)
