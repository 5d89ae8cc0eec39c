"""Strategies on the command line: compared by explain, one of them chosen to run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow.csv
import pytest

from tidegate.cli.main import invoke
from tidegate.errors import QueryError
from tidegate.plan.options import PlanOptions
from tidegate.plan.physical import OPERATOR_CLOUD, Plan
from tidegate.query.output import Output
from tidegate.session.place import Place
from tidegate.session.planning import plan_for

SQL = """
CREATE STREAM calls FROM 'generator:calls?rows=3000&rate=50&keys=40' TIME ts;
CREATE STREAM minutes AS
SELECT district, COUNT(*) AS n FROM calls [RANGE 10 SECONDS] WHERE lat > 37 GROUP BY district;
SELECT district, MAX(n) AS most FROM minutes [RANGE 1 MINUTE] GROUP BY district
"""
CLOUD = ["run", "q.sql", "--master", "none", "--strategy", "query-cloud"]
TABLE = """\
strategies (cost = 1 * fan-out + 0.001 * 100,000 tuples/s * hops)
  strategy        subqueries  instances  hops  fan-out   cost
  operator-set             2          6     1        9  109.0
  query-cloud              2          6     1       36  136.0
  operator-cloud           3          6     2        8  208.0
  cheapest: operator-set
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("q.sql").write_text(SQL)


def explained(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert invoke(["explain", "q.sql", "--master", "none", *options]) == 0
    return capsys.readouterr().out


def test_costs_of_strategies_are_for_who_asks(capsys: pytest.CaptureFixture[str]) -> None:
    said = explained(capsys, "--instances", "3")
    assert said.startswith("query\n  aggregate [RANGE 1 minute]")
    assert "cost" not in said


def test_all_strategies_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    said = explained(capsys, "--instances", "3", "--strategy", "all")
    assert said.endswith(TABLE)
    assert (
        "query-cloud: as operator-set, all on the same instances\n"
        "  1 minutes: aggregate over [RANGE 10 seconds] by district; 6 instances\n"
        "  2 aggregate2: aggregate over [RANGE 1 minute] by district; 6 instances\n"
        "  minutes to aggregate2: 36 channels\n"
        "  1 hop, fan-out 36, cost 136.0\n"
        "  by the formula for 3 operators, 2 stateful: 2 hops, fan-out 30.0, cost 230.0\n"
    ) in said
    assert (
        "  1 stateless: filter, select, order; 2 instances\n"
        "  2 minutes: aggregate over [RANGE 10 seconds] by district; 2 instances\n"
        "  3 aggregate2: aggregate over [RANGE 1 minute] by district; 2 instances\n"
        "  stateless to minutes: 4 channels\n"
        "  minutes to aggregate2: 4 channels\n"
    ) in said


def test_the_plan_of_one_strategy(capsys: pytest.CaptureFixture[str]) -> None:
    said = explained(capsys, "--strategy", "operator-cloud")
    assert "subqueries (operator-cloud: one per operator)\n  1 stateless: " in said


def test_instances_of_single_subqueries_are_those_compared(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = ("--instances", "minutes=4", "--instances", "aggregate2=1", "--strategy", "all")
    said = explained(capsys, *asked)
    assert "  operator-set             2          5     1        4  104.0\n" in said
    assert "  query-cloud              2          5     1       25  125.0\n" in said


def test_a_strategy_that_cannot_be_says_so_beside_the_others(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where only Spark knows a function, and an operator before it would be apart."""

    def without_operator_cloud(
        outputs: Sequence[Output], place: Place, options: PlanOptions
    ) -> Plan:
        if options.strategy == OPERATOR_CLOUD:
            raise QueryError("SELECT", "needs a kernel", "SOUNDEX")
        return plan_for(outputs, place, options)

    monkeypatch.setattr("tidegate.cli.command.explain.plan_for", without_operator_cloud)
    said = explained(capsys, "--strategy", "all")
    assert "  operator-cloud: not for this query\n  cheapest: operator-set\n" in said
    assert "  not for this query: SELECT: needs a kernel; got SOUNDEX.\n" in said
    assert invoke(["explain", "q.sql", "--master", "none", "--strategy", OPERATOR_CLOUD]) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["run", "q.sql", "--strategy", "all"],
            "--strategy: `tidegate run` takes one of operator-set, query-cloud, operator-cloud; "
            "got all. `tidegate explain --strategy all` compares them.",
        ),
        (
            ["run", "missing.sql", "--strategy", "all"],
            "--strategy: `tidegate run` takes one of operator-set, query-cloud, operator-cloud; "
            "got all. `tidegate explain --strategy all` compares them.",
        ),
        (
            [*CLOUD, "--instances", "aggregate=2"],
            "--instances: the strategy query-cloud has one number of instances for the whole "
            "query; got one for minutes. Leave the subquery out, or use another --strategy.",
        ),
        (
            [*CLOUD, "--switch", "aggregate:1=2"],
            "--switch: the strategy query-cloud has one number of instances for the whole "
            "query; got one for minutes. Leave the subquery out, or use another --strategy.",
        ),
        (
            ["explain", "q.sql", "--master", "none", "--instances", "minute=2"],
            "--instances: must name a subquery of the query; got minute. "
            "Did you mean minutes? There are: minutes, aggregate2.",
        ),
        (
            ["run", "q.sql", "--instances", "minutes=2", "--instances", "aggregate=3"],
            "--instances: a subquery can be named once; got minutes and aggregate, which are the "
            "same. Leave out aggregate.",
        ),
        (
            ["explain", *CLOUD[1:], "--instances", "aggregate=2"],
            "--instances: the strategy query-cloud has one number of instances for the whole "
            "query; got one for minutes. Leave the subquery out, or use another --strategy.",
        ),
        (
            ["explain", "q.sql", "--master", "none", "--instances", "0"],
            "--instances: must be at least 1; got 0.",
        ),
    ],
)
def test_mistakes(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(Path().iterdir())
    assert invoke(arguments) == 2
    assert capsys.readouterr().err == f"tidegate: {message}\n"
    assert sorted(Path().iterdir()) == before


def test_every_strategy_gives_the_same_rows() -> None:
    found = []
    for strategy in ("operator-set", "query-cloud", "operator-cloud"):
        options = ["--strategy", strategy, "--instances", "3", "--batch-rows", "700"]
        run = ["run", "q.sql", "--master", "none", "--out", strategy, "--format", "csv"]
        assert invoke([*run, *options]) == 0
        parts = sorted(Path(strategy).glob("batch=*/*.csv"))
        tables = [pyarrow.csv.read_csv(p) for p in parts if p.stat().st_size]
        found.append([row for table in tables for row in table.to_pylist()])
    assert len(found[0]) > 50
    assert found[0] == found[1] == found[2]
