"""Rates, windows, costs and batches of any size: what is said makes sense, and is said soon."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from tests.cost import calls
from tests.model.traces import changing
from tests.seed import seeds
from tidegate.model.costs import Costs
from tidegate.model.micro_batch import Batching
from tidegate.model.predict import predict
from tidegate.model.trace import Floats, Trace
from tidegate.model.window import TimeWindow, TupleWindow

TERMS = ("latency_in", "latency_join", "latency_out", "latency_batch")


class Drawn:
    """Numbers over several powers of ten, and often nothing."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def number(self, low: float, high: float, nothing: float = 0.15) -> float:
        some = self.rng.random() >= nothing
        return float(10 ** self.rng.uniform(low, high)) if some else 0.0

    def rates(self, intervals: int) -> Floats:
        shape = (intervals, self.rng.integers(1, 4))
        rates = 10 ** self.rng.uniform(-3, 4.5, shape)
        rates[self.rng.random(shape) < self.rng.choice([0, 0.1, 0.9])] = 0
        return np.round(rates) if self.rng.random() < 0.3 else rates

    def trace(self) -> Trace:
        intervals = int(self.rng.integers(1, 120))
        step_s = float(self.rng.choice([0.01, 0.25, 1, 60]))
        return changing(self.rates(intervals), self.rates(intervals), step_s)

    def batching(self) -> Batching | None:
        if self.rng.random() < 0.3:
            return None
        rows = None if self.rng.random() < 0.5 else int(self.number(0, 5, nothing=0))
        return Batching(self.number(-3, 1.5), rows)


@pytest.mark.parametrize("seed", seeds(60))
def test_any_input(seed: int) -> None:
    drawn = Drawn(seed)
    trace = drawn.trace()
    window = drawn.rng.choice(
        [TimeWindow(drawn.number(-2, 3, 0)), TupleWindow(drawn.number(0, 5, 0))]
    )
    costs = Costs(*(drawn.number(*of) for of in ((-10, -4), (-10, -4), (-4, 0), (-4, 1), (-7, -2))))
    found = []
    work = partial(
        predict,
        trace,
        window,
        costs,
        instances=drawn.rng.integers(1, 9, len(trace)),
        quota=float(drawn.rng.uniform(0.01, 1)),
        deterministic=bool(drawn.rng.random() < 0.7),
        batch=drawn.batching(),
    )
    assert calls(lambda: found.append(work())) < 5_000 * len(trace)
    (said,) = found
    for term in TERMS:
        values = getattr(said, term)
        known = values[~np.isnan(values)]
        assert (np.isfinite(known) & (known >= -1e-9 * known.max(initial=1))).all(), term
    done, arrived = said.throughput.sum() * trace.step_s, said.comparisons.sum()
    assert (said.throughput >= 0).all()
    assert done <= arrived * (1 + 1e-9)
    assert np.isfinite(said.throughput).all()
