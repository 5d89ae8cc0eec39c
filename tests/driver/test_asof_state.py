"""The state of an as-of join: no tuple that cannot match any more, counted after every batch."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.driver.scene import compacted
from tidegate.cli.main import invoke
from tidegate.driver.loop import Loop
from tidegate.driver.options import RunOptions
from tidegate.plan.lowering.lower import lower
from tidegate.query.output import single
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.script import streams_of
from tidegate.sink.memory import MemorySink
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script

ROWS = 20_000
STREAMS = f"""
CREATE STREAM r FROM 'generator:r?rows={ROWS}&rate=1000&domain=1000000' TIME ts;
CREATE STREAM s FROM 'generator:s?rows={ROWS}&rate=1000&domain=1000000&seed=1' TIME ts;
"""
QUERY = "SELECT r.x, s.b FROM r ASOF LEFT JOIN s {} MATCH_CONDITION (r.ts {} s.ts) ON {}"


def peak(sql: str, folder: Path) -> tuple[int, int]:
    """The most rows that the state had, across two switches, and rows of the output."""
    script = read_script(STREAMS + sql)
    plan = lower(single(bind(script, streams_of(script))))
    sink = MemorySink()
    options = RunOptions(instances=2, batch_rows=1_000, switches={5: 3, 12: 1})
    loop: Loop = prepare(plan, Place("none"), {None: sink}, options, str(folder))
    most = 0
    while not loop.manifest.finished:
        loop.step()
        compacted(loop)
        segments = loop.manifest.operators.get("asof/nearest", ())
        most = max(most, sum(segment.rows for segment in segments))
    loop.close()
    return most, sink.table().num_rows


@pytest.mark.parametrize(
    ("tolerance", "comparison", "key", "most"),
    [
        ("", ">=", "r.x % 10 = s.a % 10", 200),
        ("[RANGE 1 SECOND]", ">=", "r.x = s.a", 2_000),
        ("[RANGE 1 SECOND]", "<=", "r.x = s.a", 2_000),
        ("[RANGE 10 SECONDS]", "<=", "r.x % 10 = s.a % 10", 400),
        ("[RANGE 0 SECONDS]", ">=", "r.x = s.a", 0),
    ],
)
def test_what_cannot_match_any_more_is_gone(
    tolerance: str, comparison: str, key: str, most: int, tmp_path: Path
) -> None:
    """Of ten keys there are ten tuples, in some layers; of a million those of the tolerance."""
    held, rows = peak(QUERY.format(tolerance, comparison, key), tmp_path)
    assert rows == ROWS
    assert (held > 0) == (most > 0)
    assert held <= most


def rows_of(second: int, more: int) -> str:
    rows = (f"2024-01-01T00:00:{n:02d}Z,{'abc'[n % 3]},{n}\n" for n in range(second, more))
    return "".join(rows)


def changed(folder: Path, first: str, then: str) -> int:
    """Run a query over half of the input, and another over the rest with its checkpoint."""
    files = (folder / "t.csv", folder / "q.csv")
    for file in files:
        file.write_text("ts,k,v\n" + rows_of(0, 20))
    codes = []
    for query in (first, then):
        text = "".join(f"CREATE STREAM {f.stem} FROM '{f}' TIME ts;\n" for f in files) + query
        (folder / "query.sql").write_text(text)
        run = ["run", str(folder / "query.sql"), "--master", "none", "--available-now"]
        run += ["--out", str(folder / "out"), "--format", "csv"]
        codes.append(invoke([*run, "--checkpoint", str(folder / "state")]))
        for file in files:
            with file.open("a") as out:
                out.write(rows_of(20, 40))
    assert codes[0] == 0
    return codes[1]


BACK = "SELECT t.v, q.v AS w, q.k FROM t ASOF JOIN q MATCH_CONDITION (t.ts >= q.ts) ON t.k = q.k"


@pytest.mark.parametrize(
    ("then", "code"),
    [
        (BACK.replace("q.v AS w, ", ""), 0),
        (BACK.replace(">=", ">").replace("ASOF", "ASOF LEFT"), 0),
        (f"{BACK} WHERE q.v > 3", 0),
        (BACK.replace("JOIN q", "JOIN q [RANGE 5 SECONDS]"), 2),
        (BACK.replace("t.k = q.k", "t.v = q.v"), 2),
        (BACK.replace("q.k", "q.v", 1).replace("q.v AS w", "q.ts AS w"), 2),
    ],
)
def test_a_changed_query_goes_on_where_its_state_says_enough(
    then: str, code: int, tmp_path: Path
) -> None:
    assert changed(tmp_path, BACK, then) == code
