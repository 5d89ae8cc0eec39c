"""The pages on answers within an error: queries and programs run, and give what they say."""

from __future__ import annotations

import re

import pytest

import tidegate as tg
from tests.docs.block import ROOT, blocks
from tests.docs.test_sql import bound, queries
from tidegate.operate.aggregate.bounded.answer import BoundedAnswer
from tidegate.operate.aggregate.bounded.figures import RankedAnswer
from tidegate.operate.aggregate.merging import MergeWindows
from tidegate.operate.aggregate.operator import WindowAggregate
from tidegate.plan.explain import explain
from tidegate.plan.lowering.lower import lower
from tidegate.query.clause.error import METRICS

PATH = "docs/approximation.md"
ESTIMATES = "docs/estimates.md"
PAGE = (ROOT / PATH).read_text(encoding="utf-8")
SQL = [
    query for page in (PATH, ESTIMATES) for block in blocks(page, "sql") for query in queries(block)
]
(ONE,), (JOINED, OWN) = blocks(PATH, "python"), blocks(ESTIMATES, "python")
(EXPLAINED,) = blocks(PATH, "text")


def test_its_queries_can_run() -> None:
    *others, joined = SQL
    assert len(others) == 3
    for query in others:
        operator = lower(bound(query)).subqueries[-1].operator
        assert isinstance(operator, WindowAggregate | MergeWindows)
        assert isinstance(operator.answer, RankedAnswer | BoundedAnswer)
        assert operator.answer.answering.sampled  # there is something to sample
    for share, rows in (("75", "675"), ("90", "2,023")):
        assert rows in (ROOT / ESTIMATES).read_text(encoding="utf-8")
        outputs = bound(joined.replace("SHED 75", f"SHED {share}"))
        first = f"keeping the first {rows.replace(',', '')} of each key in 2500 milliseconds"
        assert first in explain(outputs, lower(outputs))


def test_its_programs_run(capsys: pytest.CaptureFixture[str]) -> None:
    packets = tg.Session(master="none").stream("generator:packets", name="packets")
    assert eval(ONE, {"packets": packets, "tg": tg}).columns[-1] == "exact"
    both = packets.join(packets, within="1 second", on=tg.left.src == tg.right.src)
    pairs = both.select(size=tg.right.size)
    assert eval(JOINED, {"pairs": pairs, "tg": tg}).columns[-2:] == ("kept", "exact")
    exec(OWN, {})
    assert "size_low" in capsys.readouterr().out


def test_it_explains_as_shown() -> None:
    sql = "SELECT MEDIAN(size) AS size FROM packets [RANGE 1 MINUTE] WITH ERROR 10 PERCENT"
    outputs = bound(sql)
    assert EXPLAINED.strip() in explain(outputs, lower(outputs))
    (rows,) = re.findall(r"(\d+) in each group", PAGE)
    grouped = bound(SQL[0])
    assert f"from {rows} values or more of each group" in explain(grouped, lower(grouped))


def test_its_table_has_the_metrics() -> None:
    assert re.findall(r'`metric="(\w+)"`', PAGE) == list(METRICS)
