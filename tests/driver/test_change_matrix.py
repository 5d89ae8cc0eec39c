"""Every clause of a query changed on a checkpoint: refused, or the rows are those of the new one.

Where the state does not notice a change, the rows of each batch after it are those that the new
query gives in the same batch when it has run from the beginning.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.driver.scene import Row, loop_of, memory, plan_of, rows_of
from tidegate.errors import CheckpointError
from tidegate.sink.memory import MemorySink

ROWS: list[Row] = [(i * 0.11, "abbccc"[i * i % 6], (i * 5) % 23) for i in range(360)]
BATCH = 30
AT = 6
"""The batch from which on the query is another."""


@dataclass(frozen=True)
class Query:
    """A SELECT by its clauses, which a change replaces."""

    select: str
    source: str
    where: str = ""
    group: str = ""
    having: str = ""
    order: str = ""
    limit: str = ""
    option: str = ""

    @property
    def sql(self) -> str:
        clauses = [
            ("WHERE", self.where),
            ("GROUP BY", self.group),
            ("HAVING", self.having),
            ("ORDER BY", self.order),
            ("LIMIT", self.limit),
            ("WITH", self.option),
        ]
        tail = "".join(f" {word} {text}" for word, text in clauses if text)
        return f"SELECT {self.select} FROM {self.source}{tail}"


AGGREGATE = Query(
    select="k, AVG(v) AS a, SUM(v) AS s, MEDIAN(v) AS m",
    source="s [RANGE 6 SECONDS SLIDE 2 SECONDS]",
    where="v > 0",
    group="k",
)
OPTIONS = (
    "",
    "ERROR 30 PERCENT",
    "ERROR 20 PERCENT",
    "ERROR 30 PERCENT CONFIDENCE 80 PERCENT",
    "ERROR 30 PERCENT BUDGET 40 ROWS",
    "ERROR 30 PERCENT BY MEAN",
    "SHED 60 PERCENT BY UNIFORM",
    "SHED 70 PERCENT BY UNIFORM",
    "SHED 60 PERCENT BY CONCEPT",
    "SHED 70 PERCENT BY CONCEPT",
    "BALANCE ERROR 30 PERCENT",
    "BALANCE ERROR 20 PERCENT",
    "BALANCE ERROR 30 PERCENT CONFIDENCE 80 PERCENT",
    "PARTITIONER pk",
    "PARTITIONER am",
    "PARTITIONER auto",
    "LATENCY 2 SECONDS",
)
AGGREGATE_CHANGES: dict[str, dict[str, str]] = {
    "count added": {"select": "k, AVG(v) AS a, SUM(v) AS s, MEDIAN(v) AS m, COUNT(*) AS n"},
    "count first": {"select": "k, COUNT(*) AS n, AVG(v) AS a, SUM(v) AS s, MEDIAN(v) AS m"},
    "count in having": {"having": "COUNT(*) > 3"},
    "function added": {"select": "k, AVG(v) AS a, SUM(v) AS s, MEDIAN(v) AS m, VARIANCE(v) AS d"},
    "argument added": {"select": "k, AVG(v) AS a, SUM(v) AS s, MEDIAN(v) AS m, SUM(v % 3) AS d"},
    "function less": {"select": "k, AVG(v) AS a, MEDIAN(v) AS m"},
    "median less": {"select": "k, AVG(v) AS a, SUM(v) AS s"},
    "median alone": {"select": "k, MEDIAN(v) AS m"},
    "keys alone": {"select": "k"},
    "other order": {"select": "MEDIAN(v) AS m, SUM(v) AS s, AVG(v) AS a, k"},
    "other names": {"select": "k AS who, AVG(v) AS mean, SUM(v) AS sum, MEDIAN(v) AS half"},
    "expressions": {"select": "k, AVG(v) + SUM(v) AS a, MEDIAN(v) * 2 AS m"},
    "twice": {"select": "k, AVG(v) AS a, AVG(v) AS b, SUM(v) AS s, MEDIAN(v) AS m"},
    "filter": {"select": "k, AVG(v) FILTER (WHERE v > 3) AS a, SUM(v) AS s, MEDIAN(v) AS m"},
    "another argument": {"select": "k, AVG(v + 1) AS a, SUM(v) AS s, MEDIAN(v) AS m"},
    "another type": {
        "select": "k, AVG(CAST(v AS INT)) AS a, SUM(CAST(v AS INT)) AS s, "
        "MEDIAN(CAST(v AS INT)) AS m"
    },
    "another quantile": {"select": "k, AVG(v) AS a, SUM(v) AS s, QUANTILE(v, 0.4) AS m"},
    "the same quantile": {"select": "k, AVG(v) AS a, SUM(v) AS s, QUANTILE(v, 0.5) AS m"},
    "range": {"source": "s [RANGE 8 SECONDS SLIDE 2 SECONDS]"},
    "slide": {"source": "s [RANGE 6 SECONDS SLIDE 3 SECONDS]"},
    "the same window": {"source": "s [RANGE 6000 MILLISECONDS SLIDE 2000 MILLISECONDS]"},
    "where": {"where": "v > 1"},
    "where less": {"where": ""},
    "where more": {"where": "v > 0 AND k <> 'a'"},
    "another key": {
        "group": "v % 2",
        "select": "v % 2 AS k, AVG(v) AS a, SUM(v) AS s, MEDIAN(v) AS m",
    },
    "one key more": {"group": "k, v % 2"},
    "no key": {"group": "", "select": "AVG(v) AS a, SUM(v) AS s, MEDIAN(v) AS m"},
    "having": {"having": "SUM(v) > 100"},
    "having of another": {"having": "MIN(v) > 1"},
    "order": {"order": "a DESC"},
    "limit": {"order": "s", "limit": "2"},
}

JOIN = Query(
    select="l.k AS k, l.v AS x, r.v AS y",
    source="s l [RANGE 2 SECONDS] JOIN s r [RANGE 1 SECOND] ON l.k = r.k AND l.v <= r.v + 3",
)
JOIN_OPTIONS = (
    "",
    "SHED 40 PERCENT BY UNIFORM",
    "SHED 50 PERCENT BY UNIFORM",
    "SHED 40 PERCENT BY CONCEPT",
    "SHED 50 PERCENT BY CONCEPT",
)


def _on(text: str) -> dict[str, str]:
    return {"source": f"s l [RANGE 2 SECONDS] JOIN s r [RANGE 1 SECOND] ON {text}"}


JOIN_CHANGES: dict[str, dict[str, str]] = {
    "another equality": _on("l.v = r.v AND l.v <= r.v + 3"),
    "a computed equality": _on("l.v % 3 = r.v % 3 AND l.v <= r.v + 3"),
    "one equality more": _on("l.k = r.k AND l.v % 3 = r.v % 3 AND l.v <= r.v + 3"),
    "an equality turned": _on("r.k = l.k AND l.v <= r.v + 3"),
    "null-safe": _on("l.k <=> r.k AND l.v <= r.v + 3"),
    "no equality": _on("l.v <= r.v + 3"),
    "another band": _on("l.k = r.k AND l.v <= r.v + 5"),
    "no band": _on("l.k = r.k"),
    "other order of conditions": _on("l.v <= r.v + 3 AND l.k = r.k"),
    "a side's condition": _on("l.k = r.k AND l.v <= r.v + 3 AND l.v > 2"),
    "left window": {"source": JOIN.source.replace("RANGE 2 S", "RANGE 3 S")},
    "right window": {"source": JOIN.source.replace("RANGE 1 S", "RANGE 2 S")},
    "windows of tuples": {"source": JOIN.source.replace("RANGE 1 SECOND", "ROWS 9")},
    "where": {"where": "l.v + r.v > 9"},
    "where of a side": {"where": "r.v > 3"},
    "a column less": {"select": "l.k AS k, l.v AS x"},
    "keys of columns less": {"select": "l.v AS x, r.v AS y"},
    "another column": {"select": "l.k AS k, l.v AS x, r.v AS y, r.k AS z"},
    "an expression": {"select": "l.v * r.v AS x"},
}

PAIRS = f"(SELECT l.k AS k, l.v AS x FROM {JOIN.source})"
OVER_PAIRS = Query(
    select="k, COUNT(*) AS n, SUM(x) AS s", source=f"{PAIRS} [RANGE 4 SECONDS]", group="k"
)
OVER_PAIRS_OPTIONS = (
    "",
    "SHED 40 PERCENT BY UNIFORM",
    "SHED 40 PERCENT BY CONCEPT",
    "SHED 50 PERCENT BY CONCEPT",
    "SHED 40 PERCENT BY CONCEPT WITH ERROR 30 PERCENT",
    "SHED 40 PERCENT BY CONCEPT WITH ERROR 20 PERCENT",
)
OVER_PAIRS_CHANGES: dict[str, dict[str, str]] = {
    "equality": {"source": OVER_PAIRS.source.replace("l.k = r.k", "l.v = r.v")},
    "band": {"source": OVER_PAIRS.source.replace("r.v + 3", "r.v + 4")},
    "join window": {"source": OVER_PAIRS.source.replace("RANGE 1 S", "RANGE 2 S")},
    "window": {"source": OVER_PAIRS.source.replace("RANGE 4 S", "RANGE 6 S")},
    "sum less": {"select": "k, COUNT(*) AS n"},
    "count less": {"select": "k, SUM(x) AS s"},
    "mean": {"select": "k, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS a"},
    "having": {"having": "COUNT(*) > 5"},
    "key": {"group": "k, x % 2"},
    "order": {"order": "s DESC", "limit": "1"},
}

TUPLES = Query(
    select="k, SUM(v) AS s, MAX(v) AS m", source="s [ROWS 7 SLIDE 3]", where="v > 0", group="k"
)
TUPLES_CHANGES: dict[str, dict[str, str]] = {
    "functions": {"select": "k, MIN(v) AS s, COUNT(*) AS n, MEDIAN(v) AS m"},
    "another argument": {"select": "k, SUM(v + 1) AS s"},
    "no argument": {"select": "k, COUNT(*) AS n"},
    "keys alone": {"select": "k"},
    "rows": {"source": "s [ROWS 8 SLIDE 3]"},
    "slide": {"source": "s [ROWS 7 SLIDE 2]"},
    "time": {"source": "s [RANGE 6 SECONDS]"},
    "where": {"where": "v > 1"},
    "key": {"group": "v % 2", "select": "SUM(v) AS s, MAX(v) AS m"},
    "having": {"having": "SUM(v) > 60"},
    "order": {"order": "s"},
}

COUNTED = Query(select="l.v AS x, r.v AS y", source="s l [ROWS 9] JOIN s r [ROWS 6] ON l.k = r.k")
COUNTED_CHANGES: dict[str, dict[str, str]] = {
    "equality": {"source": COUNTED.source.replace("l.k = r.k", "l.v % 3 = r.v % 3")},
    "condition": {"source": f"{COUNTED.source} AND l.v > 3"},
    "left": {"source": COUNTED.source.replace("ROWS 9", "ROWS 8")},
    "time": {"source": COUNTED.source.replace("ROWS 9", "RANGE 1 SECOND")},
    "select": {"select": "l.k AS k"},
    "shed": {"option": "SHED 50 PERCENT BY CONCEPT"},
}

PLAIN = Query(select="k, v", source="s", where="v > 2")
PLAIN_CHANGES: dict[str, dict[str, str]] = {
    "where": {"where": "v > 3"},
    "select": {"select": "v * 2 AS w"},
    "limit": {"limit": "200"},
    "window": {"source": "s [RANGE 6 SECONDS]", "select": "k, COUNT(*) AS n", "group": "k"},
}
LIMITED = replace(PLAIN, limit="230")
LIMITED_CHANGES: dict[str, dict[str, str]] = {
    "limit": {"limit": "220"},
    "no limit": {"limit": ""},
    "where": {"where": "v > 3"},
    "a column less": {"select": "k"},
    "a name": {"select": "k AS w, v"},
}

NESTED = Query(
    select="MAX(s) AS m, COUNT(*) AS n",
    source=f"(SELECT k, s FROM ({AGGREGATE.sql}) WHERE s > 1) [RANGE 4 SECONDS]",
)
NESTED_CHANGES: dict[str, dict[str, str]] = {
    "outer select": {"select": "MAX(s) AS m"},
    "outer function": {"select": "MIN(s) AS m, COUNT(*) AS n"},
    "outer having": {"having": "COUNT(*) > 2"},
    "between": {"source": NESTED.source.replace("s > 1", "s > 100")},
    "inner having": {"source": NESTED.source.replace("GROUP BY k", "GROUP BY k HAVING AVG(v) > 3")},
    "inner where": {"source": NESTED.source.replace("v > 0", "v > 1")},
    "inner function less": {"source": NESTED.source.replace(", MEDIAN(v) AS m", "")},
    "inner shed": {
        "source": NESTED.source.replace(
            "GROUP BY k)", "GROUP BY k WITH SHED 50 PERCENT BY CONCEPT)"
        )
    },
}


def _all() -> Iterator[tuple[str, str, str]]:
    """Every case: what is changed, and the query before and after."""
    bases: list[tuple[str, Query, Mapping[str, Mapping[str, str]], tuple[str, ...]]] = [
        ("aggregate", AGGREGATE, AGGREGATE_CHANGES, OPTIONS),
        ("join", JOIN, JOIN_CHANGES, JOIN_OPTIONS),
        ("over pairs", OVER_PAIRS, OVER_PAIRS_CHANGES, OVER_PAIRS_OPTIONS),
        ("tuples", TUPLES, TUPLES_CHANGES, ("",)),
        ("counted", COUNTED, COUNTED_CHANGES, ("",)),
        ("plain", PLAIN, PLAIN_CHANGES, ("",)),
        ("limited", LIMITED, LIMITED_CHANGES, ("",)),
        ("nested", NESTED, NESTED_CHANGES, ("",)),
    ]
    for name, base, changes, options in bases:
        for option in options:
            old = replace(base, option=option)
            title = f"{name} {option}".strip().lower()
            for change, clauses in changes.items():
                yield f"{title}: {change}", old.sql, replace(old, **clauses).sql
            for other in options:
                if other != option:
                    yield f"{title}: to {other}", old.sql, replace(old, option=other).sql
