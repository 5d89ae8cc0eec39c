"""What docs/model.md shows runs, and its formulas are those of the code."""

from __future__ import annotations

import pytest

from tests.docs.block import blocks
from tests.model.join.traces import constant
from tidegate.model.cost.calibration import JoinCosts
from tidegate.model.join.micro_batch import Batching
from tidegate.model.join.predict import predict
from tidegate.model.operation import Lookback


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = blocks("docs/model.md", "python")
    exec(example, {})
    alone, in_batches = capsys.readouterr().out.splitlines()
    comparisons, throughput, latency = (float(word) for word in alone.split())
    assert comparisons == throughput == 2_352_000
    assert 0 < latency < float(in_batches)


def test_its_formulas_of_batches() -> None:
    costs = JoinCosts(alpha=1e-7, beta=1e-6, sigma=0.01, batch_s=0.015, tuple_s=1e-4)
    trace = constant([140.0], [140.0], 120)
    rho = 1e-4 * 280 + 2_352_000 * (1e-7 + 1e-8) / 2
    settled = 0.015 / (1 - rho)
    said = {
        trigger: predict(trace, Lookback(seconds=60), costs, instances=2, batch=Batching(trigger))
        for trigger in (0.0, 0.4)
    }
    assert said[0.0].latency[-1] == pytest.approx(1 / 140 + 1.5 * settled, rel=1e-3)
    assert said[0.4].latency[-1] == pytest.approx(1 / 140 + 0.2 + 0.015 + rho * 0.4, rel=1e-3)
