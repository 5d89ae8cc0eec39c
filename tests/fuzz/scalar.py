"""Expressions of Spark's dialect over columns of all types, by chance.

They are drawn by what they give: I is whole, N a number, S text, B a condition, D a date, T a time.
Whether a mixture of types is allowed, what it gives and when it fails is for Spark to say. There is
no NULL by itself: Spark leaves out what is computed with it, and so what fails there does not.
"""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from tests.fuzz.row import EPOCH, WORDS, Chance

COLUMNS: dict[str, tuple[str, pa.DataType]] = {
    "y": ("I", pa.int8()),
    "h": ("I", pa.int16()),
    "i": ("I", pa.int32()),
    "l": ("I", pa.int64()),
    "f": ("N", pa.float32()),
    "d": ("N", pa.float64()),
    "c": ("N", pa.decimal128(10, 2)),
    "z": ("N", pa.decimal128(18, 0)),
    "w": ("N", pa.decimal128(38, 10)),
    "s": ("S", pa.string()),
    "n": ("S", pa.string()),
    "b": ("B", pa.bool_()),
    "e": ("D", pa.date32()),
    "t": ("T", pa.timestamp("us", "UTC")),
}
CASTS = {
    "I": ("TINYINT", "SMALLINT", "INT", "BIGINT"),
    "N": ("DOUBLE", "FLOAT", "DECIMAL(10,2)", "DECIMAL(20,5)", "DECIMAL(5,0)"),
    "S": ("STRING",),
    "B": ("BOOLEAN",),
    "D": ("DATE",),
    "T": ("TIMESTAMP",),
}
RULES = {
    "I": (
        "({I} + {I})", "({I} - {I})", "({I} * {I})", "({I} div {I})", "({I} % {I})", "(-{I})",
        "abs({I})", "pmod({I}, {I})", "length({S})", "year({T})", "month({D})", "day({T})",
        "hour({T})", "minute({T})", "second({T})", "dayofweek({D})", "weekday({D})",
        "dayofyear({D})", "weekofyear({T})", "quarter({D})", "datediff({D}, {D})",
        "unix_micros({T})", "unix_millis({T})", "unix_seconds({T})", "({I} & {I})", "({I} | {I})",
        "({I} ^ {I})", "(~{I})", "shiftleft({I}, 2)", "shiftright({I}, 3)", "floor({N})",
        "ceil({N})", "extract(DAY FROM {T})",
    ),
    "N": (
        "({N} + {N})", "({N} - {N})", "({N} * {N})", "({N} / {N})", "({N} % {N})", "(-{N})",
        "abs({N})", "round({N})", "round({N}, 1)", "round({N}, -1)", "rint({N})", "sqrt({N})",
        "cbrt({N})", "power({N}, 2)", "exp({N})", "ln({N})", "log10({N})", "sin({N})", "atan({N})",
        "sign({N})", "mod({N}, {N})", "nanvl(d, {N})", "hypot({N}, {N})", "degrees({N})", "{I}",
    ),
    "S": (
        "upper({S})", "lower({S})", "trim({S})", "ltrim({S})", "rtrim({S})", "concat({S}, {S})",
        "({S} || {I})", "substring({S}, {i}, {i})", "left({S}, {i})", "right({S}, {i})",
        "replace({S}, 'a', 'zz')", "substr({S}, {i})",
    ),
    "B": (
        "({N} = {N})", "({N} <> {N})", "({N} < {N})", "({N} >= {N})", "({N} <=> {N})",
        "({S} = {S})", "({S} < {S})", "({D} <= {T})", "({T} > {T})", "({B} AND {B})",
        "({B} OR {B})", "(NOT {B})", "({N} IS NULL)", "({S} IS NOT NULL)", "({N} IN ({N}, {N}))",
        "({I} NOT IN ({I}, {I}, NULL))", "({N} BETWEEN {N} AND {N})", "({S} LIKE 'a%')",
        "({S} LIKE '%_b')", "isnan({N})", "startswith({S}, {S})", "contains({S}, {S})",
        "endswith({S}, {S})", "({S} = {I})", "({B} <=> {B})", "({D} = {D})",
    ),
    "D": (
        "date_add({D}, {i})", "date_sub({D}, {i})", "trunc({D}, 'month')", "add_months({D}, {i})",
        "trunc({D}, 'week')", "({D} + INTERVAL 3 DAYS)", "to_date({T})",
    ),
    "T": (
        "date_trunc('hour', {T})", "date_trunc('week', {T})", "({T} + INTERVAL 90 MINUTES)",
        "({T} - INTERVAL 1 DAY)", "timestamp_millis({i})", "timestamp_micros({i})",
        "timestamp_seconds({i})", "date_trunc('year', {T})",
    ),
}  # fmt: skip
ANY = (
    "coalesce({0}, {0})", "if({B}, {0}, {0})", "CASE WHEN {B} THEN {0} ELSE {0} END",
    "nullif({0}, {0})", "greatest({0}, {0})", "least({0}, {0})", "nvl({0}, {0})",
    "CASE WHEN {B} THEN {0} WHEN {B} THEN {0} END", "nvl2({S}, {0}, {0})",
)  # fmt: skip
WHOLES = (0, 1, -1, 2, 3, 5, 10, 100, -7)
EXTREMES = {
    "y": (127, -128),
    "h": (32767, -32768),
    "i": (2**31 - 1, -(2**31)),
    "l": (2**63 - 1, -(2**63)),
    "f": (3.4e38, float("nan"), float("-inf"), 1e-45),
    "d": (1.7e308, float("nan"), float("inf"), 5e-324, -0.0),
    "c": (Decimal("99999999.99"), Decimal("-99999999.99")),
    "z": (Decimal(10**18 - 1), Decimal(1 - 10**18)),
    "w": (Decimal("9999999999999999999999999999.9999999999"), Decimal("0.0000000001")),
}


