"""The policy by model on Spark: instances follow the rates of live streams, up and down.

Tuples come by a clock that the test sets, and tasks take the time that they take: how many batches
there are, and what is in them, is the same on any machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tidegate import schedule
from tidegate.cli.option.option import read_query
from tidegate.cli.option.query_text import QueryText
from tidegate.driver.options import RunOptions
from tidegate.plan.join.method import JoinOptions
from tidegate.plan.options import PlanOptions
from tidegate.policy import model
from tidegate.schedule import Threads
from tidegate.session.launch import prepare
from tidegate.session.place import Place
from tidegate.session.planning import plan_for
from tidegate.sink.null_sink import NothingSink
from tidegate.testing import ManualClock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HIGH, LOW = 8_000, 20
"""Tuples a second of each side: the first make some thousand times the work of the second.

That is work for about 0.04 instances and for 0.00005. The quotas of the policy are between them,
far from both: tasks may cost several times more or less than that on another machine."""

JOIN = """
CREATE STREAM r FROM 'generator:r?pace={rates}&column=r&domain=200' TIME ts;
CREATE STREAM s FROM 'generator:s?pace={rates}&column=s&domain=200' TIME ts;
SELECT r.x, s.a FROM r [RANGE 3 SECONDS] JOIN s [RANGE 3 SECONDS]
ON r.x BETWEEN s.a - 1 AND s.a + 1 AND r.y BETWEEN s.b - 1 AND s.b + 1
"""
BATCH_S, PERIOD_S = 0.05, 0.25


def test_instances_follow_the_rates_up_and_down(spark: SparkSession, tmp_path: Path) -> None:
    rates, clock = tmp_path / "rates.csv", ManualClock()
    steps = [HIGH] * 4 + [LOW] * 4
    lines = [f"{second},{rate},{rate}" for second, rate in enumerate(steps)]
    rates.write_text("\n".join(["t,r,s", *lines]))

    def pass_time(step: str, batch: int) -> None:
        clock.advance(BATCH_S if step == "after operate" else 0.0)

    clocked = type("Clocked", (Threads,), {"clock": clock})
    with schedule.using(clocked()):
        place = Place.at(None, spark)
        query = tmp_path / "join.sql"
        query.write_text(JOIN.format(rates=rates))
        planning = PlanOptions(JoinOptions("scan"))
        plan = plan_for(read_query(QueryText.of_file(str(query)), [], []), place, planning)
        policy = model(maximum=2, upper=0.004, lower=0.002)
        options = RunOptions(instances=1, policy=policy)
        loop = prepare(plan, place, {None: NothingSink()}, options, observer=pass_time)
        while loop.step() is not None or not loop.manifest.finished:
            clock.advance(PERIOD_S - BATCH_S)
        loop.close()
    summary = loop.summary.as_dict()
    assert [e["instances"] for e in summary["epochs"]] == [1, 2, 1]
    up, down = (e for e in summary["epochs"] if e.get("by") == "policy model")
    assert "comparisons/s: work for " in up["why"]
    assert up["why"].endswith("upper bound 0.004: 1 -> 2 instances")
    assert down["why"].endswith("lower bound 0.002: 2 -> 1 instance")
    (judged,) = summary["saso"].values()
    assert judged["switches"] == 2
