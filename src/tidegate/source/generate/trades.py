"""Trades of a stock exchange, with the columns that the hedge predicate of stream joins needs."""

from __future__ import annotations

import math
from functools import cached_property, lru_cache

import numpy as np
import pyarrow as pa

from tidegate.connector import Int64s
from tidegate.source.generate.draw import Words, bells, below, field, mixed, quantiles, stream
from tidegate.source.generate.flow import Keys, read_flow
from tidegate.source.generate.label import Labels, digits, scattered
from tidegate.source.generate.span import STREAMS, Column, TimedSpan, column
from tidegate.source.generate.workload import SpanGenerator
from tidegate.source.parameter import Parameters

_COMPANY, _TRADE, _WALK = range(1, 4)
_WALKS = 64
_WALK_BITS = 12
_WALK_STEP_US = 1_000_000
_DAILY_RANGE = 3_000
"""How far prices go from their average, in hundred-thousandths of it."""


def trades(parameters: Parameters) -> SpanGenerator:
    """Trades that come in bursts; prices in cents wander around the day before's average."""
    companies = Keys("companies", 10, 0.5, high=100_000)
    flow = read_flow(parameters, 1_000.0, "2018-07-30T13:30:00Z", companies, burst=1.0)
    return SpanGenerator(TradeSpan, flow)


class TradeSpan(TimedSpan):
    """The columns of a range of trades; no price equals its average, so that ratios exist."""

    FAMILY = 4

    @column(pa.string())
    def symbol(self) -> pa.Array:
        return _symbols(self.flow.keys, self.flow.seed).take(self._company)

    @column(pa.int32())
    def price(self) -> Column:
        usual = self._usual
        cents = usual + usual * self._away // 100_000 + field(self._trade, 0, 3) - 3
        cents += cents == usual
        return cents

    @column(pa.int32())
    def average_price(self) -> Column:
        return self._usual

    @column(pa.int32())
    def quantity(self) -> Column:
        return _quantities()[field(self._trade, 3, 12)]

    @cached_property
    def _company(self) -> Int64s:
        return self.ranked(_COMPANY)

    @cached_property
    def _traits(self) -> Words:
        return mixed(self._company, self.flow.seed)

    @cached_property
    def _trade(self) -> Words:
        return self.words(_TRADE)

    @cached_property
    def _usual(self) -> Int64s:
        return 2_000 + below(self._traits, 0, 24, 98_000)

    @cached_property
    def _away(self) -> Int64s:
        """How far a company's price is from its average at the row's event time."""
        walk = field(self._traits, 24, 6) << _WALK_BITS
        step = self.since_us // _WALK_STEP_US + field(self._traits, 30, _WALK_BITS)
        away: Int64s = _walks(self.flow.seed)[walk + (step & ((1 << _WALK_BITS) - 1))]
        return away


@lru_cache(maxsize=4)
def _symbols(keys: int, seed: int) -> Labels:
    return Labels.of(digits(scattered(keys, 26**4, seed), 4, base=26, zero="A"))


@lru_cache(maxsize=1)
def _quantities() -> Int64s:
    """Shares per trade: round lots of a hundred, and odd ones for one in four."""
    lots = quantiles(12, lambda share: 1 - 3 * math.log(1 - share)) * 100
    odd = np.arange(len(lots))
    return np.where(odd % 4 == 0, 1 + odd * 61 % 99, lots)


@lru_cache(maxsize=4)
def _walks(seed: int) -> Int64s:
    """Random walks that end where they began, one after the other, within the daily range."""
    steps = 1 << _WALK_BITS
    draws = stream(seed, TradeSpan.FAMILY * STREAMS + _WALK).random((_WALKS, steps))
    jumps = bells(steps)[np.argsort(draws, axis=1, kind="stable")]
    walks = np.cumsum(jumps, axis=1)
    walks *= _DAILY_RANGE / np.abs(walks).max(axis=1, keepdims=True)
    return np.round(walks).astype(np.int64).ravel()
