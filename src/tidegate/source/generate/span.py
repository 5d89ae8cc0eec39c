"""A range of positions of a generated stream: its event times, keys and declared columns."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.connector import Int64s
from tidegate.schema import TIME
from tidegate.source.generate.draw import Floats, Words, bells, stream, words
from tidegate.source.generate.flow import Flow
from tidegate.source.generate.zipf import ranks, zipf

STREAMS = 16
"""How many streams of draws each family has; this module uses the first and the last two."""

_ARRIVAL = 0
_DISORDER = 15
_WARP = 14
_STRETCHES = 1024
_STRETCH_ROWS = 1024


Column: TypeAlias = pa.Array | NDArray[Any]
"""Values of a column; numbers may be of a wider type than the declared one."""
S = TypeVar("S", bound="Span")


class column:
    """Declares a method of a span as a column of a type; for TIME it returns microseconds.

    The methods in their order are the schema. What several columns need is a `cached_property` of
    the span.
    """

    def __init__(self, type_: pa.DataType) -> None:
        self.type = type_

    def __call__(self, compute: Callable[[S], Column]) -> Callable[[S], pa.Array]:
        numbers = pa.int64() if self.type == TIME else self.type

        def values(span: S) -> pa.Array:
            found = compute(span)
            if not isinstance(found, pa.Array):
                found = pa.array(found.astype(numbers.to_pandas_dtype(), copy=False))
            return found.cast(TIME) if self.type == TIME else found

        values.declared = self.type  # type: ignore[attr-defined]
        values.__doc__ = compute.__doc__
        return values


class Span:
    """Positions [start, stop) of a stream.

    A subclass has a method for each `column`, and a family number of its own, so that streams with
    the same seed are independent.
    """

    FAMILY: ClassVar[int]
    SCHEMA: ClassVar[pa.Schema]
    TIME_COLUMN: ClassVar[str] = "ts"

    def __init_subclass__(cls) -> None:
        every = {name: f for c in reversed(cls.__mro__) for name, f in vars(c).items()}
        cls.SCHEMA = pa.schema(
            [(n, f.declared) for n, f in every.items() if hasattr(f, "declared")]
        )

    def __init__(self, flow: Flow, start: int, stop: int) -> None:
        self.flow = flow
        self.start = start
        self.stop = stop

    def uniform(self, number: int) -> Floats:
        """Numbers in [0, 1), one per position."""
        draws = stream(self.flow.seed, self._stream(number), self.start)
        return draws.random(self.stop - self.start)

    def words(self, number: int) -> Words:
        """64 random bits per position."""
        return words(self.flow.seed, self._stream(number), self.start, self.stop)

    @cached_property
    def since_us(self) -> Int64s:
        """Event times after the start, before rows are put out of order; they never decrease.

        Each row happens within its own slot of 1 / rate seconds, or of its stretch's width.
        """
        # A time follows from the position alone, so any range is computed without the rows before
        # it; a random gap between rows would need all of them.
        slots = np.arange(self.start, self.stop, dtype=np.float64) + self.uniform(_ARRIVAL)
        if self.flow.burst:
            slots = _warped(slots, _knots(self.flow.seed, self._stream(_WARP), self.flow.burst))
        if self.flow.traced is not None:
            return np.floor(self.flow.traced.seconds_of(slots) * 1_000_000).astype(np.int64)
        return np.floor(slots * (1_000_000 / self.flow.rate)).astype(np.int64)

    @cached_property
    def time_us(self) -> Int64s:
        """Event times of the rows in microseconds UTC."""
        times: Int64s = self.since_us + self.flow.start_us
        if self.flow.disorder_us:
            early = self.uniform(_DISORDER) * (self.flow.disorder_us + 1)
            times -= early.astype(np.int64)
        return times

    def ranked(self, number: int) -> Int64s:
        """Keys drawn by the Zipf law; with drift, the ranks of keys move with the event time."""
        flow = self.flow
        found = ranks(zipf(flow.keys, flow.skew), self.uniform(number))
        if flow.drift:
            found -= np.floor(self.since_us * (flow.drift / 1_000_000)).astype(np.int64)
            found %= flow.keys
        return found

    def _stream(self, number: int) -> int:
        return self.FAMILY * STREAMS + number


class TimedSpan(Span):
    """A span whose first column, `ts`, has the event times."""

    @column(TIME)
    def ts(self) -> Int64s:
        return self.time_us


@lru_cache(maxsize=8)
def _knots(seed: int, number: int, burst: float) -> Floats:
    """The beginnings of stretches, in slots of an even rate, and the end of the last one.

    All stretches together are as long as at an even rate. Knots are multiples of 2**-20, so that
    the beginning of a stretch plus a part of it is exact enough never to pass its end.
    """
    order = np.argsort(stream(seed, number).random(_STRETCHES), kind="stable")
    gaps = np.array([math.exp(burst * z) for z in bells(_STRETCHES).tolist()])[order]
    ends = np.cumsum(gaps) / math.fsum(gaps.tolist()) * (_STRETCHES * _STRETCH_ROWS)
    ends[-1] = _STRETCHES * _STRETCH_ROWS
    knots: Floats = np.floor(np.concatenate([[0.0], ends]) * 2**20) / 2**20
    return knots


def _warped(slots: Floats, knots: Floats) -> Floats:
    """Move slots of an even rate into stretches of different widths; a cycle keeps its length."""
    whole = np.floor(slots / (_STRETCHES * _STRETCH_ROWS)) * (_STRETCHES * _STRETCH_ROWS)
    place = (slots - whole) / _STRETCH_ROWS
    stretch = place.astype(np.int64)
    width = np.diff(knots)[stretch]
    moved: Floats = whole + (knots[stretch] + (place - stretch) * width)
    return moved
