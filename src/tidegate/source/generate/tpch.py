"""Orders and lineitems of TPC-H as two streams that join, with the columns of queries 1 and 3.

Lines are shipped in an order of their own: each block of `_BLOCK` lines is shuffled. The stream of
lineitems begins one block later than that of orders. So a line is shipped after its order was
placed, and within the time of two blocks (about 105 days at the rate of scale factor 1).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, lru_cache

import numpy as np
import pyarrow as pa

from tidegate.connector import Int64s
from tidegate.schema import TIME
from tidegate.source.generate.draw import Words, below, field, mixed, shares, stream
from tidegate.source.generate.flow import Keys, read_flow
from tidegate.source.generate.label import decimals, fixed
from tidegate.source.generate.span import STREAMS, Column, Span, column
from tidegate.source.generate.workload import SpanGenerator
from tidegate.source.parameter import Parameters

_CUSTOMER = 1
_LINE, _LINES = 1, 2
_SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
_PARTS = 200_000
_ORDER_RATE = 0.0072
_START = "1992-01-01T00:00:00Z"
_BLOCK_BITS = 17
_BLOCK = 1 << _BLOCK_BITS
_GROUP_ORDERS = 7
_GROUP_LINES = 28
"""Orders have one to seven lines; each group of seven orders has one of each length."""
_VARIANT_BITS = 6
_FLAGS, _STATUSES = fixed("ARNN"), fixed("FFFO")
_FLAG_SHARES = (0.247, 0.247, 0.006, 0.5)


def orders(parameters: Parameters) -> SpanGenerator:
    """Orders by the time they were placed, each with the market segment of its customer."""
    customers = Keys("customers", 150_000, 0.0)
    return SpanGenerator(
        OrderSpan, read_flow(parameters, _ORDER_RATE, _START, customers, burst=None)
    )


def lineitem(parameters: Parameters) -> SpanGenerator:
    """Lines of `orders` by the time they were shipped; four times its rate fits it."""
    flow = read_flow(parameters, 4 * _ORDER_RATE, _START, burst=None)
    delay_us = (_BLOCK + 2 * _GROUP_LINES) / flow.rate * 1_000_000
    return SpanGenerator(LineSpan, replace(flow, start_us=flow.start_us + round(delay_us)))


class OrderSpan(Span):
    """The columns of a range of orders."""

    FAMILY = 8
    TIME_COLUMN = "o_orderdate"

    @column(pa.int64())
    def o_orderkey(self) -> Column:
        return order_keys(np.arange(self.start, self.stop, dtype=np.int64))

    @column(pa.int64())
    def o_custkey(self) -> Column:
        return 1 + self._customers

    @column(TIME)
    def o_orderdate(self) -> Column:
        return self.time_us

    @column(pa.int32())
    def o_shippriority(self) -> Column:
        return np.zeros(self.stop - self.start, np.int32)

    @column(pa.string())
    def c_mktsegment(self) -> pa.Array:
        segment = below(mixed(self._customers, self.flow.seed), 0, 32, len(_SEGMENTS))
        return pa.array(_SEGMENTS).take(pa.array(segment))

    @cached_property
    def _customers(self) -> Int64s:
        return self.ranked(_CUSTOMER)


class LineSpan(Span):
    """The columns of a range of lineitems."""

    FAMILY = 9
    TIME_COLUMN = "l_shipdate"

    @column(pa.int64())
    def l_orderkey(self) -> Column:
        group, place = self._places
        return order_keys(group * _GROUP_ORDERS + _variants()[0][place])

    @column(pa.int32())
    def l_linenumber(self) -> Column:
        return _variants()[1][self._places[1]]

    @column(pa.decimal128(15, 2))
    def l_quantity(self) -> pa.Array:
        return decimals(self._quantity * 100)

    @column(pa.decimal128(15, 2))
    def l_extendedprice(self) -> pa.Array:
        """The quantity times the price that the specification gives to a part."""
        part = 1 + below(self._line, 0, 24, _PARTS)
        cents = 90_000 + part // 10 % 20_001 + 100 * (part % 1_000)
        return decimals(self._quantity * cents)

    @column(pa.decimal128(15, 2))
    def l_discount(self) -> pa.Array:
        return decimals(below(self._line, 32, 8, 11))

    @column(pa.decimal128(15, 2))
    def l_tax(self) -> pa.Array:
        return decimals(below(self._line, 40, 8, 9))

    @column(pa.string())
    def l_returnflag(self) -> pa.Array:
        return _FLAGS.take(self._status)

    @column(pa.string())
    def l_linestatus(self) -> pa.Array:
        return _STATUSES.take(self._status)

    @column(TIME)
    def l_shipdate(self) -> Column:
        return self.time_us

    @cached_property
    def _line(self) -> Words:
        return self.words(_LINE)

    @cached_property
    def _quantity(self) -> Int64s:
        return 1 + below(self._line, 24, 8, 50)

    @cached_property
    def _status(self) -> Int64s:
        """The four pairs of flag and status, as often as in TPC-H, whatever the date."""
        return _statuses()[field(self._line, 48, 12)]

    @cached_property
    def _places(self) -> tuple[Int64s, Int64s]:
        """The group of orders that each line belongs to, and its place in the variants' tables."""
        lines = shuffled(np.arange(self.start, self.stop, dtype=np.int64), self.flow.seed)
        group = lines // _GROUP_LINES
        variant = field(mixed(group, self.flow.seed), 0, _VARIANT_BITS)
        return group, lines + (variant - group) * _GROUP_LINES


def order_keys(positions: Int64s) -> Int64s:
    """Keys as sparse as TPC-H's: the first eight of every thirty-two numbers."""
    keys: Int64s = (positions >> 3 << 5) + (positions & 7) + 1
    return keys


def shuffled(positions: Int64s, seed: int) -> Int64s:
    """Each position's place after a shuffle within its block: a permutation of every block."""
    block = positions >> _BLOCK_BITS
    first = int(block[0]) if len(block) else 0
    known = np.arange(first, int(block[-1]) + 1 if len(block) else 0, dtype=np.int64)
    word = mixed(known, seed)
    factor = (field(word, 0, _BLOCK_BITS) | 1)[block - first]
    term = field(word, 32, _BLOCK_BITS)[block - first]
    # Multiplying by an odd number, adding, and x ^= x >> n are each a bijection of the numbers
    # below a power of two. So the whole is a permutation of the block, without a table of it.
    mask = _BLOCK - 1
    place = positions & mask
    for shift in (9, 7):
        place = (place * factor + term) & mask
        place ^= place >> shift
    return (block << _BLOCK_BITS) + place


@lru_cache(maxsize=1)
def _statuses() -> Int64s:
    return shares(12, _FLAG_SHARES)


@lru_cache(maxsize=1)
def _variants() -> tuple[Int64s, Int64s]:
    """By variant and place in a group of 28 lines: the order in the group, and the line number."""
    draws = stream(0, LineSpan.FAMILY * STREAMS + _LINES)
    lengths = 1 + np.argsort(draws.random((1 << _VARIANT_BITS, _GROUP_ORDERS)), kind="stable")
    order = np.tile(np.arange(_GROUP_ORDERS), len(lengths)).repeat(lengths.ravel())
    number = np.concatenate([np.arange(1, n + 1) for n in lengths.ravel().tolist()])
    return order, number
