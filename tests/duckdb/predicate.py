"""Predicates of joins over the columns of generated rows, by what is to be proved with them."""

from __future__ import annotations

import numpy as np

from tests.duckdb.data import Generator

EQUALITIES = {
    "one key": "l.k = r.k",
    "two keys": "l.k = r.k AND l.s = r.s",
    "text": "l.s = r.s",
    "numbers of two widths": "l.k = r.i",
    "a whole and a real number": "l.i = r.g",
    "reals of two widths": "l.g = CAST(r.k AS DOUBLE)",
    "decimals": "l.d = r.d",
    "days": "l.day = r.day",
    "times": "date_trunc('HOUR', l.at) = date_trunc('HOUR', r.at)",
    "truth values": "l.t = r.t AND l.k = r.k",
    "expressions": "l.k + 1 = r.i % 5 AND upper(l.s) = upper(r.s)",
    "either way round": "r.k = l.k AND r.i > l.i",
    "one value": "l.k = r.k AND l.k = 3",
}
TIME_BOUNDS = {
    "after": "l.k = r.k AND r.ts > l.ts",
    "shortly after": "l.k = r.k AND r.ts BETWEEN l.ts AND l.ts + INTERVAL 2 SECONDS",
    "around": "l.s = r.s AND l.ts >= r.ts - INTERVAL 1 SECOND AND l.ts < r.ts + INTERVAL 3 SECONDS",
    "in microseconds": "l.k = r.k AND abs(unix_micros(l.ts) - unix_micros(r.ts)) <= 1500000",
    "times of the rows": "l.k = r.k AND l.at < r.at",
}
BANDS = {
    "between": "l.f BETWEEN r.f - 50 AND r.f + 50",
    "distance": "abs(l.i - r.i) <= 1",
    "distance, other way round": "2 > abs(r.i - l.i)",
    "two inequalities": "l.f >= r.f - 20.5 AND l.f < r.f + 30",
    "strict": "l.i > r.i - 2 AND l.i < r.i + 2",
    "one-sided": "l.f > r.f + 1500",
    "of two columns": "l.i BETWEEN r.i AND r.k",
    "scaled": "l.f * 2 - 3 BETWEEN r.f - 40 AND r.f + 40",
    "decimals": "l.d - r.d BETWEEN -0.05 AND 0.05",
    "reals of two widths": "abs(l.g - r.f) <= 3",
    "large numbers": "abs(l.big - r.big) <= 100000000000000",
    "days": "abs(datediff(l.day, r.day)) <= 1",
    "hours": "l.at BETWEEN r.at - INTERVAL 1 HOUR AND r.at + INTERVAL 2 HOURS",
}
SEVERAL = {
    "two bands": "abs(l.f - r.f) <= 400 AND l.i BETWEEN r.i - 3 AND r.i + 3",
    "three bands": "abs(l.f - r.f) <= 900 AND abs(l.i - r.i) <= 9 AND abs(l.d - r.d) <= 3",
    "band and equality": "l.k = r.k AND abs(l.f - r.f) <= 300",
    "band, equality and rest": "l.k = r.k AND abs(l.f - r.f) <= 500 AND l.s <> r.s",
    "inequalities": "l.i < r.i AND l.f > r.f",
    "inequalities both ways": "l.i <= r.i AND l.i >= r.i - 4 AND r.f < l.f AND l.s <= r.s",
    "ratio": "l.f / (abs(r.f) + 1) BETWEEN 0.9 AND 1.1",
    "root": "sqrt((l.f - r.f) * (l.f - r.f) + (l.i - r.i) * (l.i - r.i)) < 60",
}
STRINGS = {
    "order": "l.s < r.s AND l.k = r.k",
    "not equal": "l.s <> r.s AND l.i = r.i",
    "pattern": "l.s LIKE 'a%' AND l.s = r.s",
    "concatenated": "concat(l.s, 'b') = r.s",
    "length": "length(l.s) = length(r.s) AND l.s > r.s",
    "between": "l.s BETWEEN r.s AND concat(r.s, 'z')",
}
NULLS = {
    "safe equality": "l.k <=> r.k AND l.i <=> r.i",
    "or both": "(l.k = r.k OR (l.k IS NULL AND r.k IS NULL)) AND l.i = r.i",
    "one side": "l.i IS NULL AND r.i IS NOT NULL AND l.k = r.k",
    "filled": "coalesce(l.s, 'a') = coalesce(r.s, 'z')",
    "filled on both sides": "coalesce(l.i, r.i) = coalesce(r.k, l.k)",
    "negated": "NOT (l.i <= r.i) AND l.k = r.k",
    "never": "l.k = NULL",
    "unknown or true": "(l.i > r.i OR l.t) AND (l.f < r.f OR r.t)",
}
CONDITIONS = {
    "case": "CASE WHEN l.t THEN l.i = r.i WHEN r.t THEN l.k = r.k ELSE l.s = r.s END",
    "case of values": "CASE l.k WHEN 1 THEN r.i WHEN 2 THEN r.k ELSE 99 END = l.i",
    "in": "l.i IN (r.i, r.k, 3)",
    "not in": "l.k NOT IN (r.k, 2, 3) AND l.s = r.s",
    "least": "least(l.i, r.i) > 15",
    "greatest": "greatest(l.f, r.f, -900) < -700",
    "least and greatest": "greatest(l.i, r.i) - least(l.i, r.i) <= 1",
    "or": "(l.k = r.k AND l.t) OR (l.s = r.s AND r.t)",
    "exclusive": "(l.k = 1) <> (r.k = 1) AND l.i = r.i",
    "always": "TRUE",
    "always, of one side": "l.i > 17",
    "modulo": "(l.i + r.i) % 7 = 0 AND l.k <> r.k",
    "remaining": "if(l.t, l.f, r.f) > 800 AND l.k = r.k",
}
ALL = {
    f"{title}: {name}": text
    for title, group in [
        ("equality", EQUALITIES),
        ("time bounds", TIME_BOUNDS),
        ("band", BANDS),
        ("several", SEVERAL),
        ("strings", STRINGS),
        ("nulls", NULLS),
        ("conditions", CONDITIONS),
    ]
    for name, text in group.items()
}

