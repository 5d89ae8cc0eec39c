"""Reads constant intervals such as INTERVAL '5' MINUTES into months and microseconds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

from tidegate.calendar.microsecond import UNITS_US
from tidegate.errors import QueryError, near
from tidegate.expression.tree import Literal
from tidegate.query.types.coercion import SPAN, UnknownKernel

_UNITS_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_PAIR = re.compile(r"\s*([+-]?\s*\d+(?:\.\d*)?)\s*([A-Za-z]+)")
_NUMBER = re.compile(r"[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})")
_CLOCK = {
    ("day", "hour"): ("day", "hour"),
    ("day", "minute"): ("day", "hour", "minute"),
    ("day", "second"): ("day", "hour", "minute", "second"),
    ("hour", "minute"): ("hour", "minute"),
    ("hour", "second"): ("hour", "minute", "second"),
    ("minute", "second"): ("minute", "second"),
    ("year", "month"): ("year", "month"),
}


@dataclass(frozen=True)
class CalendarInterval:
    """A constant interval: months, or microseconds (`days_only` if it was written in days or
    weeks).

    Months differ in length, so adding them depends on the date.
    """

    months: int
    micros: int
    days_only: bool = False

    def span(self, where: str) -> Literal:
        if self.months:
            raise UnknownKernel(
                where,
                "an interval beside other intervals must be of days or less",
                f"{self.months} months",
                "Run with a Spark master.",
            )
        return Literal(self.micros, SPAN)


def read_interval(node: exp.Interval, where: str) -> CalendarInterval:
    """The value of an interval node; its number must be a constant."""
    unit = node.args.get("unit")
    text = _text(node, where)
    if isinstance(unit, exp.IntervalSpan):
        return _span(text, unit, where)
    if unit is not None:
        return _total([(text, str(unit.name))], where)
    pairs = _PAIR.findall(text)
    if not pairs or _PAIR.sub("", text).strip():
        raise QueryError(where, "an interval must be a number and a unit", repr(text))
    return _total(pairs, where)


def _text(node: exp.Interval, where: str) -> str:
    value = node.this
    sign = ""
    while isinstance(value, exp.Neg | exp.Paren):
        sign = ("" if sign else "-") if isinstance(value, exp.Neg) else sign
        value = value.this
    if not isinstance(value, exp.Literal):
        raise QueryError(where, "an interval must be a constant", node.sql("spark"))
    return sign + str(value.this)


def _total(pairs: list[tuple[str, str]], where: str) -> CalendarInterval:
    months, micros, days_only = 0, Fraction(0), True
    for number, written in pairs:
        unit = written.lower().removesuffix("s")
        bare = number.replace(" ", "")
        if not _NUMBER.fullmatch(bare):
            raise QueryError(where, "an interval must be a number", repr(number))
        amount = Fraction(bare)
        if unit in _UNITS_MONTHS and amount.denominator == 1:
            months += int(amount) * _UNITS_MONTHS[unit]
        elif unit in UNITS_US:
            micros += amount * UNITS_US[unit]
            days_only &= unit in ("day", "week")
        else:
            known = [*UNITS_US, *_UNITS_MONTHS]
            raise QueryError(where, "an interval's unit must be known", written, near(unit, known))
    if months and micros:
        got = " ".join(f"{number} {unit}" for number, unit in pairs)
        raise QueryError(where, "an interval must not mix months with days or less", got)
    if abs(micros) >= 2**63 or abs(months) >= 2**31:
        got = " ".join(f"{number} {unit}" for number, unit in pairs)
        requirement = "an interval must fit 64 bits of microseconds, or 32 bits of months"
        raise QueryError(where, requirement, got)
    if micros.denominator != 1:
        raise QueryError(where, "an interval must be whole microseconds", str(float(micros)))
    return CalendarInterval(months, int(micros), days_only and not months)


def _span(text: str, span: exp.IntervalSpan, where: str) -> CalendarInterval:
    ends = (str(span.this.name).lower(), str(span.expression.name).lower())
    units = _CLOCK.get(ends)
    parts = re.split(r"[ :-]", text.strip().lstrip("+-"))
    if units is None or len(parts) != len(units) or not all(parts):
        raise QueryError(
            where, f"an interval {ends[0]} to {ends[1]} must fit its fields", repr(text)
        )
    total = _total(list(zip(parts, units, strict=True)), where)
    if text.strip().startswith("-"):
        return CalendarInterval(-total.months, -total.micros)
    return CalendarInterval(total.months, total.micros)
