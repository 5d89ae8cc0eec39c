"""Durations, shares and rates with their intervals, as people read them."""

from __future__ import annotations

import math

from tidegate.model.cost.calibration import Estimate

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


def seconds_text(seconds: float) -> str:
    """A duration with three digits: 2.31 ns, 48 ms, 1.2 s."""
    if seconds == 0:
        return "0"
    size, unit = next(((s, u) for s, u in _UNITS if seconds >= 0.9995 * s), _UNITS[-1])
    return f"{number_text(seconds / size)} {unit}"


def number_text(number: float) -> str:
    """A number with about three digits: 0.00124, 2.31, 48, 20,100."""
    if number == 0:
        return "0"
    digits = max(2 - math.floor(math.log10(abs(number))), 0)
    rounded = round(number, max(2 - math.floor(math.log10(abs(number))), -3))
    text = f"{rounded:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def seconds_between(estimate: Estimate) -> str:
    """The interval of a duration, both ends in one unit: 2.1 to 2.5 ns."""
    if estimate.high == 0:
        return "0"
    if math.isinf(estimate.high):
        return f"{seconds_text(estimate.low)} or more"
    size, unit = next(((s, u) for s, u in _UNITS if estimate.high >= 0.9995 * s), _UNITS[-1])
    return f"{number_text(estimate.low / size)} to {number_text(estimate.high / size)} {unit}"


def numbers_between(estimate: Estimate) -> str:
    """The interval of a number."""
    if estimate.high == 0:
        return "0"
    if math.isinf(estimate.high):
        return f"{number_text(estimate.low)} or more"
    return f"{number_text(estimate.low)} to {number_text(estimate.high)}"
