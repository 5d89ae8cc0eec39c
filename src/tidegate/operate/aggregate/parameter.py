"""The constants in calls of aggregate functions: numbers, text, and the directions of ORDER BY."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

from tidegate.errors import QueryError


class Constant(Protocol):
    """A constant that follows the columns of a call.

    Without a default (None) it must be given.
    """

    @property
    def name(self) -> str:
        """Its keyword in Python."""

    @property
    def python_type(self) -> type:
        """The type of its value in Python."""

    @property
    def kind(self) -> str:
        """What must be given, as a requirement for messages."""

    @property
    def default(self) -> Any:
        """Its value where nothing is given."""

    def of_literal(self, text: str, quoted: bool) -> Any:
        """The value of a literal of SQL; None where it is of another kind."""

    def value(self, given: Any, where: str) -> Any:
        """Check and convert a value; None gives the default, and a wrong one QueryError."""


@dataclass(frozen=True)
class Parameter:
    """A number from `low` to `high`; `meaning` is its name in messages."""

    name: str
    meaning: str
    low: float
    high: float
    default: float | None = None
    python_type: ClassVar[type] = float

    @property
    def kind(self) -> str:
        return f"the {self.meaning} must be a number {self._bounds}"

    @property
    def _bounds(self) -> str:
        return f"between {self.low:.10g} and {self.high:.10g}"

    def of_literal(self, text: str, quoted: bool) -> float | None:
        return None if quoted else float(text)

    def value(self, given: Any, where: str) -> float:
        if given is None and self.default is not None:
            return self.default
        try:
            value = float(given)
        except (TypeError, ValueError):
            got = "nothing" if given is None else repr(given)
            raise QueryError(where, self.kind, got) from None
        if not self.low <= value <= self.high:
            raise QueryError(where, f"the {self.meaning} must be {self._bounds}", str(value))
        return value


@dataclass(frozen=True)
class Text:
    """A text; `meaning` is its name in messages."""

    name: str
    meaning: str
    default: str
    python_type: ClassVar[type] = str

    @property
    def kind(self) -> str:
        return f"the {self.meaning} must be a text in quotes"

    def of_literal(self, text: str, quoted: bool) -> str | None:
        return text if quoted else None

    def value(self, given: Any, where: str) -> str:
        if given is None:
            return self.default
        if not isinstance(given, str):
            raise QueryError(where, self.kind, repr(given))
        return given


class Way(NamedTuple):
    """The direction of one key of ORDER BY inside a call; by default NULL is the smallest."""

    descending: bool = False
    nulls_first: bool = True

    @property
    def words(self) -> str:
        """As SQL writes it after the key, with a space before it."""
        way = " DESC" if self.descending else ""
        unusual = self.nulls_first == self.descending
        return f"{way} NULLS {'FIRST' if self.nulls_first else 'LAST'}" if unusual else way


@dataclass(frozen=True)
class Ways:
    """The directions of the keys of ORDER BY inside a call; no user writes this constant."""

    name = "ways"
    python_type = tuple
    kind = "there must be a way for each key"
    default = ()

    def of_literal(self, text: str, quoted: bool) -> None:
        return None

    def value(self, given: Sequence[Way] | None, where: str) -> tuple[Way, ...]:
        return tuple(given or ())
