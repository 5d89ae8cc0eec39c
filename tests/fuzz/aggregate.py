"""Calls of aggregate functions that both engines have, by chance."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from tests.fuzz.expression import Expr, Grammar
from tests.fuzz.row import BOOLEAN, DECIMAL, DOUBLE, LONG, REAL, Chance, Kind


@dataclass(frozen=True)
class Call:
    """A call in both dialects, and the kind of its result."""

    spark: str
    duck: str
    kind: Kind


TOTAL = Kind("total", pa.decimal128(22, 3), "DECIMAL(22,3)", "DECIMAL(22,3)", DECIMAL.draw)
"""What a sum of decimals is; no expression is made of it."""


def draw_call(chance: Chance, grammar: Grammar) -> Call:
    draw = chance.random()
    if draw < 0.15:
        return Call("COUNT(*)", "COUNT(*)", LONG)
    if draw < 0.5:
        return _of_anything(chance, grammar)
    if draw < 0.75:
        return _of_numbers(chance, grammar)
    if draw < 0.9:
        return _of_reals(chance, grammar)
    argument = grammar.of(BOOLEAN)
    name = str(chance.choice(["BOOL_AND", "BOOL_OR", "COUNT_IF"]))
    if name == "COUNT_IF":  # in DuckDB NULL where all are
        counted = f"COUNT(CASE WHEN {argument.duck} THEN 1 END)"
        return Call(f"COUNT_IF({argument.spark})", counted, LONG)
    return _same(name, argument, BOOLEAN)


def _same(name: str, argument: Expr, kind: Kind) -> Call:
    return Call(f"{name}({argument.spark})", f"{name}({argument.duck})", kind)


def _of_anything(chance: Chance, grammar: Grammar) -> Call:
    argument = grammar.any()
    name = str(chance.choice(["COUNT", "DISTINCT", "MIN", "MAX", "FIRST", "LAST"]))
    if name == "COUNT":
        return _same("COUNT", argument, LONG)
    if name == "DISTINCT":
        text = "COUNT(DISTINCT {})"
        return Call(text.format(argument.spark), text.format(argument.duck), LONG)
    if name in ("FIRST", "LAST"):
        ordered = f'{name}({argument.duck} ORDER BY "~seq")'
        return Call(f"{name}({argument.spark})", ordered, argument.kind)
    return _same(name, argument, argument.kind)


def _of_numbers(chance: Chance, grammar: Grammar) -> Call:
    """Sums that both engines have to the last bit."""
    kind = (LONG, DOUBLE, DECIMAL)[int(chance.integers(3))]
    argument = grammar.of(kind)
    result = TOTAL if kind is DECIMAL else kind
    call = f"SUM({argument.duck})"
    return Call(f"SUM({argument.spark})", f"CAST({call} AS {result.duck})", result)


def _of_reals(chance: Chance, grammar: Grammar) -> Call:
    """What is rounded, each engine in its own way."""
    name = str(chance.choice(["AVG", "VAR_SAMP", "STDDEV_SAMP", "MEDIAN", "SUM"]))
    if name == "AVG" and chance.random() < 0.5:
        return _same("AVG", grammar.of(LONG), REAL)
    found = [c for c in grammar.columns if c.kind is REAL]
    argument = found[0] if found and chance.random() < 0.6 else grammar.of(DOUBLE)
    finite = "CASE WHEN abs({0}) < 1e300 THEN {0} END"  # DuckDB's variance of infinity fails
    return Call(
        f"{name}({finite.format(argument.spark)})",
        f"{name}({finite.format(argument.duck)})",
        REAL,
    )
