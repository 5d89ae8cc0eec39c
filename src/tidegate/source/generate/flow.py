"""The parameters that all generated streams share: how many rows, when, and about which keys."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.errors import SourceError
from tidegate.source.pace import TracedPace
from tidegate.source.parameter import Parameters

UNBOUNDED = 2**53
"""The number of rows of an endless stream; positions up to here are exact as floats."""

_ROWS = 100_000
_LATEST_US = 2**62


@dataclass(frozen=True)
class Flow:
    """How many rows there are, when they happen, and which keys they are about.

    On average `rate` rows happen in a second of event time. Keys follow a Zipf law with exponent
    `skew`. `drift` times a second of event time a new key becomes the most frequent one, and all
    others move down one rank. With `burst` the rate varies over time: it is the standard deviation
    of the logarithms of the gaps. Rows are up to `disorder_us` early, which a DISORDER of as much
    never makes late. With `traced`, event times follow its changing rates; `rate` is their average.
    """

    rows: int
    rate: float
    seed: int
    start_us: int
    keys: int = 1
    skew: float = 0.0
    drift: float = 0.0
    burst: float = 0.0
    disorder_us: int = 0
    traced: TracedPace | None = None


@dataclass(frozen=True)
class Keys:
    """What a stream's keys are, and their default number and skew."""

    what: str
    count: int
    skew: float
    low: int = 1
    high: int = 1_000_000


def read_flow(
    parameters: Parameters,
    rate: float,
    start: str,
    keys: Keys | None = None,
    burst: float | None = 0.0,
) -> Flow:
    """Take the common parameters, with a stream's own defaults.

    Without `keys` a stream has no parameters for keys; with a `burst` of None none for bursts.
    """
    pace = parameters.pace()
    rows = parameters.whole(
        "rows",
        _ROWS if pace is None else int(min(pace.rows, UNBOUNDED)),
        0,
        meaning="how many; without an end where only pace is given",
    )
    traced = pace if isinstance(pace, TracedPace) else None
    if traced is not None:
        rows = min(rows, int(traced.rows))
        if parameters.given("rate"):
            raise SourceError(
                parameters.where,
                "rate cannot be given where pace is a file, which event times follow",
                "both",
                "Leave rate out.",
            )
    every = parameters.number(
        "rate",
        rate if pace is None else pace.rate,
        0.0,
        strict=True,
        meaning="rows per second of event time, on average (default with pace: the pace)",
    )
    start_us = parameters.moment_us("start", start, meaning="the event time it begins at")
    seed = parameters.whole("seed", 0, 0, meaning="another seed, other rows")
    count, skew, drift = 1, 0.0, 0.0
    if keys is not None:
        count = parameters.whole("keys", keys.count, keys.low, keys.high, meaning=keys.what)
        skew = parameters.number(
            "skew", keys.skew, 0.0, meaning="exponent of the keys' Zipf law; 0: all alike"
        )
        drift = parameters.number(
            "drift",
            0.0,
            0.0,
            meaning="how often in a second of event time a new key becomes the most frequent",
        )
    bursts = 0.0
    if burst is not None:
        bursts = parameters.number(
            "burst", burst, 0.0, meaning="how much the rate changes over time; 0: even", high=4.0
        )
    disorder_s = parameters.number(
        "disorder", 0.0, 0.0, meaning="rows are out of order by at most so many seconds"
    )
    flow = Flow(
        rows=rows,
        rate=every,
        seed=seed,
        start_us=start_us,
        keys=count,
        skew=skew,
        drift=drift,
        burst=bursts,
        disorder_us=round(disorder_s * 1_000_000),
        traced=traced,
    )
    _check_end(parameters, flow)
    return flow


def _check_end(parameters: Parameters, flow: Flow) -> None:
    """Refuse event times that 64 bits cannot hold."""
    last_us = abs(flow.start_us) + flow.rows / flow.rate * 1e6 + flow.disorder_us
    if flow.rows != UNBOUNDED and last_us > _LATEST_US:
        raise SourceError(
            parameters.where,
            "rows / rate must end before the year 140000",
            f"rows={flow.rows}, rate={flow.rate:g}",
            "Take fewer rows or a higher rate.",
        )
