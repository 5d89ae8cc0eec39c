"""Fingerprints: the same for the same meaning, in every process, and for nothing else."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from tests.query.catalog import CALLS, RIDES, STREAMS, sql, stream
from tidegate.plan.lowering.lower import lower
from tidegate.plan.lowering.rule import Choices
from tidegate.query.aggregate import count, mean
from tidegate.query.expression import col
from tidegate.query.node.node import Input, StreamDef
from tidegate.query.output import single
from tidegate.sql.bind import bind, read_script
from tidegate.testing import sampled_means

QUERY = (
    "SELECT route, AVG(fare) AS f, COUNT(*) AS n FROM rides [RANGE 1 HOUR] WHERE fare > 0 "
    "GROUP BY route ORDER BY f DESC LIMIT 5"
)


def mark(text: str, rides: StreamDef = RIDES) -> str:
    return lower(single(bind(read_script(text), {**STREAMS, "rides": rides}))).fingerprint


def test_python_and_sql_have_one_fingerprint() -> None:
    made = (
        stream(Input(RIDES))
        .where(col("fare") > 0)
        .window("60 minutes")
        .group_by("route")
        .agg(f=mean("fare"), n=count())
        .top(5, by="f")
    )
    assert lower(made.node).fingerprint == mark(QUERY)


def test_parentheses_that_change_nothing_do_not_count() -> None:
    where = QUERY.replace("fare > 0", "fare * 2 + 1 > 0 AND NOT tip IS NULL OR tip BETWEEN 1 AND 2")
    more = QUERY.replace(
        "fare > 0", "((((fare * 2) + 1) > 0) AND (NOT (tip IS NULL))) OR (tip BETWEEN (1) AND 2)"
    )
    other = QUERY.replace("fare > 0", "fare * (2 + 1) > 0 AND NOT tip IS NULL OR tip IN (1, 2)")
    assert mark(where) == mark(more) != mark(other)
    assert mark(QUERY.replace("ORDER BY f", "ORDER BY f - 1 - n")) != mark(
        QUERY.replace("ORDER BY f", "ORDER BY f - (1 - n)")
    )


def test_who_folds_does_not_count() -> None:
    balanced = "SELECT route, MEDIAN(fare) AS q, AVG(fare) AS f FROM rides [RANGE 1 HOUR] GROUP BY "
    balanced += "route WITH BALANCE ERROR 10 PERCENT TRIM ALL"

    def folded(text: str, partial: str | None) -> str:
        return lower(sql(text), None, Choices(partial=partial)).fingerprint

    for text in (QUERY, balanced):
        assert folded(text, None) == folded(text, "map") == folded(text, "instance")


def test_whether_means_are_sampled_counts() -> None:
    """A checkpoint that has a sample beside exact sums is not that of the exact query."""
    bound = "SELECT AVG(fare) AS f FROM rides [RANGE 1 HOUR] WITH ERROR 10 PERCENT"
    with sampled_means():
        sampled = mark(bound)
    assert sampled != mark(bound)


def test_places_do_not_count() -> None:
    assert mark(QUERY, replace(RIDES, uris=("elsewhere.csv",))) == mark(QUERY)
    assert mark(QUERY.lower().replace("rides", "Rides")) == mark(QUERY)


def test_everything_that_changes_the_answer_counts() -> None:
    wider = RIDES.schema.set(3, pa.field("tip", pa.int64()))
    tips = QUERY.replace("AVG(fare)", "SUM(tip)")
    marks = [
        mark(QUERY),
        mark(QUERY.replace("> 0", "> 1")),
        mark(QUERY.replace("1 HOUR", "2 HOURS")),
        mark(QUERY.replace("1 HOUR", "2 HOURS SLIDE 1 HOUR")),
        mark(QUERY.replace("AVG", "MAX")),
        mark(QUERY.replace("AS n", "AS m")),
        mark(QUERY.replace("DESC", "ASC")),
        mark(QUERY.replace("DESC", "DESC NULLS FIRST")),
        mark(QUERY.replace("LIMIT 5", "LIMIT 6")),
        mark(QUERY.replace("ORDER BY", "HAVING n > 1 ORDER BY")),
        mark(QUERY, replace(RIDES, disorder_us=1)),
        mark(QUERY, replace(RIDES, idle_us=1)),
        mark(QUERY.replace("rides", "calls")),
        mark(tips),
        mark(tips, replace(RIDES, schema=wider)),
        mark(QUERY.replace("GROUP BY route", "GROUP BY route, tip")),
        mark("SELECT route FROM rides"),
        mark("SELECT route FROM rides UNION ALL SELECT route FROM rides"),
    ]
    assert len(set(marks)) == len(marks)


def test_another_process_gives_the_same(tmp_path: Path) -> None:
    code = (
        "from tests.plan.test_fingerprint import QUERY, mark\n"
        "import sys\n"
        "sys.stdout.write(mark(QUERY))\n"
    )
    root = Path(__file__).parents[2]
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONHASHSEED": "7", "PYTHONPATH": f"{root}:{root / 'src'}"},
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert found.stdout == mark(QUERY)
    assert len(found.stdout) == 64


def test_a_stream_of_its_own_name() -> None:
    assert CALLS.name in STREAMS
    assert lower(sql("SELECT fare FROM calls")).fingerprint != mark("SELECT tip AS fare FROM rides")
