"""Parameters in a URI, as in `generator:taxi?rows=1000&seed=7`, between text and values."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar
from urllib.parse import parse_qsl

from tidegate.errors import SourceError, near

T = TypeVar("T")


class Parameters:
    """The values after the `?`; each is taken once by name, then `done` refuses what is left."""

    def __init__(self, query: str, where: str) -> None:
        self.where = where
        self._given = dict(parse_qsl(query, keep_blank_values=True))
        self._taken: list[str] = []

    def whole(self, name: str, default: int, low: int) -> int:
        """A whole number of at least `low`; underscores may group its digits."""
        return self._take(name, default, int, lambda v: v >= low, f"a whole number from {low} on")

    def number(self, name: str, default: float, low: float, strict: bool = False) -> float:
        """A number of at least `low`, or above it where `strict`."""
        wanted = f"a number {'above' if strict else 'from'} {low:g}{'' if strict else ' on'}"
        return self._take(
            name,
            default,
            float,
            lambda v: math.isfinite(v) and (v > low if strict else v >= low),
            wanted,
        )

    def moment_us(self, name: str, default: str) -> int:
        """A time in ISO 8601, in UTC unless it says otherwise, as microseconds."""
        fallback = _moment_us(default)
        return self._take(name, fallback, _moment_us, lambda v: True, "a time in ISO 8601")

    def done(self) -> None:
        """Refuse parameters that nobody took."""
        for name in self._given:
            if name not in self._taken:
                raise SourceError(
                    self.where,
                    "parameters must be known",
                    f"parameter {name}",
                    near(name, self._taken),
                )

    def _take(
        self,
        name: str,
        default: T,
        read: Callable[[str], T],
        fits: Callable[[T], bool],
        wanted: str,
    ) -> T:
        self._taken.append(name)
        if name not in self._given:
            return default
        text = self._given[name]
        try:
            value = read(text)
        except ValueError as error:
            raise self._misfit(name, wanted, text) from error
        if not fits(value):
            raise self._misfit(name, wanted, text)
        return value

    def _misfit(self, name: str, wanted: str, text: str) -> SourceError:
        remedy = f"Change {name} or leave it out."
        return SourceError(self.where, f"{name} must be {wanted}", repr(text), remedy)


def _moment_us(text: str) -> int:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
