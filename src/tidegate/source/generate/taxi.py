"""Taxi rides like those of the DEBS 2015 challenge."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import NormalDist

import numpy as np
import pyarrow as pa

from tidegate.connector import Int64s
from tidegate.schema import TIME
from tidegate.source.generate.draw import Floats, quantiles, stream
from tidegate.source.generate.flow import Keys, read_flow
from tidegate.source.generate.label import Labels, fixed
from tidegate.source.generate.span import Column, Span, column
from tidegate.source.generate.workload import SpanGenerator
from tidegate.source.parameter import Parameters

_TAXI, _ROUTE, _DISTANCE, _PAYMENT, _TIP, _SPEED, _CITY = range(1, 8)
_TAXIS = 13_000
_CELLS = 600
_ROUTES = 20_000
_LENGTH_BITS = 12
_SPEEDS = 17
_TIPS = 16
_PAYMENTS = fixed(("CRD", "CSH", "UNK"))
_PAYMENT_SHARES = (0.54, 0.99)


def taxi(parameters: Parameters) -> SpanGenerator:
    """Rides that end one after the other; distances in miles, money in dollars and whole cents."""
    routes = Keys("routes", _ROUTES, 1.0, high=_CELLS**2)
    return SpanGenerator(RideSpan, read_flow(parameters, 10.0, "2013-01-01T00:00:00Z", routes))


class RideSpan(Span):
    """The columns of a range of rides."""

    FAMILY = 0
    TIME_COLUMN = "dropoff_time"

    @column(pa.string())
    def medallion(self) -> pa.Array:
        return _medallions(self.flow.seed).take(self._below(_TAXI, _TAXIS))

    @column(TIME)
    def pickup_time(self) -> Column:
        speed = self._below(_SPEED, _SPEEDS)
        return self.time_us - _tables().ride_us[(speed << _LENGTH_BITS) + self._length]

    @column(TIME)
    def dropoff_time(self) -> Column:
        return self.time_us

    @column(pa.string())
    def pickup_cell(self) -> pa.Array:
        return self._city.pickups.take(self._routes)

    @column(pa.string())
    def dropoff_cell(self) -> pa.Array:
        return self._city.dropoffs.take(self._routes)

    @column(pa.string())
    def route(self) -> pa.Array:
        return self._city.routes.take(self._routes)

    @column(pa.float64())
    def distance(self) -> Column:
        return _tables().distance[self._length]

    @column(pa.float64())
    def fare(self) -> Column:
        return _tables().fare[self._length]

    @column(pa.float64())
    def tip(self) -> Column:
        """Of those who pay by card."""
        share = self._below(_TIP, _TIPS)
        tips = _tables().tip[(share << _LENGTH_BITS) + self._length]
        return tips * (self._payments == 0)

    @column(pa.string())
    def payment(self) -> pa.Array:
        return _PAYMENTS.take(self._payments)

    @cached_property
    def _city(self) -> _City:
        return _city(self.flow.seed, self.flow.keys)

    @cached_property
    def _routes(self) -> Int64s:
        return self.ranked(_ROUTE)

    @cached_property
    def _length(self) -> Int64s:
        """Which of the lengths in the tables a ride has."""
        return self._below(_DISTANCE, 1 << _LENGTH_BITS)

    @cached_property
    def _payments(self) -> Int64s:
        draw = self.uniform(_PAYMENT)
        card, cash = _PAYMENT_SHARES
        return (draw >= card).astype(np.int64) + (draw >= cash)

    def _below(self, number: int, count: int) -> Int64s:
        return (self.uniform(number) * count).astype(np.int64)


@dataclass(frozen=True)
class _City:
    """The routes of a city, the most frequent first."""

    pickups: Labels
    dropoffs: Labels
    routes: Labels


@lru_cache(maxsize=4)
def _city(seed: int, routes: int) -> _City:
    """A city's routes; one with more of them has the same ones first."""
    draw = stream(seed, _CITY)
    spread = draw.random((_CELLS * 2, 2)) + draw.random((_CELLS * 2, 2))
    cells = [f"{120 + int(x * 40)}.{100 + int(y * 40)}" for x, y in spread]
    cells = list(dict.fromkeys(cells))[:_CELLS]
    pairs = np.argsort(draw.random(len(cells) ** 2), kind="stable")[:routes]
    ends = [(cells[p // len(cells)], cells[p % len(cells)]) for p in pairs]
    return _City(
        fixed([a for a, _ in ends]),
        fixed([b for _, b in ends]),
        fixed([f"{a}-{b}" for a, b in ends]),
    )


@lru_cache(maxsize=4)
def _medallions(seed: int) -> Labels:
    digits = stream(seed, _CITY, 2**32).bytes(16 * _TAXIS).hex().upper()
    return Labels.of(np.frombuffer(digits.encode("ascii"), np.uint8).reshape(_TAXIS, 32))


@dataclass(frozen=True)
class _Tables:
    """What follows from a ride's length and, for the last two, from its speed or its tip."""

    distance: Floats
    fare: Floats
    ride_us: Int64s
    tip: Floats


@lru_cache(maxsize=1)
def _tables() -> _Tables:
    """Lengths are quantiles of a log-normal distance around 1.9 miles; each fifth of a mile costs
    50 cents.
    """
    bell = NormalDist(math.log(1.9), 0.8)
    hundredths = quantiles(_LENGTH_BITS, lambda share: 100 * math.exp(bell.inv_cdf(share)))
    fare_cents = 250 + 50 * -(-hundredths // 20)
    miles_per_hour = 8 + np.arange(_SPEEDS)[:, None]
    percent = 10 + np.arange(_TIPS)[:, None]
    return _Tables(
        hundredths / 100,
        fare_cents / 100,
        (60_000_000 + hundredths * 36_000_000 // miles_per_hour).ravel(),
        (fare_cents * percent // 100 / 100).ravel(),
    )
