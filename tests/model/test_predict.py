"""The model as a whole: the numbers of the paper's experiment, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cost import calls
from tests.model.traces import changing, constant
from tidegate.errors import OptionError
from tidegate.model.costs import Costs
from tidegate.model.micro_batch import Batching
from tidegate.model.predict import predict
from tidegate.model.window import TimeWindow, TupleWindow

COSTS = Costs(alpha=2e-8, beta=1e-7, sigma=0.01)
MINUTE, ROWS = TimeWindow(60), TupleWindow(8400)


@pytest.mark.parametrize("window", [MINUTE, ROWS])
def test_part_a_of_the_experiment(window: TimeWindow | TupleWindow) -> None:
    said = predict(constant([140.0], [140.0], 300), window, COSTS, instances=1)
    assert said.window_r[[0, 1, 59, 60, 299]].tolist() == [140, 280, 8400, 8400, 8400]
    assert said.comparisons[[0, 299]].tolist() == [39_200, 2_352_000]
    assert (said.throughput == said.comparisons).all()
    assert said.latency_in == pytest.approx(np.full(300, 1 / 280))
    assert said.latency_join[299] == pytest.approx((84 + 1) * 2.1e-8 / 0.02)
    assert (said.latency_out == 0).all()
    assert (said.latency_batch == 0).all()
    assert (said.latency == said.latency_in + said.latency_join).all()


def test_five_sources_and_three_instances() -> None:
    said = predict(constant([140 / 3] * 3, [70.0] * 2, 300), MINUTE, COSTS, instances=3)
    assert said.latency_in == pytest.approx(np.full(300, 26 / 12 / 140))  # counted by hand
    assert said.latency_join[299] == pytest.approx((28 + 1) * 2.1e-8 / 0.02)
    assert said.latency_out[299] == pytest.approx(2 / 3 / 280)
    assert said.comparisons[299] == pytest.approx(2_352_000)
    assert (said.instances == 3).all()


def test_without_determinism_nothing_waits_for_others() -> None:
    trace = constant([140.0], [140.0], 70)
    said = predict(trace, MINUTE, COSTS, instances=3, deterministic=False)
    assert (said.latency == said.latency_join).all()


def test_a_silent_source_holds_readiness_back() -> None:
    trace = changing([100.0, 100.0, 0.0, 0.0], [100.0, 0.0, 100.0, 0.0])
    said = predict(trace, MINUTE, COSTS, instances=1)
    assert np.isnan(said.latency).tolist() == [False, True, True, True]
    assert np.isnan(said.latency_join).tolist() == [False, False, False, True]
    assert said.throughput.tolist() == [20_000.0, 10_000.0, 20_000.0, 0.0]


def test_a_trace_of_many_sources_costs_as_much_as_it_is_long() -> None:
    costs = Costs(alpha=3e-7, beta=0, sigma=0.01, batch_s=0.02, tuple_s=1e-5)

    def predicted(steps: int) -> None:
        t = np.arange(steps)
        r, s = 150 + 50 * np.sin(t / 60), 160 + 70 * np.sin(t / 37)
        trace = changing(np.outer(r, [1 / 3] * 3), np.outer(s, [0.3, 0.7]))
        said = predict(trace, MINUTE, COSTS, instances=1)
        overloaded = predict(trace, MINUTE, costs, instances=1, batch=Batching())
        assert np.isfinite(said.latency).all()
        assert np.isfinite(overloaded.latency).all()

    assert calls(lambda: predicted(600)) < 15 * calls(lambda: predicted(60))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"quota": 0.0}, "quota: must be above 0 and at most 1; got 0."),
        ({"quota": 1.5}, "quota: must be above 0 and at most 1; got 1.5."),
        ({"instances": 0}, "instances: must be whole numbers from 1 on; got 0."),
        ({"instances": 1.5}, "instances: must be whole numbers from 1 on; got 1.5."),
        (
            {"instances": np.array([1, 2])},
            "instances: must be one number, or one for each of 3 intervals; got 2 of them.",
        ),
        (
            {"costs": Costs(-1e-8, 0, 0)},
            "alpha: must be 0 seconds or more, and finite; got -1e-08.",
        ),
        (
            {"trace": changing([1.0, -2.0, 3.0], [1.0, 2.0, 3.0])},
            "the rates r of a trace: must be 0 or more, and finite; got -2 at 1 seconds.",
        ),
    ],
)
def test_what_it_refuses(change: dict[str, object], message: str) -> None:
    trace = constant([1.0], [1.0], 3)
    arguments = {"trace": trace, "window": MINUTE, "costs": COSTS, "instances": 1} | change
    with pytest.raises(OptionError) as caught:
        predict(**arguments)
    assert str(caught.value) == message


def test_windows_and_batches_that_are_none() -> None:
    with pytest.raises(OptionError, match="a window of time: must be more than 0 seconds"):
        TimeWindow(0)
    with pytest.raises(OptionError, match="a window of tuples: must be more than 0 rows"):
        TupleWindow(-1)
    with pytest.raises(OptionError, match="the trigger of batches: must be 0 seconds or more"):
        Batching(trigger_s=-1)
