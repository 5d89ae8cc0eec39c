"""A sample: which tuples each subquery took, and whose work costs most."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidegate.errors import UnavailableError
from tidegate.model.speed_up import SpeedUp
from tidegate.plan.lowering.lower import lower
from tidegate.plan.physical import SPARK, Plan
from tidegate.query.node.node import StreamDef
from tidegate.query.output import single
from tidegate.session.calibration.sample_run import SampleLoad, in_large_batches, sample_run
from tidegate.source.registry import open_uri
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script

URI = "generator:calls?rows=6000&rate=100&keys=50"
DISTRICTS = "SELECT district, COUNT(*) AS n FROM calls [RANGE 1 SECOND] GROUP BY district"


def planned(text: str) -> Plan:
    schema = open_uri(URI, "calls", "ts", False).schema
    calls = StreamDef("calls", (URI,), "ts", 0, None, schema)
    return lower(single(bind(read_script(text), {"calls": calls})))


def test_tuples_are_those_that_a_subquery_took() -> None:
    """The second takes the groups of the windows that ended before the newest of the rows."""
    plan = planned(f"SELECT MAX(n) AS most FROM ({DISTRICTS}) [RANGE 2 SECONDS]")
    found = sample_run(plan, 1_000)
    assert (found.rows, found.batches) == (1_000, 2)
    first, second = found.loads
    assert (first.subquery, first.tuples) == ("aggregate", 1_000)
    assert (second.subquery, second.tuples) == ("aggregate2", ended_groups(1_000))


def ended_groups(rows: int) -> int:
    """Districts by second, of the first rows, in the seconds that are over with the last row."""
    (source,) = open_uri(URI, "calls", "ts", False).discover()
    source.extend(rows)
    read = source.reader(0, rows).read(["ts", "district"]).table
    groups = [(t.replace(microsecond=0), d) for t, d in zip(*read.to_pydict().values())]
    last = groups[-1][0]
    return len({group for group in groups if group[0] < last})


def test_a_sample_larger_than_the_input_takes_it_all() -> None:
    plan = planned("SELECT COUNT(*) AS n FROM calls [RANGE 1 HOUR] WHERE lat > 0")
    found = sample_run(plan, 50_000)
    assert (found.rows, found.batches) == (6_000, 1)
    assert [load.tuples for load in found.loads] == [6_000]


def test_a_join_of_all_pairs_costs_more_than_a_count_of_few_rows() -> None:
    plan = planned(
        "SELECT COUNT(*) AS n FROM (SELECT a.src FROM calls AS a [RANGE 30 SECONDS] "
        "JOIN calls AS b [RANGE 30 SECONDS] ON a.lat + b.lon > 99) [RANGE 1 SECOND]"
    )
    join, aggregate = sample_run(plan, 6_000).loads
    assert (join.subquery, join.tuples) == ("join", 12_000)
    assert aggregate.tuples == 0
    assert join.cpu_us > 2 * aggregate.cpu_us > 0


def test_the_cost_of_a_tuple() -> None:
    assert SampleLoad("join", 4, 10).cost_us == 2.5
    assert SampleLoad("join", 0, 10).cost_us == 0
    assert SampleLoad("join", 4, 10).with_more(1, 5) == SampleLoad("join", 5, 15)


def test_what_only_spark_evaluates_cannot_be_sampled() -> None:
    plan = planned(DISTRICTS)
    (subquery,) = plan.subqueries
    (prefix,) = subquery.prefixes
    in_spark = replace(prefix, engine=SPARK, reason="SOUNDEX needs Spark")
    with pytest.raises(UnavailableError, match="runs without Spark; got SOUNDEX needs Spark"):
        sample_run(replace(plan, subqueries=(replace(subquery, prefixes=(in_spark,)),)))


def test_large_batches_are_worked_out_from_two_smaller_ones() -> None:
    """10 ms for any batch and 1 ms for a thousand rows are serial; 3 and 20 ms are work."""
    small, large = SpeedUp(0.015, 0.103), SpeedUp(0.060, 1.003)
    found = in_large_batches((5_000, small), (50_000, large))
    assert found.serial_s == pytest.approx(1.010)
    assert found.work_s == pytest.approx(20.003)
    assert in_large_batches((5_000, large), (50_000, small)) == large, "costs are not negative"


def test_batches_of_one_size_do_not_say_what_is_serial() -> None:
    assert in_large_batches((20, SpeedUp(0.01, 0.02)), (20, SpeedUp(0.01, 0.02))).serial_s == 0


def test_a_sample_says_what_more_instances_could_bring() -> None:
    plan = planned("SELECT COUNT(*) AS n FROM calls [RANGE 1 SECOND] GROUP BY district")
    found = sample_run(plan, 6_000).speed_up
    assert found.work_s > 0
    assert found.serial_s == 0, "two batches of 3,000 rows are no larger than the small one"
