"""What a calibration says of the work at given rates, against what the engine counts."""

from __future__ import annotations

import pytest

from tidegate.model.cost.sample import BatchSample, WorkCounts
from tidegate.plan.join.method import JoinOptions
from tidegate.plan.options import PlanOptions
from tidegate.plan.physical import Plan
from tidegate.session.calibration.calibrate import calibrate, model_of
from tidegate.session.place import NO_SPARK, Place
from tidegate.session.planning import plan_for
from tidegate.session.script import streams_of
from tidegate.sql.bind import bind
from tidegate.sql.script import read_script

RATE = 100.0
"""Of every stream, in event time."""

JOIN = """
CREATE STREAM a FROM 'generator:calls?rows=3000&rate=100&keys=40&seed=1' TIME ts;
CREATE STREAM b FROM 'generator:calls?rows=3000&rate=100&keys=40&seed=2' TIME ts;
SELECT a.src, b.dst FROM a [RANGE 2 SECONDS] JOIN b [RANGE 4 SECONDS]
ON a.lat BETWEEN b.lat - 0.01 AND b.lat + 0.01 WHERE a.district < 100
"""
CHAIN = """
CREATE STREAM calls FROM 'generator:calls?rows=6000&rate=100&keys=40' TIME ts;
CREATE STREAM seconds AS
SELECT district, COUNT(*) AS n FROM calls [RANGE 2 SECONDS SLIDE 1 SECOND] GROUP BY district;
SELECT district, MAX(n) AS most FROM seconds [RANGE 3 SECONDS] WHERE n > 1 GROUP BY district
ORDER BY most DESC LIMIT 2
"""
PLACE = Place(NO_SPARK)


def planned(text: str, method: str = "auto") -> Plan:
    script = read_script(text)
    outputs = bind(script, streams_of(script, uris={}, times={}))
    return plan_for(outputs, PLACE, PlanOptions(JoinOptions(method, "auto")))


def a_second(samples: tuple[BatchSample, ...]) -> WorkCounts:
    """What batches did in a second of event time, when windows have filled."""
    full = [s for s in samples[len(samples) // 3 :] if s.event_s is not None]
    seconds = sum(s.event_s or 0.0 for s in full)
    sums = (sum(getattr(s, n) for s in full) for n in ("tuples", "compared", "outputs"))
    return WorkCounts(*(count / seconds for count in sums))


@pytest.mark.parametrize("method", ["scan", "auto"])
def test_a_join_at_the_rates_that_it_had(method: str) -> None:
    plan = planned(JOIN, method)
    found = calibrate(plan, PLACE, rows=6_000)
    (join,) = model_of(found, plan, None).subqueries
    assert join.feeds == ("a", "b")
    expected = join.workload.counts([RATE, RATE])
    counted = a_second(found.subqueries[0].estimator.samples)
    assert expected.tuples == pytest.approx(counted.tuples, rel=0.05)
    assert expected.compared == pytest.approx(counted.compared, rel=0.1)
    assert expected.outputs == pytest.approx(counted.outputs, rel=0.15)


def test_aggregates_at_the_rates_that_they_had() -> None:
    """The second takes the groups of the first that its filter reads, before it."""
    plan = planned(CHAIN)
    found = calibrate(plan, PLACE, rows=6_000)
    first, second = model_of(found, plan, None).subqueries
    assert (first.feeds, second.feeds) == (("calls",), ("seconds",))
    assert (first.last, second.last) == (False, True)
    groups = first.workload.counts([RATE])
    counted = a_second(found.subqueries[0].estimator.samples)
    assert groups.outputs == pytest.approx(counted.outputs, rel=0.05)
    taken = second.workload.counts([groups.outputs * second.taken])
    counted = a_second(found.subqueries[1].estimator.samples)
    assert taken.tuples == pytest.approx(counted.tuples, rel=0.1)
    assert taken.outputs == pytest.approx(counted.outputs, rel=0.25)
    assert counted.outputs * 3 > 20, "groups cost, also where only two of them come out"
    sizes = {sample.tuples for sample in found.beside.samples}
    assert max(sizes) > 50 * min(sizes), "a batch can be told from its tuples"
    assert found.beside.batches == found.batches
