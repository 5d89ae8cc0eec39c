"""The pages on shedding: their queries run, and their tables say what there is."""

from __future__ import annotations

from pathlib import Path

import pytest

import tidegate as tg
from tests.docs.block import ROOT, blocks
from tests.docs.test_sql import bound, code, rows
from tidegate.cli.main import invoke
from tidegate.operate.aggregate.registry import find_sql, sql_names
from tidegate.operate.aggregate.shed.total import TOTAL_SHOWN
from tidegate.operate.join.operator import StreamJoin
from tidegate.plan.join.shed import FEWEST, PANES
from tidegate.plan.lowering.lower import lower

PATH = "docs/shedding.md"
PAGE = (ROOT / PATH).read_text(encoding="utf-8")
ESTIMATES = (ROOT / "docs/estimates.md").read_text(encoding="utf-8")
(_, UPTO, JOINED), (PYTHON,) = blocks(PATH, "sql"), blocks(PATH, "python")


def test_its_query_with_up_to_begins_with_everything() -> None:
    sieve = lower(bound(UPTO)).subqueries[0].prefixes[0].sieve
    assert sieve is not None
    assert (sieve.rate, sieve.first, sieve.now.newest) == (0.02, 1.0, 1.0)


def test_its_join_sheds_its_sides() -> None:
    plan = lower(bound(JOINED))
    join = plan.subqueries[0].operator
    assert isinstance(join, StreamJoin)
    assert join.sieve is not None
    assert (join.sieve.rate, join.sieve.fewest) == (pytest.approx(0.1), FEWEST)
    assert f"first {FEWEST} tuples in every quarter" in ESTIMATES
    assert PANES == 4


def test_its_program_runs() -> None:
    uri, session = "generator:taxi?keys=5&rows=9000", tg.Session(master="none")
    rides = session.stream(uri, name="rides", time="dropoff_time")
    made = eval(PYTHON, {"rides": rides, "tg": tg})
    assert "sheds: 98 percent of the tuples, keeping at least 2 of each group" in made.explain()
    (first, *_) = made.preview(1, read=9000).to_pylist()
    assert first["n"] > 100
    assert 0 < first["kept"] < 0.1


def test_its_table_has_every_function() -> None:
    listed = {
        name.partition("(")[0]: row[1]
        for row in rows(ESTIMATES[ESTIMATES.index("| aggregates |") :].split("\n\n")[0])
        for name in code(row[0])
    }
    others = {"COUNT(DISTINCT x)"} | {n for f in map(find_sql, listed) if f for n in f.sql}
    assert set(sql_names()) <= others | {"APPROX_COUNT_DISTINCT"}
    for name in listed:
        found = find_sql(name)
        assert found is not None
        if name != "COUNT":
            assert found.scales == listed[name].startswith("scaled")
            assert (found.unscaled is not None) == listed[name].startswith("refused")


def test_its_figures_are_those_that_are_told() -> None:
    told = rows(ESTIMATES[ESTIMATES.index("| figure |") :].split("\n\n")[0])
    assert [name for row in told for name in code(row[0])] == [one.name for one in TOTAL_SHOWN]


@pytest.mark.parametrize(
    ("by", "said"),
    [
        ("CONCEPT", "and keeps every group"),
        ("CONCEPT TOTAL", "sheds 98.0% of the tuples, over 4 windows, and drops"),
    ],
)
def test_a_sample_says_beforehand_what_is_shed(
    by: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "routes.sql"
    script.write_text(
        "CREATE STREAM rides FROM 'generator:taxi?keys=3000&rows=30000' TIME dropoff_time;\n"
        "SELECT route, AVG(fare) AS fare FROM rides [RANGE 15 MINUTES] GROUP BY route "
        f"WITH SHED 98 PERCENT BY {by}"
    )
    assert invoke(["explain", str(script), "--master", "none", "--sample", "30000"]) == 0
    *_, line = capsys.readouterr().out.splitlines()
    assert said in line
    shed = float(line.partition("sheds ")[2].partition("%")[0])
    assert (shed < 80) == (by == "CONCEPT")


def test_a_sample_says_which_share_keeps_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "packets.sql"
    made = "CREATE STREAM packets FROM 'generator:packets?rows=200000' TIME ts;\n"
    script.write_text(
        f"{made}SELECT AVG(size) AS size FROM packets [RANGE 45 SECONDS SLIDE 15 SECONDS] "
        "WITH SHED 99 PERCENT BY UNIFORM"
    )
    assert invoke(["explain", str(script), "--master", "none", "--sample", "100000"]) == 0
    *_, line = capsys.readouterr().out.splitlines()
    assert line.strip() in PAGE
