"""What the loop observes of each batch: who was busy for which share of the time, and with what."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from tests.driver.scene import drain, loop_of, memory, plan_of, table
from tests.driver.test_bucket_load import BUCKETS, Clocked, Costly, bucket, process_plan
from tidegate import schedule
from tidegate.driver.loop import Loop
from tidegate.driver.report.observe import waiting_rows
from tidegate.elastic.request import Request, Scale
from tidegate.gate.backlog import Backlog

KEYS = "abcdefgh"
ROWS = [(t / 10, KEYS[t % 8], t % 3) for t in range(160)]
COUNTS = "SELECT k, COUNT(*) AS n FROM s [RANGE 2 SECONDS] GROUP BY k"


def bucket_loads(loop: Loop) -> list[float]:
    (subquery,) = loop.pipeline.subqueries
    return list(loop.pipeline.subqueries.loads(subquery.name))


def test_buckets_add_up_to_instances_and_instances_to_what_was_measured(tmp_path: Path) -> None:
    loop = loop_of(plan_of(COUNTS), [memory(*ROWS)], tmp_path, instances=3, batch_rows=40)
    assert loop.books.load.observed == ()
    batches = 0
    while (report := loop.step()) is not None:
        batches += 1
        (seen,) = loop.books.load.observed
        assert (seen.subquery, seen.batch) == ("aggregate", report.batch)
        busy = np.bincount(seen.mapping.owner_array, weights=seen.buckets, minlength=3)
        assert busy.tolist() == pytest.approx([load.cpu_s for load in seen.instances])
        measured = sum(c["cpu_us"] + c["map_cpu_us"] for c in report.instance_counts) / 1e6
        assert sum(load.cpu_s for load in seen.instances) == pytest.approx(measured)
        assert [x.outputs for x in seen.instances] == [c["outputs"] for c in report.instance_counts]
        assert seen.seconds == report.seconds
        assert seen.period_s >= seen.seconds > 0
    assert batches == 4
    loop.close()


def test_utilisation_is_the_busy_share_of_the_time_since_the_batch_before(tmp_path: Path) -> None:
    """Where a batch waited for its input, the wait counts too."""
    clock, source = Costly.clock, memory(*((t, "a", 2) for t in range(6)))
    with schedule.using(Clocked()):
        loop = loop_of(process_plan(), [source], tmp_path, clock=clock, instances=1, batch_rows=3)
        assert drain(loop) == 2
        (second,) = loop.books.load.observed
        assert (second.seconds, second.period_s) == (9.0, 9.0), "3 tuples of 2 s, 3 timers of 1 s"
        assert second.utilisation.tolist() == [1.0]
        clock.advance(14)
        source.append(table((9, "a", 1)))
        loop.step()
        (third,) = loop.books.load.observed
        assert third.seconds == 3.0, "the last of those before, and its timer"
        assert third.period_s == 14.0 + 3.0
        assert third.utilisation.tolist() == [3 / 17]
        assert loop.summary.as_dict()["load"]["process"]["utilisation"] == [
            pytest.approx(0.5, abs=0.4)
        ]
        loop.close()


def test_the_bucket_of_a_hot_key_is_told(tmp_path: Path) -> None:
    """The time of objects, over all time; the hottest first."""
    clock, rows = Costly.clock, [(t, "a" if t % 4 else KEYS[t // 4], 3) for t in range(32)]
    with schedule.using(Clocked()):
        loop = loop_of(process_plan(), [memory(*rows, end=True)], tmp_path, clock=clock)
        load = loop.run().as_dict()["load"]["process"]
    hot, *others = load["hottest_buckets"]
    (seen,) = loop.books.load.observed
    assert hot == {"bucket": bucket("a"), "instance": seen.mapping.owners[hot["bucket"]]} | {
        "utilisation": hot["utilisation"]
    }
    assert hot["utilisation"] >= 0.78, "25 of 32 tuples"
    assert len(others) in (3, 4)
    assert max(other["utilisation"] for other in others) <= 0.22
    assert sum(load["utilisation"]) == pytest.approx(1, abs=1e-3)
    assert load["imbalance"] == pytest.approx(max(load["utilisation"]) * 2 - 1, abs=1e-3)


def test_loads_stay_with_buckets_across_a_switch_and_begin_anew_with_a_run(
    tmp_path: Path,
) -> None:
    source, plan = memory(*ROWS), plan_of(COUNTS)
    loop = loop_of(plan, [source], tmp_path, batch_rows=80, buckets=BUCKETS)
    assert bucket_loads(loop) == [1.0] * BUCKETS
    loop.step()
    before = bucket_loads(loop)
    assert sum(before) > 0
    loop.controls.ask(Request(Scale(3)))
    loop.step()
    (seen,) = loop.books.load.observed
    assert seen.mapping.instances == 3
    load = loop.summary.as_dict()["load"]["aggregate"]
    assert len(load["utilisation"]) == 3
    assert sum(load["utilisation"]) == pytest.approx(sum(bucket_loads(loop)), abs=1e-3)
    for now, was in zip(bucket_loads(loop), before, strict=True):
        assert now > 0 or was == 0, "what it had counts still"
    loop.close()
    kept = pickle.loads(pickle.dumps(loop.summary))
    assert kept.as_dict()["load"] == loop.summary.as_dict()["load"] != {}
    again = loop_of(plan, [source], tmp_path, batch_rows=80, buckets=BUCKETS)
    assert bucket_loads(again) == [1.0] * BUCKETS
    assert again.summary.as_dict()["load"] == {}
    source.append(table((17, "a", 1)))
    again.step()
    assert sum(bucket_loads(again)) > 0
    again.close()


@pytest.mark.parametrize(
    ("counts", "expected"),
    [((0, 0, 0), 0), ((7, 0, 0), 7), ((7, 9, 0), 7), ((0, 9, 0), None), ((0, 0, 2), None)],
)
def test_the_backlog_is_in_tuples_where_that_is_known(
    counts: tuple[int, int, int], expected: int | None
) -> None:
    units = dict(zip(("rows", "bytes", "files"), counts, strict=True))
    assert waiting_rows(Backlog(units)) == expected
    assert waiting_rows(None) is None
