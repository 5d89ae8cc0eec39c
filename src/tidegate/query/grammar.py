"""The grammar of clauses and windows: each lists its parts, and SQL parses, prints and reads them.

A part is a value, after a word of its own where it has one: `CONFIDENCE 95 PERCENT`. The value
fills a field of the clause or the window.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

from sqlglot import exp

from tidegate.duration import Months, duration_text, duration_us, scaled_us, unit_us
from tidegate.errors import QueryError


class SyntaxReader(Protocol):
    """What the SQL parser reads for a value; `expected` is what it says where that is not there."""

    def read_count(self, expected: str) -> exp.Expr: ...

    def read_duration(self) -> exp.Expr: ...

    def read_range(self) -> exp.Expr: ...

    def read_word(self, words: Iterable[str], expected: str) -> str: ...

    def read_name(self, expected: str) -> exp.Expr: ...


class SyntaxValue(ABC):
    """What may stand in a part; `unit` is the word that must follow it."""

    unit: str = ""

    @abstractmethod
    def parse(self, reader: SyntaxReader, after: str) -> exp.Expr:
        """The syntax node of the value, which comes after a word."""

    @abstractmethod
    def read(self, node: exp.Expr, where: str) -> Any:
        """The value that a syntax node means."""

    @abstractmethod
    def text(self, value: Any) -> str:
        """The value as SQL has it, its unit included."""


class CountValue(SyntaxValue):
    """A whole number of rows: `5`, or where a unit follows `5 ROWS`."""

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
    """`10 PERCENT`, a share of 0.1."""

    unit, expected = "PERCENT", "expected a number and PERCENT"

    def read(self, node: exp.Expr, where: str) -> float:  # type: ignore[override]
        return float(_number(node) / 100)

    def text(self, value: float) -> str:
        """Exactly: two shares are never one text, because the text says which query it is."""
        return f"{(Decimal(repr(float(value))) * 100).normalize():f} {self.unit}"


PERCENT = PercentValue()


class DurationValue(SyntaxValue):
    """`15 MINUTES`, or the text '15 minutes', in microseconds."""

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
    """A duration, or whole months: `1 MONTH`."""

    def parse(self, reader: SyntaxReader, after: str) -> exp.Expr:
        return reader.read_range()

    def read(self, node: exp.Expr, where: str) -> int | Months:  # type: ignore[override]
        unit = node.args.get("unit")
        months = Months.read(f"{node.this.name} {unit.name if unit is not None else ''}")
        return super().read(node, where) if months is None else months


class TextValue(SyntaxValue):
    """A text in quotes, as it is written."""

    def parse(self, reader: SyntaxReader, after: str) -> exp.Expr:
        return reader.read_name(f"expected a text in quotes after {after}")

    def read(self, node: exp.Expr, where: str) -> str:
        return str(node.name)

    def text(self, value: str) -> str:
        return f"'{value}'"


@dataclass(frozen=True)
class NameValue(SyntaxValue):
    """A name, or a text in quotes where it has parameters; in small letters."""

    expected: str = "expected a name"

    def parse(self, reader: SyntaxReader, after: str) -> exp.Expr:
        return reader.read_name(self.expected)

    def read(self, node: exp.Expr, where: str) -> str:
        return str(node.name).lower()

    def text(self, value: str) -> str:
        return value


@dataclass(frozen=True)
class WordValue(NameValue):
    """One of some words, in small letters here and in capitals in SQL."""

    words: tuple[str, ...] = ()

    def parse(self, reader: SyntaxReader, after: str) -> exp.Expr:
        words = tuple(word.upper() for word in self.words)
        return exp.var(reader.read_word(words, f"expected {listed(words)} after {after}"))

    def text(self, value: str) -> str:
        return value.upper()


@dataclass(frozen=True)
class SyntaxPart:
    """A value, the field that it fills, and the word before it.

    A part without a word, or that is `required`, must be written. One that is `quiet` is not in
    the text of a clause that has its default.
    """

    field: str
    value: SyntaxValue
    word: str = ""
    required: bool = False
    quiet: bool = False


def listed(words: tuple[str, ...]) -> str:
    """For messages: MAX, MEAN or RMS."""
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def _number(node: exp.Expr) -> Decimal:
    return -Decimal(node.this.name) if isinstance(node, exp.Neg) else Decimal(node.name)
