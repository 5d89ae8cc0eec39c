"""The serial time of a run: with spans that were made up, and beside one that ran."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tidegate.cli.main import invoke
from tidegate.driver.metric.serial import METRICS, SpeedUpFold, TaskTime, task_times
from tidegate.driver.report.metrics import Summary


def outcome(cpu_ms: float = 0.0, map_cpu_ms: float = 0.0, **spans_ms: float) -> Any:
    """What an instance reports; `map_read` is the span `map read`."""
    counts = {"cpu_us": cpu_ms * 1e3, "map_cpu_us": map_cpu_ms * 1e3}
    return SimpleNamespace(
        spans_ms={name.replace("_", " "): ms for name, ms in spans_ms.items()}, counts=counts
    )


def batch(wall_ms: float, operate_ms: float, **subqueries: list[Any]) -> Any:
    """A batch of these subqueries, with the outcomes of their instances."""
    return SimpleNamespace(
        seconds=wall_ms / 1e3,
        spans=SimpleNamespace(spans_ms={"gate": 5.0, "operate": operate_ms, "a new step": 7.0}),
        plan=SimpleNamespace(subqueries=[SimpleNamespace(name=name) for name in subqueries]),
        work=SimpleNamespace(outcomes=list(subqueries.values())),
    )


def seen(*batches: Any) -> dict[str, Any]:
    """What a run of these batches says, without the first."""
    fold = SpeedUpFold()
    for one in (batches[0], *batches):
        fold.add(task_times(one))
    (found,) = fold.as_dict("speed_up", ()).values()
    return dict(found)


def test_all_but_the_jobs_of_tasks_is_serial() -> None:
    """Two instances: 40 ms of jobs in 100 ms; also a step that nobody has listed is serial."""
    first = outcome(30, 10, map_read=10, instance_match=31, spark_prepare=5, spark_map_job=8)
    second = outcome(28, 0, instance_match=29, spark_instance_job=32, spark_finish=9)
    found = seen(batch(100, 60, join=[first, second]))
    assert found["serial_s"] == pytest.approx(0.060)
    assert found["serial_time"] == pytest.approx(0.6)
    assert found["work_s"] == pytest.approx(0.068), "CPU time, which does not count waiting"
    assert found["serial_share"] == pytest.approx(60 / 128, abs=1e-4)
    assert found["instances"] == 2
    assert found["now"] == pytest.approx(128 / 94, abs=1e-3)
    assert found["limit"] == pytest.approx(128 / 60, abs=1e-3)
    assert found["subqueries"] == {"join": {k: v for k, v in found.items() if k != "subqueries"}}


def test_a_job_with_little_in_it_is_serial_but_for_that() -> None:
    """Starting tasks takes 60 ms of a job; the only task works for 4 ms."""
    one = outcome(3, 0, instance_match=4, spark_batch_job=64)
    assert seen(batch(80, 66, join=[one]))["serial_s"] == pytest.approx(0.076)


def test_without_jobs_tasks_are_at_work_in_operate_at_most() -> None:
    """In one process tasks run in turn; those of a shuffle run side by side, and have no span."""
    here = [outcome(20, 0, instance_match=20), outcome(10, 0, instance_match=10)]
    assert seen(batch(50, 32, join=here))["serial_s"] == pytest.approx(0.020)
    apart = [outcome(90, 0, instance_match=90) for _ in range(4)]
    assert seen(batch(150, 110, join=apart))["serial_s"] == pytest.approx(0.040)


def test_for_a_subquery_the_others_are_serial() -> None:
    inner, outer = outcome(30, 0, instance_match=30), outcome(50, 0, instance_close=50)
    found = seen(batch(100, 90, inner=[inner], outer=[outer]))
    assert found["serial_s"] == pytest.approx(0.020)
    parts = found["subqueries"]
    assert parts["inner"]["serial_s"] == pytest.approx(0.070)
    assert parts["inner"]["limit"] == pytest.approx(1 / 0.7, abs=1e-3)
    assert parts["outer"]["limit"] == pytest.approx(2.0)
    line = METRICS[0].text({"speed_up": found})
    assert line == (
        "serial 20% of the time: more instances are at most 5.0 times as fast; "
        "inner alone at most 1.4 times; outer alone at most 2.0 times"
    )


def test_what_runs_beside_tasks_is_not_serial() -> None:
    """Of 50 ms of a batch 45 have tasks, whatever the driver does beside them."""
    one = outcome(80, 0, instance_match=88, spark_instance_job=45)
    two = outcome(85, 0, instance_match=90)
    found = seen(*[batch(50, 50, join=[one, two])] * 3)
    assert found["serial_s"] == pytest.approx(0.015)
    line = METRICS[0].text({"speed_up": found})
    assert line == (
        "serial 10% of the time (2.9% with one instance): "
        "2 instances are at most 1.9 times as fast as one, more at most 34.0 times"
    )


def test_tasks_of_all_batches_may_leave_nothing_serial() -> None:
    fold = SpeedUpFold()
    for _ in range(3):
        fold.add({"join": TaskTime(0.1, 0.12, 0.3, 4)})
    found = fold.as_dict("speed_up", ())
    assert found["speed_up"]["limit"] is None
    assert METRICS[0].text(found).endswith("more without a limit")


def test_the_first_batch_does_not_count() -> None:
    fold = SpeedUpFold()
    assert Summary().as_dict()["speed_up"] is None
    fold.add({"join": TaskTime(9.0, 0.1, 0.1, 1)})
    assert fold.as_dict("speed_up", ()) == {"speed_up": None}
    fold.add({"join": TaskTime(0.2, 0.1, 0.1, 1)})
    assert fold.as_dict("speed_up", ())["speed_up"]["serial_s"] == pytest.approx(0.1)


def test_tasks_that_merge_the_output_are_at_work_too() -> None:
    """The driver waits 30 ms for them and does 10 ms of that by itself."""
    one = outcome(50, 0, instance_match=40, spark_instance_job=42, merge_write=20, spark_finish=30)
    assert seen(batch(100, 80, join=[one]))["serial_s"] == pytest.approx(0.040)


QUERY = """
CREATE STREAM calls FROM 'generator:calls?rows=6000&rate=100&keys=40' TIME ts;
CREATE STREAM counted AS
SELECT district, COUNT(*) AS n FROM calls [RANGE 1 SECOND] GROUP BY district;
SELECT MAX(n) AS most FROM counted [RANGE 4 SECONDS]
"""


def test_a_run_says_what_more_instances_could_bring(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    query, summary = tmp_path / "q.sql", tmp_path / "summary.json"
    query.write_text(QUERY)
    given = ["--master", "none", "--batch-rows", "1000", "--out", str(tmp_path / "out")]
    assert invoke(["run", str(query), *given, "--instances", "3", "--summary", str(summary)]) == 0
    (line,) = [one for one in capsys.readouterr().err.splitlines() if one.startswith("serial ")]
    said = json.loads(summary.read_text())
    found = said["speed_up"]
    later_s = said["seconds"] - said["first_batch_ms"] / 1e3
    assert 0 < found["serial_s"] < later_s
    # In one process tasks run in turn: all time that is not theirs is serial.
    assert found["serial_s"] + found["work_s"] == pytest.approx(later_s, rel=0.2)
    assert found["instances"] == 3
    assert 1 < found["now"] < found["limit"]
    assert list(found["subqueries"]) == ["counted", "aggregate2"]
    for name, one in found["subqueries"].items():
        assert found["serial_s"] < one["serial_s"] < later_s
        assert f"; {name} alone at most {one['limit']:.1f} times" in line
