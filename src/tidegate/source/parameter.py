"""Reads and checks the parameters in a URI, as in `generator:taxi?rows=1000&seed=7`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import parse_qsl

from tidegate.calendar.microsecond import read_us
from tidegate.errors import SourceError, near
from tidegate.remote.scheme import distinct
from tidegate.source.pace import EvenPace, Pacing, read_pace

T = TypeVar("T")


@dataclass(frozen=True)
class UriParameter:
    """The description of a parameter, for lists and messages."""

    name: str
    wanted: str
    default: str
    meaning: str


class Parameters:
    """The parameters after the `?`: take each by name, then call `done`, which refuses others."""

    def __init__(self, query: str, where: str) -> None:
        self.where = where
        self._given = distinct(parse_qsl(query, keep_blank_values=True), where, SourceError)
        self._taken: dict[str, UriParameter] = {}

    @property
    def taken(self) -> tuple[UriParameter, ...]:
        """The parameters taken so far, in that order."""
        return tuple(self._taken.values())

    def given(self, name: str) -> bool:
        return name in self._given

    def whole(
        self, name: str, default: int, low: int, high: int | None = None, meaning: str = ""
    ) -> int:
        """A whole number of at least `low` and at most `high`; underscores may group its digits."""
        wanted = f"a whole number from {low} {'on' if high is None else f'to {high}'}"
        return self._take(
            UriParameter(name, wanted, str(default), meaning),
            default,
            int,
            lambda v: v >= low and (high is None or v <= high),
        )

    def number(
        self,
        name: str,
        default: float,
        low: float,
        strict: bool = False,
        meaning: str = "",
        high: float = math.inf,
    ) -> float:
        """A number of at least `low`, or above it where `strict`, and at most `high`."""
        limit = "" if math.isinf(high) else f" to {high:g}"
        wanted = f"a number {'above' if strict else 'from'} {low:g}{limit}"
        wanted += "" if strict or limit else " on"
        return self._take(
            UriParameter(name, wanted, f"{default:g}", meaning),
            default,
            float,
            lambda v: math.isfinite(v) and (v > low if strict else v >= low) and v <= high,
        )

    def moment_us(self, name: str, default: str, meaning: str = "") -> int:
        """A time in ISO 8601, in UTC unless it says otherwise, as microseconds."""
        parameter = UriParameter(name, "a time in ISO 8601", default, meaning)
        return self._take(parameter, read_us(default), read_us, lambda v: True)

    def pace(self) -> Pacing | None:
        """The pace at which rows become known; None where all are known at once."""
        wanted = "a number above 0, or a CSV file with rates over time"
        meaning = "rows per second of wall time, as a live stream (default: all at once)"
        parameter = UriParameter("pace", wanted, "", meaning)
        text = self._take(parameter, "", str, lambda v: True)
        column = self._take(
            UriParameter("column", "a name", "", "with a file as pace: its column of rates"),
            None,
            str,
            lambda v: True,
        )
        try:
            rate = float(text or "nan")
        except ValueError:
            return read_pace(text, column, self.where)
        if self.given("pace") and not (math.isfinite(rate) and rate > 0):
            raise self._misfit(parameter, text)
        if column is not None:
            raise SourceError(
                self.where,
                "column is for a pace that is a CSV file",
                f"column={column} and {f'pace={text}' if text else 'no pace'}",
                "Leave column out.",
            )
        return EvenPace(rate) if self.given("pace") else None

    def done(self) -> None:
        """Refuse parameters that were not taken."""
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
        parameter: UriParameter,
        default: T,
        read: Callable[[str], T],
        fits: Callable[[T], bool],
    ) -> T:
        name = parameter.name
        self._taken[name] = parameter
        if name not in self._given:
            return default
        text = self._given[name]
        try:
            value = read(text)
        except ValueError as error:
            raise self._misfit(parameter, text) from error
        if not fits(value):
            raise self._misfit(parameter, text)
        return value

    def _misfit(self, parameter: UriParameter, text: str) -> SourceError:
        name = parameter.name
        remedy = f"Change {name} or leave it out."
        return SourceError(self.where, f"{name} must be {parameter.wanted}", repr(text), remedy)
