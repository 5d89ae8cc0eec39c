"""The equations over random traces, beside a join that is simulated event by event.

Numbers are compared over blocks of ten intervals, which have 800 tuples and more: whether a tuple
falls into one block or the next is then about a quarter of a percent. Rates stay as they are for a
block and change by up to a half; windows are of sixty intervals or more. The equations take windows
as they are at the end of an interval, half an interval too new, which with such rates and windows
is less than half a percent once windows are full; before, the truth is between the windows at the
beginning and at the end. They know delays by whole intervals, so those of overload may also be half
an interval off. Micro-batches have neither allowance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.model.join.traces import changing
from tests.oracle import stream_join
from tests.oracle.stream_join import PlainJoin, Seen
from tidegate.model.cost.calibration import JoinCosts
from tidegate.model.join.micro_batch import Batching
from tidegate.model.join.predict import Prediction, predict
from tidegate.model.join.trace import Trace
from tidegate.model.operation import Lookback

Floats = npt.NDArray[np.float64]

BLOCK, BLOCKS, WINDOW, RATE = 10, 10, 60, 40
"""Intervals of a block, blocks, intervals of a window, and tuples of a stream in an interval."""

COMPARISONS = 2 * (1.25 * RATE) ** 2 * WINDOW
"""Of an interval, about."""

few = settings(max_examples=max(settings().max_examples // 12, 1), phases=[Phase.generate])
"""An example is thousands of tuples, too many to look for one with fewer."""


Rates = list[list[float]]
"""Of a stream: for each block those of its sources."""


@dataclass(frozen=True)
class Case:
    """A trace and a window, for the model and for the simulation."""

    r: Rates
    s: Rates
    step_s: float
    window: Lookback

    @property
    def trace(self) -> Trace:
        return changing(*(np.repeat(side, BLOCK, axis=0) for side in (self.r, self.s)), self.step_s)

    @property
    def rates(self) -> list[list[list[float]]]:
        return [side.T.tolist() for side in (self.trace.r, self.trace.s)]

    def join(self, costs: JoinCosts) -> PlainJoin:
        return PlainJoin(
            costs.alpha,
            costs.beta,
            costs.sigma,
            seconds=self.window.seconds,
            rows=self.window.rows,
            batch_s=costs.batch_s,
            tuple_s=costs.tuple_s,
        )

    def by_block(self, seen: dict[int, float]) -> Floats:
        return blocks(np.array([seen.get(i, 0.0) for i in range(BLOCK * BLOCKS)]) / self.step_s)

    def means(self, at: npt.ArrayLike, values: npt.ArrayLike) -> Floats:
        """The means of what was seen in each block."""
        place = (np.array(at) / (self.step_s * BLOCK)).astype(int)
        known = (place < BLOCKS) & ~np.isnan(values)
        sums = np.bincount(place[known], np.array(values)[known], BLOCKS)
        counts = np.bincount(place[known], minlength=BLOCKS)
        return sums / np.where(counts, counts, np.nan)

    def full(self, said: Prediction) -> npt.NDArray[np.bool_]:
        """The blocks with full windows."""
        if self.window.seconds < math.inf:
            return np.arange(BLOCKS) * BLOCK >= WINDOW
        held = np.minimum(said.window_r, said.window_s)
        full = blocks(held) >= self.window.rows
        assert full.any()
        return full


def blocks(values: Floats) -> Floats:
    return values.reshape(BLOCKS, BLOCK).mean(axis=1)


@st.composite
def cases(draw: st.DrawFn, most: int = 2, whole: bool | None = None) -> Case:
    """Traces of one to `most` sources a stream, with rates that are whole numbers or not."""
    step_s = draw(st.sampled_from([0.25, 0.5, 1.0]))
    least = RATE / step_s
    if draw(st.booleans()) if whole is None else whole:
        rate = st.integers(RATE, RATE * 3 // 2).map(lambda n: n / step_s)
    else:
        rate = st.floats(least, 1.5 * least)
    streams = []
    for _ in "rs":
        sources = draw(st.integers(1, most))
        row = st.lists(rate.map(lambda n, k=sources: n / k), min_size=sources, max_size=sources)
        streams.append(draw(st.lists(row, min_size=BLOCKS, max_size=BLOCKS)))
    window = draw(
        st.sampled_from([Lookback(seconds=WINDOW * step_s), Lookback(rows=RATE * WINDOW)])
    )
    return Case(*streams, step_s, window)


def check_throughput(case: Case, said: Prediction, seen: Seen) -> None:
    """Within a percent where windows are full; else between the windows of before and after."""
    made, full = case.by_block(seen.made), case.full(said)
    assert made[full] == pytest.approx(blocks(said.throughput)[full], rel=0.01)
    before = np.concatenate(([0.0], said.comparisons[:-1]))
    least = blocks(np.minimum(before, said.comparisons)) / case.step_s
    assert (made >= np.minimum(least, blocks(said.throughput)) * 0.97).all()
    assert (made <= blocks(said.throughput) * 1.01).all()


@few
@given(cases())
def test_windows_and_throughput(case: Case) -> None:
    costs = JoinCosts(alpha=1e-8, beta=1e-7, sigma=0.002)
    join = case.join(costs)
    said = predict(case.trace, case.window, costs, instances=1, deterministic=False)
    events = stream_join.arrivals(case.rates, case.step_s)
    for i in range(BLOCK, BLOCK * BLOCKS, 7):
        held = [stream_join.held_at(events, k, (i + 1) * case.step_s, join) for k in (0, 1)]
        assert held == pytest.approx([said.window_r[i], said.window_s[i]], rel=0.01)
    seen = stream_join.run(case.rates, case.step_s, join, instances=1, deterministic=False)
    check_throughput(case, said, seen)


@few
@given(cases(most=1, whole=False), st.integers(1, 3))
def test_latency_of_the_join(case: Case, instances: int) -> None:
    """Where tuples seldom find another at work, and have output enough for a mean of it.

    Utilisation is below 3 percent: the paper has no term for tuples that wait for one another while
    the join keeps up. A tuple has some 40 output tuples, because those at the begin of a scan are
    as late as a whole distance between two of them in the paper.
    """
    costs = JoinCosts(alpha=2e-9, beta=2e-8, sigma=0.016 * instances)
    apart = [[rate * 1.01234 for rate in row] for row in case.s]  # two that do not come together
    case = replace(case, s=apart)
    said = predict(case.trace, case.window, costs, instances=instances, deterministic=False)
    assert (said.throughput * costs.comparison_s).max() < 0.03 * instances
    seen = stream_join.run(
        case.rates, case.step_s, case.join(costs), instances=instances, deterministic=False
    )
    full = case.full(said)
    found = case.means(seen.at, seen.joined)
    assert np.median(found[full] / blocks(said.latency_join)[full]) == pytest.approx(1, rel=0.05)


@few
@given(cases(), st.integers(1, 4))
def test_latency_of_determinism(case: Case, instances: int) -> None:
    """Of input and output, and of their sum with the join."""
    costs = JoinCosts(alpha=1e-9, beta=1e-8, sigma=0.01)
    said = predict(case.trace, case.window, costs, instances=instances)
    seen = stream_join.run(case.rates, case.step_s, case.join(costs), instances=instances)
    some = slice(2, BLOCKS - 1)  # before, output is rare, and at the end nothing comes after it
    waited = case.means(seen.at, seen.waited)[some]
    wanted = blocks(said.latency_in)[some]
    merged = case.means(seen.at, seen.merged)[some]
    joined = case.means(seen.at, seen.joined)[some]
    assert merged == pytest.approx(blocks(said.latency_out)[some], rel=0.05)
    # Of rates that are nearly the same the offsets drift for longer than a block.
    assert waited.mean() == pytest.approx(wanted.mean(), rel=0.05)
    total = (waited + merged + joined).mean()
    assert total == pytest.approx(blocks(said.latency)[some].mean(), rel=0.05)


@few
@given(cases(whole=True))
def test_latency_of_determinism_of_whole_rates(case: Case) -> None:
    """Their patterns are complete in each interval, so each block has the latency of its own."""
    costs = JoinCosts(alpha=1e-9, beta=1e-8, sigma=0.001)
    case = replace(case, step_s=1.0, r=_whole(case.r), s=_whole(case.s))
    said = predict(case.trace, case.window, costs, instances=1)
    seen = stream_join.run(case.rates, case.step_s, case.join(costs), instances=1)
    waited, wanted = case.means(seen.at, seen.waited), blocks(said.latency_in)
    assert waited[:-1] == pytest.approx(wanted[:-1], rel=0.005)


def _whole(rates: Rates) -> Rates:
    return [[math.ceil(rate) for rate in row] for row in rates]


@few
@given(cases(most=1), st.integers(1, 2), st.sampled_from([1.0, 0.5]))
def test_overload(case: Case, instances: int, quota: float) -> None:
    """Delays are known by whole intervals, so those that matter here are of ten or more."""
    alpha = 2.5 * case.step_s * instances * quota / COMPARISONS
    costs = JoinCosts(alpha=alpha, beta=alpha, sigma=0.002)
    said = predict(
        case.trace, case.window, costs, instances=instances, quota=quota, deterministic=False
    )
    seen = stream_join.run(
        case.rates,
        case.step_s,
        case.join(costs),
        instances=instances,
        quota=quota,
        deterministic=False,
    )
    assert case.by_block(seen.made)[7:] == pytest.approx(blocks(said.throughput)[7:], rel=0.01)
    found, wanted = case.means(seen.done, seen.joined), blocks(said.latency_join)
    late = found > 10 * case.step_s
    assert late.any()
    assert (np.abs(found - wanted) <= 0.05 * wanted + case.step_s / 2)[late].all()


@few
@given(
    cases(),
    st.integers(1, 2),
    st.sampled_from([0.05, 0.3, 0.5]),
    st.sampled_from([0.0, 0.3137, 0.9871]),  # no multiple of the time between two tuples
    st.sampled_from([0.5, 0.05]),
)
def test_micro_batches(
    case: Case, instances: int, utilisation: float, trigger: float, batch: float
) -> None:
    """From arrival to commit; a batch has several tuples, and takes no longer than a block."""
    costs = _batch_costs(case, utilisation, instances, batch * case.step_s)
    batching = Batching(trigger * case.step_s)
    said, seen = _in_batches(case, costs, batching, instances)
    made, wanted = case.by_block(seen.made), blocks(said.throughput)
    for some in (slice(1, BLOCKS // 2), slice(BLOCKS // 2, BLOCKS)):  # filling windows, full ones
        # Over several, because a batch may fall into one block or the next.
        assert made[some].mean() == pytest.approx(wanted[some].mean(), rel=0.01)
    assert _latency(case, seen)[1:] == pytest.approx(blocks(said.latency)[1:], rel=0.05)


@few
@given(cases(), st.sampled_from([20, 60]))
def test_overloaded_micro_batches(case: Case, rows: int) -> None:
    costs = _batch_costs(case, 2.5, 1, 0.05 * case.step_s)
    said, seen = _in_batches(case, costs, Batching(rows=rows), 1)
    found, wanted = _latency(case, seen), blocks(said.latency)
    late = found > 5 * case.step_s
    assert late.any()
    assert found[late] == pytest.approx(wanted[late], rel=0.05)
    assert case.by_block(seen.made)[late] == pytest.approx(blocks(said.throughput)[late], rel=0.01)


def _latency(case: Case, seen: Seen) -> Floats:
    """From arrival to commit, by the blocks in which the batches were at work."""
    waited, joined = np.array(seen.waited), np.array(seen.joined)
    return case.means(np.array(seen.done) - joined / 2, waited + joined)


def _batch_costs(case: Case, utilisation: float, instances: int, batch_s: float) -> JoinCosts:
    alpha = utilisation * case.step_s * instances / COMPARISONS
    return JoinCosts(alpha, alpha, 0.002, batch_s=batch_s, tuple_s=1e-5 * case.step_s)


def _in_batches(
    case: Case, costs: JoinCosts, batching: Batching, instances: int
) -> tuple[Prediction, Seen]:
    said = predict(case.trace, case.window, costs, instances=instances, batch=batching)
    seen = stream_join.run_batches(
        case.rates,
        case.step_s,
        case.join(costs),
        instances=instances,
        trigger=batching.trigger_s,
        rows=batching.rows or math.inf,
    )
    return said, seen