HEDGE = (
    "l.id <> r.id AND ((r.price - r.average) / r.average) / ((l.price - l.average) / l.average) "
    "BETWEEN -1.05 AND -0.95"
)
"""Two companies whose prices went opposite ways by the same share."""

OVERLAP = (
    "(l.src = r.src OR l.src = r.dst OR l.dst = r.src OR l.dst = r.dst) AND "
    "((l.start_time < r.start_time AND r.start_time < l.end_time) OR "
    "(r.start_time < l.start_time AND l.start_time < r.end_time))"
)
"""Two calls with a number in common that overlap in time."""

SAME_CALLER = (
    "l.src = r.src AND abs(unix_micros(l.start_time) - unix_micros(r.start_time)) <= 60000000"
)
"""Two calls of one subscriber within a minute."""

DISTANCE_KM = (
    "6371 * 2 * asin(sqrt(power(sin(radians(l.lat - r.lat) / 2), 2) + cos(radians(l.lat)) * "
    "cos(radians(r.lat)) * power(sin(radians(l.lon - r.lon) / 2), 2)))"
)
"""The great-circle distance of two calls."""

WINDOWS = (
    "[RANGE 10 SECONDS]",
    "[RANGE 1 SECOND]",
    "[RANGE 2500 MILLISECONDS]",
    "[RANGE 0 SECONDS]",
    "[RANGE 1 HOUR]",
    "[RANGE 250 MICROSECONDS]",
    "[ROWS 1]",
    "[ROWS 7]",
    "[ROWS 1000]",
)


def predicate(draw: Generator) -> str:
    """Conjuncts, and now and then a disjunction, by chance."""
    texts = list(ALL.values())
    chosen = [f"({t})" for t in draw.choice(texts, int(draw.integers(1, 4)), replace=False)]
    joined = " AND ".join(chosen)
    if draw.random() < 0.3:
        other = draw.choice(texts)
        joined = f"({joined} OR ({other}))" if draw.random() < 0.7 else f"NOT ({other})"
    return joined


def windows(draw: Generator) -> tuple[str, str]:
    left, right = draw.choice(np.array(WINDOWS), 2)
    return str(left), str(right)
