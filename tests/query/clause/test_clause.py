"""Clauses of a query: their texts and their limits, and what a clause of the table needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pytest

import tidegate as tg
from tests.query.catalog import sql
from tests.query.test_stream import rides
from tidegate.errors import OptionError, QueryError
from tidegate.query.clause.clause import Clause
from tidegate.query.clause.error import ErrorBound
from tidegate.query.clause.latency import LatencyTarget
from tidegate.query.clause.registry import CLAUSES, METHODS
from tidegate.query.clause.shed import Shed
from tidegate.query.grammar import NameValue, SyntaxPart
from tidegate.query.node.node import Aggregate, aggregate_of


def test_clauses_say_themselves() -> None:
    assert str(ErrorBound(0.1)) == "ERROR 10 PERCENT CONFIDENCE 95 PERCENT"
    assert str(ErrorBound(0.1, 0.9, 70)) == "ERROR 10 PERCENT CONFIDENCE 90 PERCENT BUDGET 70 ROWS"
    assert str(ErrorBound(0.1, metric="rms")) == "ERROR 10 PERCENT CONFIDENCE 95 PERCENT BY RMS"
    assert str(Shed(0.985, "uniform")) == "SHED 98.5 PERCENT BY UNIFORM"
    assert str(LatencyTarget(2_000_000)) == "LATENCY 2 seconds"
    whole = LatencyTarget(2_000_000, 0.1, 8)
    assert str(whole) == "LATENCY 2 seconds ERROR 10 PERCENT COST 8 INSTANCES"


@pytest.mark.parametrize("error", [0, 1, -0.1, 1.5, float("nan")])
def test_shares_are_between_nothing_and_all(error: float) -> None:
    with pytest.raises(QueryError, match="must be between 0 and 100 percent"):
        ErrorBound(error)
    with pytest.raises(QueryError, match="must be between 0 and 100 percent"):
        ErrorBound(0.1, confidence=error)
    with pytest.raises(QueryError, match="must be between 0 and 100 percent"):
        Shed(error)


def test_other_limits() -> None:
    with pytest.raises(QueryError, match="the budget must be at least 30 rows; got 0"):
        ErrorBound(0.1, budget_rows=0)
    with pytest.raises(QueryError, match="BY must be CONCEPT, CONCEPT TOTAL or UNIFORM; got luck"):
        Shed(0.5, "luck")
    with pytest.raises(QueryError, match="the target must be longer than zero; got 0 seconds"):
        LatencyTarget(0)


@pytest.mark.parametrize(
    "clauses", [("SHED 50 PERCENT", "PARTITIONER cam"), ("PARTITIONER cam", "SHED 50 PERCENT")]
)
def test_clauses_are_the_same_in_any_order(clauses: tuple[str, ...]) -> None:
    select = "SELECT route, COUNT(*) AS n FROM rides [RANGE 1 HOUR] GROUP BY route"
    node = sql(f"{select} {' '.join(f'WITH {clause}' for clause in clauses)}")
    assert isinstance(node, Aggregate)
    assert node == sql(f"{select} WITH SHED 50 PERCENT WITH PARTITIONER cam")
    assert node.summary.endswith(", partitioner cam, SHED 50 PERCENT BY CONCEPT")
    assert node.names[2:] == ("route", "n", "kept")


def test_a_clause_put_between_shed_and_error_over_a_join_stays() -> None:
    pairs = "SELECT a.route FROM rides a [RANGE 1 HOUR] JOIN calls b [RANGE 1 HOUR] USING (route)"
    over = f"SELECT route, COUNT(*) AS n FROM ({pairs}) [RANGE 1 HOUR] GROUP BY route"
    first, second = "WITH SHED 50 PERCENT", "WITH ERROR 10 PERCENT"
    between = sql(f"{over} {first} WITH PARTITIONER cam {second}")
    assert aggregate_of(between).partitioner == "cam"
    assert between == sql(f"{over} WITH PARTITIONER cam {first} {second}")


def test_a_clause_of_the_table_needs_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True)
    class Noted(Clause):
        word: ClassVar = "NOTE"
        parts: ClassVar = (SyntaxPart("text", NameValue("expected a note")),)
        method: ClassVar = "note"
        example: ClassVar = '.note("x")'
        last: ClassVar = (("note", pa.string()),)
        text: str

    monkeypatch.setitem(CLAUSES, "NOTE", Noted)
    monkeypatch.setitem(METHODS, "note", Noted)
    node = sql("SELECT COUNT(*) AS n, MAX(tip) AS m FROM rides [ROWS 5] HAVING m > 1 WITH NOTE hi")
    assert aggregate_of(node).clause("NOTE") == Noted("hi")
    assert node.names[2:] == ("n", "m", "note")
    assert node.schema.field("note").type == pa.string()
    agg = rides.window(rows=5).agg(n=tg.count(), m=tg.max("tip"))
    assert agg.having(tg.col("m") > 1).note("hi").node == node
    with pytest.raises(OptionError, match=r"note: needs text; got none\. Write for example \.note"):
        agg.note()
    with pytest.raises(QueryError, match="adds a column note, so no other may have this name"):
        sql("SELECT COUNT(*) AS note FROM rides [ROWS 5] WITH NOTE hi")
    with pytest.raises(QueryError, match="SHED, LATENCY or NOTE after WITH; got NOT"):
        sql("SELECT COUNT(*) AS n FROM rides [ROWS 5] WITH NOTE hi WITH NOT hi")
