"""The two streams of the band-join benchmark: `r` and `s`, with uniform values to compare."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.connector import Int64s
from tidegate.source.generate.draw import Words, below, field, stream
from tidegate.source.generate.flow import Flow, read_flow
from tidegate.source.generate.label import Labels
from tidegate.source.generate.span import STREAMS, Column, TimedSpan, column
from tidegate.source.generate.workload import SpanGenerator
from tidegate.source.parameter import Parameters

_VALUES, _MORE, _TEXTS = range(1, 4)
_DOMAIN = 10_000
_TEXT_BITS = 12
_TEXT_WIDTH = 20
_START = "2015-01-01T00:00:00Z"


@dataclass(frozen=True)
class Band(Flow):
    """A flow of values that are uniform in [1, domain]."""

    domain: int = _DOMAIN


def r(parameters: Parameters) -> SpanGenerator:
    """The left side: x and y are compared with a and b of `s`."""
    return SpanGenerator(R, _band(parameters))


def s(parameters: Parameters) -> SpanGenerator:
    """The right side; with a band of 10, one pair of 250 000 matches, or of 100 for domain 200."""
    return SpanGenerator(S, _band(parameters))


def _band(parameters: Parameters) -> Band:
    flow = read_flow(parameters, 1_000.0, _START)
    domain = parameters.whole(
        "domain", _DOMAIN, 1, 2**24, meaning="values to compare are uniform from 1 to this"
    )
    return Band(**vars(flow), domain=domain)


class BandSpan(TimedSpan):
    """What both streams have: an event time, a whole number and a real one."""

    flow: Band

    @cached_property
    def _values(self) -> Words:
        return self.words(_VALUES)

    def _whole(self) -> Int64s:
        return 1 + below(self._values, 0, 32, self.flow.domain)

    def _real(self) -> NDArray[np.float32]:
        share: NDArray[np.float32] = field(self._values, 32, 24).astype(np.float32)
        share *= np.float32(2**-24)
        share *= np.float32(self.flow.domain - 1)
        return share + np.float32(1)


class R(BandSpan):
    """The columns of a range of the left side."""

    FAMILY = 5

    @column(pa.int32())
    def x(self) -> Column:
        return self._whole()

    @column(pa.float32())
    def y(self) -> Column:
        return self._real()

    @column(pa.string())
    def z(self) -> pa.Array:
        return _texts(self.flow.seed).take(self._text)

    @cached_property
    def _text(self) -> Int64s:
        return field(self.words(_MORE), 0, _TEXT_BITS)


class S(BandSpan):
    """The columns of a range of the right side."""

    FAMILY = 6

    @column(pa.int32())
    def a(self) -> Column:
        return self._whole()

    @column(pa.float32())
    def b(self) -> Column:
        return self._real()

    @column(pa.float64())
    def c(self) -> Column:
        return self.uniform(_MORE)

    @column(pa.bool_())
    def d(self) -> Column:
        return field(self._values, 56, 1) == 1


@lru_cache(maxsize=4)
def _texts(seed: int) -> Labels:
    """Texts of twenty letters."""
    draws = stream(seed, R.FAMILY * STREAMS + _TEXTS).random((1 << _TEXT_BITS, _TEXT_WIDTH))
    return Labels.of((draws * 26 + ord("a")).astype(np.uint8))