def draw_expression(chance: Chance, kind: str = "", depth: int = 3) -> str:
    """An expression that gives this kind, or any."""
    kind = kind or str(chance.choice(list(RULES)))
    if depth == 0 or chance.random() < 0.15:
        return _leaf(chance, kind)
    draw = chance.random()
    if draw < 0.12:
        # Spark makes times of decimals that are too large by dropping digits.
        source = str(chance.choice([k for k in RULES if kind != "T" or k != "N"]))
        target = str(chance.choice(CASTS[kind]))
        return f"CAST({draw_expression(chance, source, depth - 1)} AS {target})"
    rules = ANY if draw < 0.3 else RULES[kind]
    return _filled(chance, str(chance.choice(rules)).replace("{0}", f"{{{kind}}}"), depth - 1)


def _filled(chance: Chance, rule: str, depth: int) -> str:
    for hole in ("I", "N", "S", "B", "D", "T"):
        while f"{{{hole}}}" in rule:
            rule = rule.replace(f"{{{hole}}}", draw_expression(chance, hole, depth), 1)
    while "{i}" in rule:
        rule = rule.replace("{i}", str(chance.choice(WHOLES)), 1)
    return rule


def _leaf(chance: Chance, kind: str) -> str:
    names = [n for n, (of, _) in COLUMNS.items() if of == kind or (kind == "N" and of == "I")]
    if chance.random() < 0.8:
        return str(chance.choice(names))
    if kind == "S":
        return "'" + str(chance.choice(WORDS)).replace("'", "\\'") + "'"
    if kind == "I":
        return str(chance.choice(WHOLES))
    if kind == "N":
        return str(chance.choice(["1.5", "0.25D", "2", "-3.125", "1e3", "0.1BD"]))
    constants = {"B": "TRUE", "D": "DATE '2024-02-29'", "T": "TIMESTAMP '1969-12-31 23:59:59.5'"}
    return constants[kind]


def draw_rows(chance: Chance, count: int) -> pa.Table:
    """Rows of ordinary values, or now and then of extreme ones, with NULL among them."""
    extreme = float(chance.choice([0.0, 0.0, 0.2]))
    columns = {
        name: pa.array([_value(chance, name, extreme) for _ in range(count)], type_)
        for name, (_, type_) in COLUMNS.items()
    }
    ts = pa.array(range(count), pa.int64()).cast(pa.timestamp("us", "UTC"))
    return pa.table({"ts": ts, **columns})


def _value(chance: Chance, name: str, extreme: float) -> Any:
    if chance.random() < 0.12:
        return None
    if name in EXTREMES and chance.random() < extreme:
        return EXTREMES[name][int(chance.integers(len(EXTREMES[name])))]
    small = int(chance.integers(-9, 10))
    scaled = float(chance.integers(-4000, 4000)) / 16
    made = {
        "f": scaled,
        "d": scaled * 10.0 ** int(chance.integers(-8, 8)),
        "c": Decimal(int(chance.integers(-9999, 9999))).scaleb(-2),
        "z": Decimal(small * 1001),
        "w": Decimal(int(chance.integers(-(10**12), 10**12))).scaleb(-10),
        "s": WORDS[int(chance.integers(len(WORDS)))],
        "n": str(np.round(scaled, 2)) if small % 2 else f" {small} ",
        "b": small > 0,
        "e": date(1970, 1, 1) + timedelta(int(chance.integers(-30_000, 30_000))),
        "t": EPOCH + timedelta(microseconds=int(chance.integers(-(10**15), 3 * 10**15))),
    }
    return made.get(name, small)
