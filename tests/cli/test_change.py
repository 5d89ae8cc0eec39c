"""A changed query on an old checkpoint, as the command line tells it."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet
import pytest

from tests.driver.scene import csv
from tidegate.cli.main import invoke
from tidegate.driver.options import RunOptions
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.planning import plan_for
from tidegate.session.script import outputs_of
from tidegate.sink import of as sink_of

SUMS = """
CREATE STREAM s FROM 's.csv' TIME ts;
SELECT k, SUM(v) AS total, COUNT(*) AS n
FROM s [RANGE 10 SECONDS] WHERE v > 0 GROUP BY k
"""


@pytest.fixture(autouse=True)
def begun(tmp_path, monkeypatch):
    """A run that was stopped after three batches of ten rows."""
    monkeypatch.chdir(tmp_path)
    csv(Path("s.csv"), *((float(i), "ab"[i % 2], i) for i in range(60)))
    place = Place("none")
    plan = plan_for(outputs_of(SUMS, {}), place)
    loop = prepare(plan, place, {None: sink_of("o")}, RunOptions(batch_rows=10), "c")
    for _ in range(3):
        loop.step()
    loop.close()


def run(query: str) -> int:
    Path("q.sql").write_text(query)
    return invoke("run q.sql --master none --checkpoint c --out o --batch-rows 10".split())


def columns() -> list[list[str]]:
    files = sorted(Path("o").glob("batch=*/*.parquet"))
    return [pyarrow.parquet.read_schema(file).names[2:] for file in files]


def test_what_follows_the_state_changes_from_the_next_batch_on(capsys, caplog):
    changed = SUMS.replace("SUM(v) AS total, ", "").replace("COUNT(*)", "SUM(v) * 2")
    assert run(f"{changed} HAVING SUM(v) > 100") == 0
    (told,) = caplog.messages
    assert "c: the query has changed; from batch 3 on: aggregate: + having SUM(v) > 100" in told
    assert (columns()[0], columns()[-1]) == (["k", "total", "n"], ["k", "n"])
    rows = [r for p in sorted(Path("o").glob("batch=*/*")) for r in _rows(p)]
    assert rows == [
        {"k": "a", "total": 20, "n": 4},
        {"k": "b", "total": 25, "n": 5},
        {"k": "a", "total": 70, "n": 5},
        {"k": "b", "total": 75, "n": 5},
        *({"k": k, "n": n} for k, n in zip("abababab", (240, 250, 340, 350, 440, 450, 540, 550))),
    ]
    capsys.readouterr()
    assert invoke(["state", "c"]) == 0
    told = capsys.readouterr().out
    assert "batch 3: query changed: aggregate: + having SUM(v) > 100" in told
    assert "\n  aggregate\n    from s\n    where v > 0\n    group by k (string)\n" in told


def test_a_change_of_the_state_is_refused_with_a_difference_of_the_queries(capsys):
    assert run(SUMS.replace("v > 0", "v > 1")) == 2
    told = capsys.readouterr().err
    assert "must be the checkpoint of this query; got one of a query that differs" in told
    assert "What changed:\n  aggregate\n    - where v > 0\n    + where v > 1\nUse another" in told


def test_a_new_function_is_refused_by_its_name(capsys):
    assert run(SUMS.replace("COUNT(*)", "MAX(v)")) == 2
    told = capsys.readouterr().err
    assert "the state of aggregate does not have MAX(v) of bigint" in told
    assert "    - select COUNT(*) as n\n    + select MAX(v) as n\n" in told


def _rows(path: Path) -> list[dict[str, object]]:
    rows = pyarrow.parquet.read_table(path).to_pylist()
    return [{n: v for n, v in row.items() if not n.startswith("window")} for row in rows]
