"""Generated rows as a source, between `generator:NAME?...` and functions of a position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from tidegate.errors import SourceError, near
from tidegate.source.event_time import check_time, to_us
from tidegate.source.parameter import Parameters
from tidegate.source.protocol import Bools, Int64s, Rows, check_columns
from tidegate.source.taxi import taxi


class Generator(Protocol):
    """Rows that are a pure function of their position; picklable."""

    @property
    def schema(self) -> pa.Schema:
        """Normalised."""

    @property
    def time(self) -> str:
        """The time column, where a query names none."""

    @property
    def rows(self) -> int: ...

    def read(self, columns: Sequence[str], start: int, stop: int) -> pa.Table:
        """The named columns of the positions [start, stop)."""


Make = Callable[[Parameters], Generator]

_REGISTRY: dict[str, Make] = {"taxi": taxi}


def register(name: str, make: Make) -> None:
    """Let `generator:NAME` stand for a generator; `make` takes its parameters from the URI."""
    _REGISTRY[name] = make


@dataclass(frozen=True)
class GeneratorReader:
    """Positions [start, stop), computed where they are read."""

    generator: Generator
    start: int
    stop: int

    def read(self, columns: Sequence[str]) -> Rows:
        check_columns(columns, self.generator.schema, type(self.generator).__name__)
        table = self.generator.read(columns, self.start, self.stop)
        return Rows(table, np.arange(self.start, self.stop, dtype=np.int64))


class GeneratorSource:
    """A generator's rows: source and connector in one."""

    def __init__(self, id: str, generator: Generator, time: str | None) -> None:
        self.id = id
        self.schema = generator.schema
        self._generator = generator
        self._time = generator.time if time is None else time
        check_time(self.schema, self._time, id)

    def discover(self) -> Sequence[GeneratorSource]:
        return [self]

    def live(self) -> bool:
        return False

    def extend(self, rows: int) -> int:
        return self._generator.rows

    def ended(self) -> bool:
        return True

    def times(self, start: int, stop: int) -> tuple[Int64s, Bools]:
        return to_us(self._generator.read([self._time], start, stop).column(0))

    def reader(self, start: int, stop: int) -> GeneratorReader:
        return GeneratorReader(self._generator, start, stop)


def open_generator(uri: str, where: str, time: str | None) -> GeneratorSource:
    """The source that `generator:NAME?parameter=value&...` stands for."""
    name, _, query = uri.removeprefix("generator:").partition("?")
    if name not in _REGISTRY:
        raise SourceError(
            where, "the generator must be known", name or uri, near(name, sorted(_REGISTRY))
        )
    parameters = Parameters(query, f"{where}, generator {name}")
    generator = _REGISTRY[name](parameters)
    parameters.done()
    return GeneratorSource(uri, generator, time)
