"""The policy by model over joins that were made up: from rates alone to instances."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tidegate.elastic.by_model import ByModel
from tidegate.elastic.fixed import Fixed
from tidegate.elastic.policy import Policy
from tidegate.elastic.registry import of
from tidegate.elastic.request import Scale
from tidegate.elastic.threshold import Threshold
from tidegate.elastic.turn import LastTurn
from tidegate.errors import OptionError
from tidegate.model.cost.calibration import JoinCosts
from tidegate.model.live.rates import ArrivalCounts, Rates
from tidegate.model.live.subquery import LiveSubquery
from tidegate.model.observation import InputLoad
from tidegate.model.operation import Lookback, Operation
from tidegate.model.sizing.calibration_file import MeasuredSubquery, QueryCalibration
from tidegate.route.mapping import even
from tidegate.testing import DrivenBatch, drive, drive_join, switches

COSTS = JoinCosts(alpha=3e-6, beta=6e-6, sigma=0.01, batch_s=0.004, tuple_s=2e-5)
WINDOW = Lookback(seconds=10.0)
PHASES = [(100, 100)] * 20 + [(300, 300)] * 25 + [(150, 150)] * 25


def needed(rate: float, window: float = WINDOW.seconds, upper: float = 0.8) -> int:
    """The fewest instances for two streams of a rate whose windows are full."""
    work = 2 * rate * rate * window * COSTS.comparison_s / (1 - 2 * rate * COSTS.tuple_s)
    return int(work / upper) + 1


@cache
def over_phases(policy: Policy) -> list[DrivenBatch]:
    return drive_join(policy, PHASES, window=WINDOW, costs=COSTS)


def whys(driven: Sequence[DrivenBatch]) -> list[str]:
    return [request.why for one in driven for request in one.requests]


@pytest.mark.parametrize("ahead", [0.0, None], ids=["as in the paper", "looking ahead"])
def test_it_has_as_many_instances_as_rates_need_once_windows_are_full(ahead: float | None) -> None:
    driven = over_phases(ByModel(maximum=12, ahead=ahead))
    count = [one.instances for one in driven]
    assert count[19] == needed(100) == 1
    assert count[40] == needed(300) == 7
    assert set(count[58:]) == {needed(150)} == {2}
    calm = [one.waiting_s for one in (*driven[:20], *driven[23:])]
    assert max(calm) == 0.0, "it waits only until the rates have been seen"


def test_a_change_is_not_undone_by_the_next_batch() -> None:
    """Bursts of a second: each calls for more instances, and the second after it for fewer."""
    bursts = ([(60, 60)] * 12 + [(400, 400)]) * 6
    driven = drive_join(ByModel(maximum=8, ahead=0.0), bursts, window=WINDOW, costs=COSTS)
    asked = [
        (batch, one.requests[0].change.instances - one.instances)
        for batch, one in enumerate(driven)
        if one.requests and isinstance(one.requests[0].change, Scale)
    ]
    assert len(asked) > 6
    back = [b - a for (a, up), (b, down) in pairwise(asked) if up > 0 > down]
    assert back
    assert min(back) > 5
    assert min(b - a for (a, up), (b, down) in pairwise(asked) if up < 0 < down) > 2


@pytest.mark.parametrize("way", [1, -1])
def test_a_turn_waits_for_batches_and_intervals_with_the_new_mapping(way: int) -> None:
    (one,) = drive_join(Fixed(), [(10, 10)], window=WINDOW, costs=COSTS, instances=3)
    batches, intervals = (6, 4) if way > 0 else (3, 2)
    at = replace(one.observed, batch=10)
    turn = LastTurn().asked(replace(at, mapping=even(64, 3 - way)), 3)
    assert turn.allows(at, 3 + way), "further the same way at once"
    for passed in range(1, batches):
        turn = turn.after_interval(at)
        assert not turn.allows(replace(at, batch=10 + passed), 3 - way)
    assert turn.intervals >= intervals
    assert turn.after_interval(at).allows(replace(at, batch=10 + batches), 3 - way)
    other = replace(at, batch=20, mapping=even(64, 7))
    assert turn.after_interval(other) == LastTurn(), "somebody else has changed it"


def test_it_switches_less_often_looking_ahead_and_than_thresholds_do() -> None:
    """The thresholds of the other policy are those of the quotas."""
    found = [
        switches(over_phases(policy))
        for policy in (
            ByModel(maximum=12),
            ByModel(maximum=12, ahead=0.0),
            Threshold(maximum=12, upper=0.8, target=0.75, lower=0.6, cooldown=0),
        )
    ]
    assert found[0] < found[1]
    assert found[0] < found[2]


def test_it_goes_by_rates_and_not_by_how_busy_instances_are() -> None:
    """The work of a jump is answered after a second, though instances are as busy as they can."""
    driven = over_phases(ByModel(maximum=12))
    assert [one.instances for one in driven[19:22]] == [1, 1, 6]
    assert driven[20].utilisation <= 1.0, "an instance cannot be busier than all the time"


def test_the_reason_has_rates_work_and_bound() -> None:
    first, *_, last = whys(over_phases(ByModel(maximum=12)))
    number = r"\d+\.\d\d"
    assert re.fullmatch(
        rf"300 and 300 tuples/s, 720\.0 k comparisons/s: work for {number} instances, "
        rf"soon {number}, upper bound 0\.80: 1 -> 6 instances",
        first,
    ), first
    assert re.search(rf"work for {number} instances, lower bound {number}: . -> 2 ", last), last


def test_windows_of_tuples_are_full_and_stay_so() -> None:
    rates = [(100, 100)] * 40 + [(200, 200)] * 5
    driven = drive_join(ByModel(maximum=12), rates, window=Lookback(rows=1_500), costs=COSTS)
    work = 2 * 200 * 1_500 * COSTS.comparison_s
    assert driven[-1].instances == int(work / 0.8) + 1 == 3
    assert driven[38].instances == 2


def test_outputs_that_become_frequent_are_followed() -> None:
    costs = [COSTS] * 20 + [replace(COSTS, sigma=1.0)] * 25
    driven = drive_join(ByModel(maximum=12), [(100, 100)] * 45, window=WINDOW, costs=costs)
    assert driven[19].instances == 1
    assert driven[-1].instances == needed(100) + 2, "three times as much for each comparison"


def test_small_batches_are_counted_until_the_interval_is_over() -> None:
    driven = drive_join(
        ByModel(maximum=12),
        [(100, 100)] * 300 + [(300, 300)] * 300,
        window=Lookback(seconds=3.0),
        costs=replace(COSTS, alpha=1e-5),
        period_s=0.01,
    )
    assert driven[299].instances == 1
    changed = [i for i, one in enumerate(driven) if one.requests]
    assert all(b - a >= 90 for a, b in pairwise(changed)), "once a second at most"
    assert driven[-1].instances > 4


def test_tuples_that_wait_in_fact_count_where_costs_are_known_too_low() -> None:
    """By its costs a query keeps up that falls behind: something else takes the time."""
    policy, memory, asked = ByModel(maximum=12), {}, []
    for one in over_phases(policy)[:20]:
        usual = replace(one.observed, backlog=90)  # of 200 tuples a second
        decision = policy.decide((usual,), memory)
        assert not decision.requests, "what came during a batch always waits"
        late = policy.decide((replace(usual, backlog=900),), memory)
        asked += [request.why for request in late.requests]
        memory = dict(decision.memory)
    assert ", 800 too many wait: work for " in asked[-1]
    assert asked[-1].endswith("1 -> 4 instances")


def test_a_latency_that_is_asked_for_takes_more_instances() -> None:
    costs = replace(COSTS, batch_s=0.02)
    rates = [(n, n) for n in (80, 90, 95) * 8]
    plain = drive_join(ByModel(maximum=12), rates, window=WINDOW, costs=costs)
    quick = drive_join(ByModel(maximum=12, latency=0.055), rates, window=WINDOW, costs=costs)
    assert (plain[-1].instances, quick[-1].instances) == (1, 2)
    assert whys(quick)[-1].endswith("latency asks for 2: 1 -> 2 instances")
    never = drive_join(ByModel(maximum=12, latency=0.01), rates, window=WINDOW, costs=costs)
    assert never[-1].instances == 1, "no number of instances has it"


def test_other_queries_are_scaled_by_tuples() -> None:
    """An aggregate of which a tuple takes a millisecond; each subquery has its own work."""
    asked, memory = [], {}
    (driven,) = drive(ByModel(), [[0.1] * 8], instances=2)
    for batch in range(12):
        observed = []
        for name, mean in (("one", 1_200), ("two", 100)):
            rate, count = mean * (8 + batch % 3) // 9, 2
            done_s = min(rate * 1e-3, count)
            load = replace(driven.observed.instances[0], cpu_s=done_s / count, tuples=rate)
            observed.append(
                replace(
                    driven.observed,
                    subquery=name,
                    batch=batch,
                    instances=(load,) * count,
                    seconds=0.01 + done_s / count,
                    inputs=(InputLoad(0, "s", "s", rate, rate),),
                    taken=round(done_s / 1e-3),
                    operation=Operation("aggregate"),
                    slots=4,
                )
            )
        decision = ByModel().decide(observed, memory)
        memory = dict(decision.memory)
        for request in decision.requests:
            asked.append((request.subquery, str(request.change), request.why))
    assert {(name, change) for name, change, _ in asked} == {("two", "scale 1")}
    assert asked[-1][2].startswith("111 tuples/s: work for 0.11 instances, lower bound 0.70: ")


def test_where_no_source_is_live_it_asks_for_nothing() -> None:
    """Files are read as fast as they can be: there are no rates."""
    (one, *_) = drive_join(ByModel(), [(900, 900)], window=WINDOW, costs=COSTS)
    still = tuple(replace(load, arrived=None) for load in one.observed.inputs)
    memory = {}
    for batch in range(20):
        seen = replace(one.observed, inputs=still, batch=batch)
        decision = ByModel(maximum=9).decide((seen,), memory)
        assert not decision.requests
        memory = dict(decision.memory)
    policy, (left, right) = ByModel(), one.observed.inputs
    said = [
        policy.remark((replace(one.observed, inputs=inputs),))
        for inputs in (still, (left, still[1]), (left, right))
    ]
    assert ["no source of it is live" in (said[0] or ""), said[2]] == [True, None]
    assert "not all sources of this query are live" in (said[1] or "")


def test_into_its_limits_at_once_and_never_out_of_them() -> None:
    rates = [(100, 100)] * 12
    few = drive_join(ByModel(minimum=3), rates, window=WINDOW, costs=COSTS, slots=5)
    assert few[-1].instances == 3
    assert whys(few) == ["fewer than the minimum of 3: 1 -> 3 instances"]
    many = drive_join(ByModel(maximum=2), rates, window=WINDOW, costs=COSTS, instances=4, slots=8)
    assert many[-1].instances == 1
    burst = drive_join(
        ByModel(), [(100, 100)] * 12 + [(900, 900)] * 3, window=WINDOW, costs=COSTS, slots=5
    )
    assert burst[-1].instances == 5, "no more than can run at once"


def test_rates_are_of_what_passes_filters_and_of_the_speed_of_event_times() -> None:
    rates = Rates()
    for _ in range(40):
        came = ArrivalCounts(1.0, (200.0, 100.0), (200.0, 100.0), (100.0, 100.0), event_s=10.0)
        rates = rates.after(came).closed((Lookback(seconds=60.0), Lookback(seconds=60.0)))
    assert rates.now == pytest.approx((100.0, 100.0), rel=0.01)
    assert rates.speed == pytest.approx(10.0, rel=0.01)
    window = Lookback(seconds=60.0).at_speed(rates.speed)
    r, s, step_s = rates.over((Lookback(seconds=60.0), Lookback(seconds=60.0)))
    assert window.contents(r, step_s)[-1] == pytest.approx(600.0, rel=0.02)
    assert len(rates.chunks) < 20
    assert np.array_equal(r[5:].round(), s[5:].round())


def test_long_windows_are_kept_in_few_numbers() -> None:
    window = Lookback(seconds=86_400.0)
    rates = Rates()
    for _ in range(1_000):
        rates = rates.after(ArrivalCounts(100.0, (5.0, 7.0), (5.0, 7.0))).closed((window, window))
    assert len(rates.chunks) <= 64
    r, s, step_s = rates.over((window, window))
    held = [float(window.contents(one, step_s)[-1]) for one in (r, s)]
    assert held == pytest.approx([0.05 * 86_400, 0.07 * 86_400], rel=0.03)
    assert Rates.restored(rates.recorded(), rates.open).now == rates.now


def test_with_a_calibration_it_decides_from_the_first_interval_on(tmp_path: Path) -> None:
    followed = LiveSubquery.of(over_phases(ByModel(maximum=12))[0].observed.operation)
    for one in over_phases(ByModel(maximum=12))[:20]:
        followed = followed.after(one.observed)
    known = MeasuredSubquery("join", "join", "scan", followed.estimator)
    query = QueryCalibration("f", 1, 20, 1, None, (known,), beside=followed.estimator, facts={})
    file = tmp_path / "known.json"
    file.write_text(json.dumps(query.recorded()))
    rates = [(300, 300)] * 4
    with_it, without = (
        drive_join(policy, rates, window=WINDOW, costs=COSTS)
        for policy in (ByModel(maximum=12, calibration=str(file)), ByModel(maximum=12))
    )
    assert [one.instances for one in without] == [1] * 4
    assert with_it[2].instances > 1
    assert of(f"model?calibration={file}") == ByModel(calibration=str(file))
    with pytest.raises(OptionError, match="policy model, calibration: must be a calibration; got"):
        of("model?calibration=nowhere.json")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"upper": 0.5}, "lower must not be above upper, both above 0 and at most 1; got lower"),
        ({"upper": "high"}, "policy model: upper must be a number; got 'high'"),
        ({"minimum": 0}, "minimum must be at least 1; got 0"),
        ({"maximum": 1, "minimum": 2}, "maximum must be at least minimum (2); got 1"),
        ({"maximum": 1.5}, "maximum must be a whole number; got 1.5"),
        ({"interval": 0}, "interval must be above 0; got 0"),
        ({"latency": -1.0}, "latency must be above 0; got -1"),
        ({"ahead": -1}, "ahead must not be negative; got -1"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(OptionError) as error:
        ByModel(**parameters)  # type: ignore[arg-type]
    assert message in str(error.value)
