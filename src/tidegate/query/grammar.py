"""The grammar of clauses and windows: each lists its parts, and SQL parses, prints and reads them.

A part is a value, usually after a word: `CONFIDENCE 95 PERCENT`. The value fills a field of the
clause or window.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

from sqlglot import exp

from tidegate.calendar.duration import Months, duration_text, duration_us, scaled_us, unit_us
from tidegate.errors import QueryError


class SyntaxReader(Protocol):
    """What a value needs from the SQL parser; `expected` is the text of the error."""

    def read_count(self, expected: str) -> exp.Expr: ...

    def read_duration(self) -> exp.Expr: ...

    def read_range(self) -> exp.Expr: ...

    def read_word(self, words: Iterable[str], expected: str) -> str: ...

    def read_name(self, expected: str) -> exp.Expr: ...


class SyntaxValue(ABC):
    """A kind of value in a part; `unit` is the word that must follow it."""

    unit: str = ""

    @abstractmethod
    def parse(self, reader: SyntaxReader, after: str) -> exp.Expr:
        """Parses the value that follows the word `after`."""

    @abstractmethod
    def read(self, node: exp.Expr, where: str) -> Any:
        """The Python value of a parsed node."""

    @abstractmethod
    def text(self, value: Any) -> str:
        """The value in SQL, with its unit."""


class CountValue(SyntaxValue):
    """A whole number of rows: `5`, or `5 ROWS` if it has a unit."""

    expected = "expected a number"

    def parse(self, reader: SyntaxReader, after: str) -> exp.Expr:
        return reader.read_count(self.expected)

    def read(self, node: exp.Expr, where: str) -> int:
        value = _number(node)
        if value != value.to_integral_value():
            raise QueryError(where, "must be a whole number of rows", str(value))
        return int(value)

    def text(self, value: int) -> str:
        return f"{value} {self.unit}".rstrip()


class RowsValue(CountValue):
    """`1000 ROWS`."""

    unit, expected = "ROWS", "expected a number of ROWS"


class InstancesValue(CountValue):
    """`8 INSTANCES`."""

    unit, expected = "INSTANCES", "expected a number of INSTANCES"


class PercentValue(CountValue):
    """`10 PERCENT`, the share 0.1."""

    unit, expected = "PERCENT", "expected a number and PERCENT"

    def read(self, node: exp.Expr, where: str) -> float:  # type: ignore[override]
        return float(_number(node) / 100)

    def text(self, value: float) -> str:
        """Exact, so that two shares never have one text: the text identifies the query."""
        return f"{(Decimal(repr(float(value))) * 100).normalize():f} {self.unit}"


PERCENT = PercentValue()


class DurationValue(SyntaxValue):
    """`15 MINUTES` or '15 minutes', in microseconds."""

    def parse(self, reader: SyntaxReader, after: str) -> exp.Expr:
        return reader.read_duration()

    def read(self, node: exp.Expr, where: str) -> int:
        unit = node.args.get("unit")
        if unit is None:
            return duration_us(node.this.name, where)
        return scaled_us(_number(node.this), unit_us(unit.name, where), where)

    def text(self, value: int) -> str:
        return duration_text(value)


class RangeValue(DurationValue):
    """A duration, or a number of months: `1 MONTH`."""

    def parse(self, reader: SyntaxReader, after: str) -> exp.Expr:
        return reader.read_range()

    def read(self, node: exp.Expr, where: str) -> int | Months:  # type: ignore[override]
        unit = node.args.get("unit")
        months = Months.read(f"{node.this.name} {unit.name if unit is not None else ''}")
        return super().read(node, where) if months is None else months


class TextValue(SyntaxValue):
    """A quoted text."""

    def parse(self, reader: SyntaxReader, after: str) -> exp.Expr:
        return reader.read_name(f"expected a text in quotes after {after}")

    def read(self, node: exp.Expr, where: str) -> str:
        return str(node.name)

    def text(self, value: str) -> str:
        return f"'{value}'"


@dataclass(frozen=True)
class NameValue(SyntaxValue):
    """A name, quoted if it has parameters; in lower case."""

    expected: str = "expected a name"

    def parse(self, reader: SyntaxReader, after: str) -> exp.Expr:
        return reader.read_name(self.expected)

    def read(self, node: exp.Expr, where: str) -> str:
        return str(node.name).lower()

    def text(self, value: str) -> str:
        return value


@dataclass(frozen=True)
class WordValue(NameValue):
    """One of several words: lower case in Python, upper case in SQL."""

    words: tuple[str, ...] = ()

    def parse(self, reader: SyntaxReader, after: str) -> exp.Expr:
        words = tuple(word.upper() for word in self.words)
        return exp.var(reader.read_word(words, f"expected {listed(words)} after {after}"))

    def text(self, value: str) -> str:
        return value.upper()


@dataclass(frozen=True)
class SyntaxPart:
    """A value, the field that it fills, and the word before it.

    A part without a word must be written, and so must one that is `required`. A `quiet` part is
    left out of the clause's text if it has the default.
    """

    field: str
    value: SyntaxValue
    word: str = ""
    required: bool = False
    quiet: bool = False


def listed(words: tuple[str, ...]) -> str:
    """A list for messages: MAX, MEAN or RMS."""
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def _number(node: exp.Expr) -> Decimal:
    return -Decimal(node.this.name) if isinstance(node, exp.Neg) else Decimal(node.name)
