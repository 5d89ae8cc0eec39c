"""Call records (CDRs) of a mobile telephone network, with the columns of StreamCloud's queries."""

from __future__ import annotations

import math
from functools import cached_property, lru_cache

import numpy as np
import pyarrow as pa

from tidegate.calendar.microsecond import SECOND_US
from tidegate.connector import Int64s
from tidegate.schema import TIME
from tidegate.source.generate.draw import Floats, Words, below, field, mixed, quantiles, stream
from tidegate.source.generate.flow import Keys, read_flow
from tidegate.source.generate.label import Labels, digits, scattered
from tidegate.source.generate.span import STREAMS, Column, TimedSpan, column
from tidegate.source.generate.workload import SpanGenerator
from tidegate.source.parameter import Parameters

_CALLER, _CALL, _PLACE, _MAP = range(1, 5)
_DISTRICTS = 200
_PREFIX = "346"
_MEAN_MS = 120_000


def calls(parameters: Parameters) -> SpanGenerator:
    """Records in the order in which the network emits them, shortly after each call's end."""
    subscribers = Keys("subscribers who call", 100_000, 0.6, low=2)
    return SpanGenerator(
        CallSpan, read_flow(parameters, 1_000.0, "2012-01-01T00:00:00Z", subscribers)
    )


class CallSpan(TimedSpan):
    """The columns of a range of records."""

    FAMILY = 1

    @column(pa.string())
    def src(self) -> pa.Array:
        return _numbers(self.flow.keys, self.flow.seed).take(self._caller)

    @column(pa.string())
    def dst(self) -> pa.Array:
        """Any other subscriber, all alike."""
        keys = self.flow.keys
        callee = self._caller + 1 + below(self._call, 0, 32, keys - 1)
        callee -= keys * (callee >= keys)
        return _numbers(keys, self.flow.seed).take(callee)

    @column(TIME)
    def start_time(self) -> Column:
        return self._end_us - 1_000 * _durations_ms()[field(self._call, 32, 12)]

    @column(TIME)
    def end_time(self) -> Column:
        return self._end_us

    @column(pa.int32())
    def district(self) -> Column:
        return self._district + 1

    @column(pa.float64())
    def lat(self) -> Column:
        return _centres(self.flow.seed)[0][self._district] + self._offset(0)

    @column(pa.float64())
    def lon(self) -> Column:
        return _centres(self.flow.seed)[1][self._district] + self._offset(16)

    @cached_property
    def _caller(self) -> Int64s:
        return self.ranked(_CALLER)

    @cached_property
    def _call(self) -> Words:
        return self.words(_CALL)

    @cached_property
    def _place(self) -> Words:
        return self.words(_PLACE)

    @cached_property
    def _end_us(self) -> Int64s:
        """Up to two seconds before the record was emitted."""
        ends: Int64s = self.time_us - below(self._call, 44, 20, 2 * SECOND_US)
        return ends

    @cached_property
    def _district(self) -> Int64s:
        """Where the caller lives, for one call in eight somewhere else."""
        home = below(mixed(self._caller, self.flow.seed), 0, 32, _DISTRICTS)
        away = below(self._place, 32, 16, _DISTRICTS)
        return np.where(field(self._place, 48, 3) == 0, away, home)

    def _offset(self, shift: int) -> Floats:
        """Within about five kilometres of the district's centre."""
        share = field(self._place, shift, 16).astype(np.float64)
        return share * (0.1 / 65_536) - 0.05


@lru_cache(maxsize=4)
def _numbers(keys: int, seed: int) -> Labels:
    text = digits(scattered(keys, 10**8, seed), 8)
    prefix = np.frombuffer(_PREFIX.encode("ascii"), np.uint8)
    return Labels.of(np.hstack([np.broadcast_to(prefix, (keys, len(prefix))), text]))


@lru_cache(maxsize=1)
def _durations_ms() -> Int64s:
    """Quantiles of an exponential duration, of at least a second."""
    return quantiles(12, lambda share: 1_000 - _MEAN_MS * math.log(1 - share))


@lru_cache(maxsize=4)
def _centres(seed: int) -> tuple[Floats, Floats]:
    """Latitudes and longitudes of the districts, in a country of ten by ten degrees."""
    spread = stream(seed, CallSpan.FAMILY * STREAMS + _MAP).random((2, _DISTRICTS))
    return 36 + 7.5 * spread[0], -9 + 12 * spread[1]
