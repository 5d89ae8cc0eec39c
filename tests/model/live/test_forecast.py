"""Predictions beside measurements, over live input and a clock that the test sets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tidegate as tg
from tests.driver.scene import loop_of, memory, plan_of
from tidegate import schedule
from tidegate.driver.connection import Connection
from tidegate.driver.loop import Loop
from tidegate.elastic.by_model import ByModel
from tidegate.model.control.saso import Saso
from tidegate.model.live.expectation import Expectation, ForecastSecond, ForecastSummary, time_text
from tidegate.plan.lowering.lower import lower
from tidegate.query.output import Output
from tidegate.schedule import Threads
from tidegate.source.generator import open_generator
from tidegate.testing import ManualClock

CLOCK = ManualClock()


class Slow(tg.Process):
    """Takes some milliseconds for a tuple."""

    output = {"v": "bigint"}  # noqa: RUF012
    ms = 0

    def on_tuple(self, tuple: Any, keys: list[str]) -> None:
        CLOCK.advance(self.ms / 1e3)


class FourMs(Slow):
    ms = 4


class TenMs(Slow):
    ms = 10


class Slower(Slow):
    """Takes four times as long from the 240th tuple on, of all its objects."""

    seen = 0

    def on_tuple(self, tuple: Any, keys: list[str]) -> None:
        Slower.seen += 1
        CLOCK.advance(0.001 if Slower.seen < 240 else 0.004)


class Clocked(Threads):
    """The threads of the system, with the clock that is advanced."""

    clock = CLOCK


def run_of(
    process: type[Slow],
    tenths: list[int],
    folder: Path,
    after_s: float = 0.0,
    **options: Any,
) -> tuple[Loop, list[Expectation]]:
    """A live stream with so many tuples in each tenth of a second, and what was expected of it.

    `after_s` is what batches are said to have taken after their commits before it.
    """
    expected: list[Expectation | None] = []
    lines = [f"{n / 10},{rows * 10}" for n, rows in enumerate(tenths)]
    (folder / "rates.csv").write_text("\n".join(["t,rate", *lines]))
    stream = tg.Session(master="none").stream("generator:r?rows=1", time="ts", name="s")
    plan = lower((Output(None, stream.process(process, keys="x").node),))
    with schedule.using(Clocked()):
        uri = f"generator:r?pace={folder}/rates.csv&domain=8"
        source = Connection(0, open_generator(uri, "s", "ts", CLOCK))
        given = {"instances": 1, "trigger_s": 0.1, **options}
        loop = loop_of(plan, [source], folder / "checkpoint", None, CLOCK, **given)
        loop.books.forecast._after_s = after_s
        while loop.step() is not None or not loop.manifest.finished:
            expected.append(loop.books.forecast.newest())
            loop.books.load.waited()
            CLOCK.advance(max(loop._started_at + 0.1 - CLOCK.now(), 0.001))
        loop.close()
    return loop, [one for one in expected if one is not None]


def test_a_query_has_the_load_that_its_rates_and_costs_come_to(tmp_path: Path) -> None:
    loop, _ = run_of(FourMs, [4, 6, 8, 6] * 15, tmp_path)
    status = loop.summary.as_dict()["predicted"]
    assert status["load"] == pytest.approx(60 * 0.004, rel=0.1)
    (of,) = status["subqueries"].values()
    assert of["rates"] == [pytest.approx(60, rel=0.1)]
    assert of["throughput"] == pytest.approx(of["measured_throughput"], rel=0.1)
    assert of["utilisation"] == pytest.approx(0.24, rel=0.1)
    constant = of["constants"]["tuple_s"]
    assert constant["low"] <= 0.004 <= constant["high"]
    assert status["over_run"]["seconds"] >= 1
    text = loop.summary.text()
    assert "model: mean latency" in text
    assert "median error by the second" in text


def test_a_newest_second_without_a_prediction_leaves_what_is_known_of_the_run() -> None:
    past = [ForecastSecond(latency_s=0.2, measured_s=0.1, throughput=90.0, measured=100.0)]
    outcome = ForecastSummary.of(None, past, {})
    found = outcome.as_dict()
    assert found is not None
    over_run = found.pop("over_run")
    assert (over_run["latency_error"], over_run["throughput_error"]) == (1.0, 0.1)
    assert set(found.values()) == {None}
    assert "median error by the second 100%" in outcome.lines()[0], "the terminal has it too"
    assert ForecastSummary.of(None, [], {}).as_dict() is None


def test_a_latency_of_nothing_is_no_prediction(tmp_path: Path) -> None:
    loop, expected = run_of(FourMs, [4, 6, 8, 6] * 15, tmp_path, after_s=1e6)
    assert expected == []
    assert loop.summary.as_dict()["predicted"] is None
    assert "model" not in loop.summary.text()


def test_a_query_that_falls_behind_is_predicted_to(tmp_path: Path) -> None:
    _, expected = run_of(TenMs, [2, 3, 5, 4] * 12 + [16] * 22, tmp_path)
    found = max(expected, key=lambda one: one.load)
    assert found.load == pytest.approx(1.6, rel=0.2)
    (of,) = found.subqueries.values()
    assert of.throughput == pytest.approx(100, rel=0.1), "what it can do, and not what there is"
    assert found.latency_s > 0.1


def test_a_machine_that_becomes_slower_is_noticed_within_seconds(tmp_path: Path) -> None:
    """What tuples cost is known from minutes; the prediction has the last seconds as well."""
    _, expected = run_of(Slower, [4, 6, 8, 6] * 24, tmp_path)
    assert expected[0].slowdown == pytest.approx(1, abs=0.05)
    last = expected[-1]
    (of,) = last.subqueries.values()
    assert of.constants.tuple_s.value < 0.003, "it has not seen many of them"
    assert last.slowdown > 1.3
    assert last.latency_s == pytest.approx(last.measured_s, rel=0.05)


def test_while_a_policy_decides_it_is_judged(tmp_path: Path) -> None:
    policy = ByModel(interval=0.5)
    tenths = [4, 6, 8, 7] * 8 + [20, 22, 24] * 8
    loop, _ = run_of(FourMs, tenths, tmp_path, policy=policy, slots=4)
    summary = loop.summary.as_dict()
    switches = [e["why"] for e in summary["epochs"] if e.get("by") == "policy model"]
    assert switches, "0.9 of the time is too much"
    assert "tuples/s: work for " in switches[0]
    (judged,) = summary["saso"].values()
    assert judged["switches"] == len(switches)
    assert "scaling: " in loop.summary.text()


def test_time_between_batches_is_theirs_unless_it_was_a_wait(tmp_path: Path) -> None:
    rows = [(n, "a", 1) for n in range(1, 9)]
    clock = ManualClock()
    loop = loop_of(plan_of("SELECT k FROM s"), [memory(*rows)], tmp_path, None, clock, batch_rows=1)
    found = []
    for waits in (False, False, True):
        clock.advance(0.005)
        if waits:
            loop.books.load.waited()
        assert loop.step() is not None
        (seen,) = loop.books.load.observed
        found.append((seen.between_s, round(seen.period_s - seen.seconds, 6)))
    assert found == [(0.0, 0.0), (pytest.approx(0.005), 0.005), (0.0, 0.005)]
    loop.close()


def test_nothing_is_predicted_of_input_that_is_not_live(tmp_path: Path) -> None:
    plan = plan_of("SELECT k FROM s")
    loop = loop_of(plan, [memory((1, "a", 1), end=True)], tmp_path)
    assert loop.step() is not None
    assert loop.summary.as_dict()["predicted"] is None
    assert loop.summary.as_dict()["saso"] is None
    assert "model" not in loop.summary.text()
    loop.close()


def test_errors_are_medians_of_seconds() -> None:
    past = [
        ForecastSecond(0.1, 0.1, 50, 100),
        ForecastSecond(0.2, 0.1, 99, 100),
        ForecastSecond(0.11, 0.1, 101, 100),
    ]
    found = ForecastSummary.of(None, past, {})
    assert found.errors == (pytest.approx(0.1), pytest.approx(0.01))
    assert (found.latency_s, found.seconds) == (0.11, 3)


def test_times_are_told_with_few_digits() -> None:
    told = [time_text(s) for s in (0.0, 1.634e-9, 2.5e-10, 12.34e-6, 0.0043, 0.1234, 2.1, 999.6e-6)]
    assert told == ["0", "1.6 ns", "0.25 ns", "12.3 us", "4.3 ms", "123 ms", "2.1 s", "1.0 ms"]


def test_how_several_subqueries_were_scaled_is_said_by_name() -> None:
    judged = Saso(
        1,
        0,
        enough=1.0,
        distance=0.0,
        latency_mean_s=None,
        latency_max_s=None,
        settling_s=None,
        overshoot=None,
        undershoot=None,
    )
    lines = ForecastSummary(saso={"aggregate": judged, "merge": judged}).lines()
    assert [line.partition(":")[0] for line in lines] == [
        "scaling of aggregate",
        "scaling of merge",
    ]
