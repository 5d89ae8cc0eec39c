"""The bars of autoscaling, over the loads of section 8 and over trades, simulated."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate.elastic.threshold import Threshold
from tidegate.model.control.controller import Limits
from tidegate.model.control.saso import Saso, saso
from tidegate.model.cost.calibration import JoinCosts
from tidegate.model.join.experiment import EXPERIMENTS
from tidegate.model.join.simulation import JoinModel, scaled, timeline
from tidegate.model.operation import Lookback
from tidegate.testing import drive

WINDOW_S = 60.0
JOIN = JoinModel(
    window=Lookback(seconds=WINDOW_S), costs=JoinCosts(alpha=1.2e-8, beta=1e-7, sigma=0.01)
)
LIMITS = Limits(maximum=36)


def run(name: str, instances: np.ndarray) -> tuple[Saso, int]:
    """How it was scaled, and the longest row of seconds in which work was left over."""
    experiment = EXPERIMENTS[name]()
    predicted = JOIN.prediction(experiment.trace, instances)
    starts = [float(part.start_s) for part in experiment.parts]
    judged = saso(timeline(JOIN, experiment.trace, predicted, LIMITS, starts))
    left = np.cumsum(predicted.comparisons - predicted.throughput)
    longest = row = 0
    for late in left > 1e-9 * predicted.comparisons.sum():
        row = row + 1 if late else 0
        longest = max(longest, row)
    return judged, longest


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name != "section7"])
def test_the_controller_over_the_loads_of_section_8(name: str) -> None:
    trace = EXPERIMENTS[name]().trace
    judged, late = run(name, scaled(JOIN, trace, LIMITS, first=1, ahead_s=WINDOW_S))
    plain, plain_late = run(name, scaled(JOIN, trace, LIMITS, first=1))
    work = JOIN.work(trace) * JOIN.costs.comparison_s
    load = (np.full(64, cpu_s / 64) for cpu_s in work)
    driven = drive(Threshold(maximum=LIMITS.maximum), load)
    by_threshold, threshold_late = run(name, np.array([one.instances for one in driven]))
    assert late <= 2, "rates are known a second later"
    assert plain_late <= 3
    assert threshold_late >= 5
    assert judged.switches <= by_threshold.switches
    assert judged.switches < plain.switches
    if name != "trades":
        assert (judged.settling_s or 0) <= WINDOW_S
        assert judged.overshoot is not None
        assert judged.overshoot <= 1
        assert judged.undershoot == 0
