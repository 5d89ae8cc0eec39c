"""Outer, semi and anti joins on every kind of predicate against DuckDB, rows and their order."""

from __future__ import annotations

import numpy as np
import pytest

from tests.duckdb import predicate
from tests.duckdb.test_join import ITEMS, LONG, WAYS, check, sides
from tests.seed import seeds

KINDS = ("LEFT", "RIGHT", "FULL", "SEMI", "ANTI")
ALONE = "l.i AS li, l.s AS ls, l.f AS lf, l.ts AS at"
WINDOWS = ("[RANGE 10 SECONDS]", "[RANGE 2 SECONDS]", "[RANGE 0 SECONDS]", "[RANGE 25 SECONDS]")
PER_KIND = 300 if LONG else 6


def query(kind: str, on: str, left: str, right: str, rest: str = "") -> str:
    items = ALONE if kind in ("SEMI", "ANTI") else ITEMS
    return f"SELECT {items} FROM l {left} {kind} JOIN r {right} ON {on} {rest}"


@pytest.mark.parametrize("kind", KINDS)
def test_random_predicates_windows_and_sources(kind: str) -> None:
    rows = 0
    for seed in seeds(PER_KIND):
        draw = np.random.default_rng([7, KINDS.index(kind), seed])
        left, right = (str(draw.choice(WINDOWS)) for _ in range(2))
        rest = str(draw.choice(["", "", "WHERE l.i % 2 = 0 OR l.i IS NULL"]))
        text = query(kind, predicate.predicate(draw), left, right, rest)
        size, sources = int(draw.choice([1, 30, 100])), int(draw.integers(1, 4))
        known = [w for w in WAYS if kind != "FULL" or "routing" not in WAYS[w]]
        way = str(draw.choice(known))
        rows += check(text, sides(seed, size, sources), way).num_rows
    assert rows > 10


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("on", ["l.k = r.k", "abs(l.f - r.f) <= 400", "l.s < r.s AND l.t"])
def test_every_way_gives_the_rows(kind: str, on: str) -> None:
    ways = [w for w in WAYS if kind != "FULL" or "routing" not in WAYS[w]]
    text = query(kind, on, "[RANGE 3 SECONDS]", "[RANGE 1 SECOND]")
    assert check(text, sides(2, 90, 2), *ways).num_rows
