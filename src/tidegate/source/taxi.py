"""Taxi rides like those of the DEBS 2015 challenge, each a function of the seed and its position.

Every column draws from a stream of its own, which is moved to the position asked for, so that any
range of any columns costs only itself and equals the same range of the whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import NormalDist

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.schema import TIME
from tidegate.source.parameter import Parameters
from tidegate.source.protocol import Int64s

_ARRIVAL, _TAXI, _ROUTE, _DISTANCE, _PAYMENT, _TIP, _SPEED, _CITY = range(8)
_TAXIS = 13_000
_CELLS = 600
_ROUTES = 20_000
_QUANTILES = 4096
_GUIDE = 2**18
_PAYMENTS = ("CRD", "CSH", "UNK")
_PAYMENT_SHARES = (0.54, 0.99)

SCHEMA = pa.schema(
    [
        ("medallion", pa.string()),
        ("pickup_time", TIME),
        ("dropoff_time", TIME),
        ("pickup_cell", pa.string()),
        ("dropoff_cell", pa.string()),
        ("route", pa.string()),
        ("distance", pa.float64()),
        ("fare", pa.float64()),
        ("tip", pa.float64()),
        ("payment", pa.string()),
    ]
)


@dataclass(frozen=True)
class Taxi:
    """Rides that end one after the other, `rate` per second of event time on average.

    Routes follow a Zipf law with exponent `skew` (0: all alike). Distances are in miles, money in
    dollars with whole cents.
    """

    rows: int
    rate: float
    seed: int
    skew: float
    start_us: int

    @property
    def schema(self) -> pa.Schema:
        return SCHEMA

    @property
    def time(self) -> str:
        """The column that never decreases."""
        return "dropoff_time"

    def read(self, columns: Sequence[str], start: int, stop: int) -> pa.Table:
        rides = _Rides(self, start, stop)
        arrays = [getattr(rides, name) for name in columns]
        return pa.table(arrays, schema=pa.schema([SCHEMA.field(c) for c in columns]))


def taxi(parameters: Parameters) -> Taxi:
    """Rides as the parameters of a URI describe them."""
    return Taxi(
        rows=parameters.whole("rows", 100_000, 0),
        rate=parameters.number("rate", 10.0, 0.0, strict=True),
        seed=parameters.whole("seed", 0, 0),
        skew=parameters.number("skew", 1.0, 0.0),
        start_us=parameters.moment_us("start", "2013-01-01T00:00:00Z"),
    )


class _Rides:
    """The columns of a range of rides, each computed when first asked for."""

    def __init__(self, taxi: Taxi, start: int, stop: int) -> None:
        self._taxi = taxi
        self._start = start
        self._stop = stop
        self._city = _city(taxi.seed)

    @cached_property
    def medallion(self) -> pa.Array:
        return _medallions(self._taxi.seed).take(pa.array(self._below(_TAXI, _TAXIS)))

    @cached_property
    def dropoff_time(self) -> pa.Array:
        return _times(self._dropoff_us)

    @cached_property
    def pickup_time(self) -> pa.Array:
        miles_per_hour = 8 + self._below(_SPEED, 17)
        ride_us = 60_000_000 + self._hundredths * 36_000_000 // miles_per_hour
        return _times(self._dropoff_us - ride_us)

    @cached_property
    def pickup_cell(self) -> pa.Array:
        return self._city.pickups.take(self._routes)

    @cached_property
    def dropoff_cell(self) -> pa.Array:
        return self._city.dropoffs.take(self._routes)

    @cached_property
    def route(self) -> pa.Array:
        return self._city.routes.take(self._routes)

    @cached_property
    def distance(self) -> pa.Array:
        return pa.array(self._hundredths / 100)

    @cached_property
    def fare(self) -> pa.Array:
        return pa.array(self._fare_cents / 100)

    @cached_property
    def tip(self) -> pa.Array:
        cents = self._fare_cents * (10 + self._below(_TIP, 16)) // 100
        return pa.array(np.where(self._payments == 0, cents, 0) / 100)

    @cached_property
    def payment(self) -> pa.Array:
        return pa.array(_PAYMENTS).take(pa.array(self._payments))

    @cached_property
    def _dropoff_us(self) -> Int64s:
        """Each ride ends within its own slot of 1 / rate seconds, so times never decrease."""
        places = np.arange(self._start, self._stop, dtype=np.float64)
        slot_us = 1_000_000 / self._taxi.rate
        since = np.floor((places + self._draw(_ARRIVAL)) * slot_us).astype(np.int64)
        return since + self._taxi.start_us

    @cached_property
    def _routes(self) -> pa.Array:
        return pa.array(_ranks(_zipf(self._taxi.skew), self._draw(_ROUTE)))

    @cached_property
    def _hundredths(self) -> Int64s:
        return _distances()[self._below(_DISTANCE, _QUANTILES)]

    @cached_property
    def _fare_cents(self) -> Int64s:
        fifths = -(-self._hundredths // 20)
        cents: Int64s = 250 + 50 * fifths
        return cents

    @cached_property
    def _payments(self) -> NDArray[np.int8]:
        draw = self._draw(_PAYMENT)
        card, cash = _PAYMENT_SHARES
        return (draw >= card).astype(np.int8) + (draw >= cash).astype(np.int8)

    def _draw(self, stream: int) -> NDArray[np.float64]:
        """Uniform numbers in [0, 1): one step of the stream per position."""
        return _stream(self._taxi.seed, stream, self._start).random(self._stop - self._start)

    def _below(self, stream: int, count: int) -> Int64s:
        return (self._draw(stream) * count).astype(np.int64)


def _stream(seed: int, stream: int, start: int = 0) -> np.random.Generator:
    bits = np.random.PCG64(np.random.SeedSequence([seed, stream]))
    return np.random.Generator(bits.advance(start))


def _times(us: Int64s) -> pa.Array:
    return pa.array(us).cast(TIME)


@dataclass(frozen=True)
class _City:
    """The routes of a city, the most frequent first."""

    pickups: pa.Array
    dropoffs: pa.Array
    routes: pa.Array


@lru_cache(maxsize=4)
def _city(seed: int) -> _City:
    draw = _stream(seed, _CITY)
    spread = draw.random((_CELLS * 2, 2)) + draw.random((_CELLS * 2, 2))
    cells = [f"{120 + int(x * 40)}.{100 + int(y * 40)}" for x, y in spread]
    cells = list(dict.fromkeys(cells))[:_CELLS]
    pairs = np.argsort(draw.random(len(cells) ** 2), kind="stable")[:_ROUTES]
    ends = [(cells[p // len(cells)], cells[p % len(cells)]) for p in pairs]
    return _City(
        pa.array([a for a, _ in ends]),
        pa.array([b for _, b in ends]),
        pa.array([f"{a}-{b}" for a, b in ends]),
    )


@lru_cache(maxsize=4)
def _medallions(seed: int) -> pa.Array:
    digits = _stream(seed, _CITY, 2**32).bytes(16 * _TAXIS).hex().upper()
    return pa.array([digits[i : i + 32] for i in range(0, len(digits), 32)])


@dataclass(frozen=True)
class _Zipf:
    """`shares[k]`: of the first k + 1 routes; `guide[i]`: the rank at the i-th of even steps."""

    shares: NDArray[np.float64]
    guide: NDArray[np.int32]


@lru_cache(maxsize=16)
def _zipf(skew: float) -> _Zipf:
    weights = np.array([math.pow(rank, -skew) for rank in range(1, _ROUTES + 1)])
    shares = np.cumsum(weights) / weights.sum()
    shares[-1] = 1.0
    steps = np.arange(_GUIDE, dtype=np.float64) / _GUIDE
    return _Zipf(shares, np.searchsorted(shares, steps, "right").astype(np.int32))


def _ranks(zipf: _Zipf, draw: NDArray[np.float64]) -> NDArray[np.int32]:
    """The first rank whose share exceeds each number: a search that starts next to its answer."""
    ranks = zipf.guide[(draw * _GUIDE).astype(np.int32)]
    short = np.flatnonzero(zipf.shares[ranks] <= draw)
    while len(short):
        ranks[short] += 1
        short = short[zipf.shares[ranks[short]] <= draw[short]]
    return ranks


@lru_cache(maxsize=1)
def _distances() -> Int64s:
    """Quantiles of a log-normal distance around 1.9 miles, in hundredths of a mile."""
    bell = NormalDist(math.log(1.9), 0.8)
    miles = [math.exp(bell.inv_cdf((i + 0.5) / _QUANTILES)) for i in range(_QUANTILES)]
    return np.array([round(100 * m) for m in miles], np.int64)
