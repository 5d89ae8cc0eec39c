"""Finds lines of JSON that are nested too deep for the parsers."""

from __future__ import annotations

import re

import numpy as np

DEEPEST = 50
"""How many levels of objects and arrays a line may have, itself included. Tuples travel in Arrow's
messages, which hold at most 64 levels, and operators may wrap a value in some of them."""

TOO_DEEP = f"nested deeper than {DEEPEST} levels"

_OTHERS = bytes(set(range(256)) - set(b"{[]}\n"))
_STEPS = np.zeros(256, np.int32)
_STEPS[list(b"{[")], _STEPS[list(b"}]")] = 1, -1

_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)


def has_deep(data: bytes, lines: int) -> bool:
    """Whether one of the lines, all of them objects, is too deep.

    Costs two counts of bytes for flat lines, and a pass over all brackets for others.
    """
    if data.count(b"{") + data.count(b"[") < lines + DEEPEST:  # each line has at least one
        return False
    return _depth(data) > DEEPEST and any(is_deep(line) for line in data.split(b"\n"))


def is_deep(line: bytes) -> bool:
    """Whether a line has too many levels; brackets inside strings do not count."""
    if line.count(b"{") + line.count(b"[") <= DEEPEST:
        return False
    return _depth(_STRING.sub(b"", line)) > DEEPEST


def _depth(data: bytes) -> int:
    """The most brackets open at once in a line; counts those inside strings too: an upper bound."""
    # A line's depth is the running sum within it: the maximum between two line feeds, less the sum
    # at the first of them, which earlier lines with unbalanced brackets may have moved.
    brackets = np.frombuffer(b"\n" + data.translate(None, _OTHERS), np.uint8)
    depths = np.cumsum(_STEPS[brackets])
    starts = np.flatnonzero(brackets == 10)
    return int((np.maximum.reduceat(depths, starts) - depths[starts]).max())
