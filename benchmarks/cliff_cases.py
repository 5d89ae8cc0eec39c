"""The queries of the guard against cliffs, each with its input, its rows and its budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from data import START_US

Ints = np.ndarray[Any, np.dtype[np.int64]]

SIDE = 100_000
"""Rows of a side of the joins; all pairs are within the window."""
KEYS = 100_000
BAND = 1e-6
HOUR = 3600
SECOND_US = 1_000_000


@dataclass(frozen=True)
class Case:
    """A script over streams that `write` puts into a folder.

    `seconds` is the budget on the machine on which the reference case takes its own; `memory_mb`
    bounds the peak of the process where that is the point. `rows` counts what must come out, by
    other means than Tidegate's.
    """

    seconds: float
    script: str
    write: Callable[[Path], Mapping[str, pa.Table]]
    rows: Callable[[Mapping[str, pa.Table]], int]
    options: Sequence[str] = ()
    memory_mb: int | None = None


def times(rows: int, span_us: int) -> pa.Array:
    """Event times, evenly over a span."""
    ts = START_US + np.arange(rows) * span_us // rows
    return pa.array(ts, pa.timestamp("us", "UTC"))


def keyed(_: Path) -> dict[str, pa.Table]:
    """Two sides with keys k and j, one in a thousand NULL, and values x and y."""
    sides = {}
    for number, name in enumerate("ab"):
        chance = np.random.default_rng(number)
        columns = {"ts": times(SIDE, HOUR * SECOND_US)}
        for key in ("k", "j"):
            columns[key] = pa.array(
                chance.integers(0, KEYS, SIDE), mask=chance.random(SIDE) < 0.001
            )
        columns |= {value: pa.array(chance.random(SIDE)) for value in ("x", "y")}
        sides[name] = pa.table(columns)
    return sides


def counts(column: pa.ChunkedArray, only: Any = None, shift: int = 0) -> Ints:
    """How often each key occurs, NULL left out; `only` says which rows count."""
    values = column.to_numpy(zero_copy_only=False).astype(float)
    chosen = ~np.isnan(values) if only is None else ~np.isnan(values) & only
    return np.bincount(values[chosen].astype(np.int64) + shift, minlength=KEYS + 2)


def equal(sides: Mapping[str, pa.Table], left: str = "k", right: str = "k", shift: int = 0) -> int:
    return int(counts(sides["a"][left]) @ counts(sides["b"][right], shift=shift))


def null_safe(sides: Mapping[str, pa.Table]) -> int:
    return equal(sides) + int(sides["a"]["k"].null_count * sides["b"]["k"].null_count)


def either(sides: Mapping[str, pa.Table]) -> int:
    return equal(sides) + equal(sides, shift=1)


def by_parity(sides: Mapping[str, pa.Table]) -> int:
    keys = counts(sides["a"]["k"])
    even = np.arange(len(keys)) % 2 == 0
    on_k, on_j = counts(sides["b"]["k"]), counts(sides["b"]["j"])
    return int((keys * even) @ on_k + (keys * ~even) @ on_j)


def large_of_one(sides: Mapping[str, pa.Table]) -> int:
    small = [counts(sides[s]["k"], sides[s]["x"].to_numpy() <= 0.5) for s in "ab"]
    return equal(sides) - int(small[0] @ small[1])


def near(sides: Mapping[str, pa.Table]) -> int:
    return _close_pairs(sides, "x") + _close_pairs(sides, "y") - _close_in_both(sides)


def _close_pairs(sides: Mapping[str, pa.Table], name: str) -> int:
    left, right = (np.sort(sides[s][name].to_numpy()) for s in "ab")
    ends = np.searchsorted(right, left + BAND, "right")
    return int((ends - np.searchsorted(right, left - BAND, "left")).sum())


def _close_in_both(sides: Mapping[str, pa.Table]) -> int:
    order = np.argsort(sides["b"]["x"].to_numpy())
    x, y = (sides["b"][name].to_numpy()[order] for name in "xy")
    ours, found = sides["a"], 0
    for own_x, own_y in zip(ours["x"].to_numpy(), ours["y"].to_numpy(), strict=True):
        first, last = np.searchsorted(x, own_x - BAND), np.searchsorted(x, own_x + BAND, "right")
        found += int((abs(y[first:last] - own_y) <= BAND).sum())
    return found


def join(condition: str) -> str:
    return (
        "SELECT a.k AS left_key, b.k AS right_key FROM a [RANGE 2 HOURS] "
        f"JOIN b [RANGE 2 HOURS] ON {condition}"
    )


def events(rows: int, keys: int, span_us: int) -> Callable[[Path], dict[str, pa.Table]]:
    def write(_: Path) -> dict[str, pa.Table]:
        chance = np.random.default_rng(3)
        columns = {
            "ts": times(rows, span_us),
            "k": chance.integers(0, keys, rows),
            "v": chance.integers(0, 10_000, rows),
            "x": chance.normal(100, 15, rows),
        }
        return {"a": pa.table(columns)}

    return write


def windows_by_key(seconds: int) -> Callable[[Mapping[str, pa.Table]], int]:
    """Windows that slide by a second and hold a row, over all keys."""

    def rows(streams: Mapping[str, pa.Table]) -> int:
        ts = streams["a"]["ts"].cast(pa.int64()).to_numpy() // SECOND_US
        keys = streams["a"]["k"].to_numpy()
        found = 0
        for key in np.unique(keys):
            own = np.unique(ts[keys == key])
            found += seconds + int(np.minimum(np.diff(own), seconds).sum())
        return found

    return rows


def sliding(function: str) -> str:
    return f"SELECT k, {function} AS r FROM a [RANGE 1 HOUR SLIDE 1 SECOND] GROUP BY k"


def levels(count: int) -> str:
    """Each level reads the one before it twice, and every row passes one of the two filters."""
    lines = []
    for level in range(1, count + 1):
        before = "a" if level == 1 else f"s{level - 1}"
        lines.append(
            f"CREATE STREAM s{level} AS SELECT k, v + 1 AS v FROM {before} WHERE v % 2 = 0 "
            f"UNION ALL SELECT k, v - 1 AS v FROM {before} WHERE v % 2 <> 0;"
        )
    return "\n".join([*lines, f"SELECT k, v FROM s{count}"])


def wide(columns: int) -> Callable[[Path], dict[str, pa.Table]]:
    def write(_: Path) -> dict[str, pa.Table]:
        values = {f"c{n}": np.arange(10) + n for n in range(columns)}
        return {"a": pa.table({"ts": times(10, 10 * SECOND_US), **values})}

    return write


def long_keys(_: Path) -> dict[str, pa.Table]:
    rows, keys = 20_000, 5_000
    texts = pa.array([f"{n:05d}" + chr(97 + n % 26) * 10_000 for n in range(keys)])
    chosen = np.random.default_rng(5).integers(0, keys, rows)
    return {"a": pa.table({"ts": times(rows, HOUR * SECOND_US), "k": texts.take(chosen)})}


def pairs_of_equal(streams: Mapping[str, pa.Table]) -> int:
    sizes = np.asarray([c["counts"].as_py() for c in streams["a"]["k"].value_counts()])
    return int((sizes**2).sum())


def all_rows(streams: Mapping[str, pa.Table]) -> int:
    return int(streams["a"].num_rows)


def exactly(count: int) -> Callable[[Mapping[str, pa.Table]], int]:
    return lambda _: count


REFERENCE = "join, equality"
_AGGREGATES = ", ".join(f"SUM(v + {n}) AS s{n}" for n in range(1_000))
_WHOLE_HOUR = events(200_000, 50, 2 * HOUR * SECOND_US)
_WITHIN = " WITH ERROR 10 PERCENT CONFIDENCE 95 PERCENT"
_BALANCED = " WITH BALANCE ERROR 10 PERCENT CONFIDENCE 95 PERCENT TRIM ALL"

CASES = {
    REFERENCE: Case(1.7, join("a.k = b.k"), keyed, equal),
    "join, <=>": Case(1.7, join("a.k <=> b.k"), keyed, null_safe),
    "join, IS NOT DISTINCT FROM": Case(1.7, join("a.k IS NOT DISTINCT FROM b.k"), keyed, null_safe),
    "join, OR of equalities": Case(5, join("a.k = b.k OR a.k = b.k + 1"), keyed, either),
    "join, IN": Case(5, join("a.k IN (b.k, b.k + 1)"), keyed, either),
    "join, CASE of equalities": Case(
        5, join("CASE WHEN a.k % 2 = 0 THEN a.k = b.k ELSE a.k = b.j END"), keyed, by_parity
    ),
    "join, OR with a common equality": Case(
        5, join("(a.k = b.k AND a.x > 0.5) OR (a.k = b.k AND b.x > 0.5)"), keyed, large_of_one
    ),
    "join, OR of two bands": Case(
        8, join(f"abs(a.x - b.x) <= {BAND:f} OR abs(a.y - b.y) <= {BAND:f}"), keyed, near
    ),
    "join, 400 batches": Case(
        8, join("a.k = b.k"), keyed, equal, ("--batch-rows", str(SIDE * 2 // 400))
    ),
    "slide of a second, SUM": Case(2, sliding("SUM(x)"), _WHOLE_HOUR, windows_by_key(HOUR)),
    "slide of a second, MEDIAN": Case(10, sliding("MEDIAN(x)"), _WHOLE_HOUR, windows_by_key(HOUR)),
    "slide of a second, MEDIAN within an error": Case(
        10, sliding("MEDIAN(x)") + _WITHIN, _WHOLE_HOUR, windows_by_key(HOUR)
    ),
    "slide of a second, MEDIAN balanced": Case(
        10, sliding("MEDIAN(x)") + _BALANCED, _WHOLE_HOUR, windows_by_key(HOUR)
    ),
    "slide of a second, COUNT(DISTINCT)": Case(
        10, sliding("COUNT(DISTINCT v)"), _WHOLE_HOUR, windows_by_key(HOUR)
    ),
    "windows of 10,000 tuples, SUM": Case(
        2,
        "SELECT SUM(x) AS r FROM a [ROWS 10000 SLIDE 1]",
        events(100_000, 1, 10**9),
        exactly(90_001),
    ),
    "windows of 10,000 tuples, MEDIAN": Case(
        5,
        "SELECT MEDIAN(x) AS r FROM a [ROWS 10000 SLIDE 1]",
        events(100_000, 1, 10**9),
        exactly(90_001),
    ),
    "a million windows of one row": Case(
        3,
        "SELECT SUM(x) AS r FROM a [RANGE 1 SECOND SLIDE 1 MICROSECOND]",
        events(1, 1, 1),
        exactly(1_000_000),
        memory_mb=1_500,
    ),
    "12 levels, each read twice": Case(1, levels(12), events(10_000, 10, 10**9), all_rows),
    "2,000 columns": Case(1, "SELECT * FROM a", wide(2_000), all_rows),
    "10,000 columns": Case(5, "SELECT * FROM a", wide(10_000), all_rows),
    "1,000 aggregates": Case(
        1,
        f"SELECT k, {_AGGREGATES} FROM a [RANGE 1 HOUR] GROUP BY k",
        events(1_000, 10, HOUR * SECOND_US),
        exactly(10),
    ),
    "keys of 10 kB, group": Case(
        2,
        "SELECT k, COUNT(*) AS n FROM a [RANGE 2 HOURS] GROUP BY k",
        long_keys,
        lambda streams: len(streams["a"]["k"].unique()),
    ),
    "keys of 10 kB, self-join": Case(
        4,
        "SELECT l.ts AS at, r.ts AS other FROM a [RANGE 2 HOURS] AS l "
        "JOIN a [RANGE 2 HOURS] AS r ON l.k = r.k",
        long_keys,
        pairs_of_equal,
    ),
}


def write_streams(streams: Mapping[str, pa.Table], folder: Path) -> list[str]:
    """Each stream as a Parquet file; the options that name them."""
    options = []
    for name, table in streams.items():
        pq.write_table(table, folder / f"{name}.parquet")
        options += ["--stream", f"{name}={folder / name}.parquet"]
    return options
