"""Every clause of a query changed on a checkpoint: refused, or the rows are those of the new one.

Where the state does not notice a change, the rows of each batch after it are those that the new
query gives in the same batch when it has run from the beginning.
"""

from __future__ import annotations

import itertools
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tests.driver.scene import SCHEMA, Row, loop_of, memory, plan_of, rows_of
from tests.query.catalog import stream
from tidegate.errors import CheckpointError, QueryError
from tidegate.plan.lowering.lower import lower
from tidegate.plan.physical import Plan
from tidegate.query.node.node import Input, StreamDef
from tidegate.query.output import Output
from tidegate.query.stream import Stream
from tidegate.sink.memory import MemorySink

ROWS: list[Row] = [(i * 0.11, "abbccc"[i * i % 6], (i * 5) % 23) for i in range(240)]
BATCH = 48
AT = 2
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
    "SHED 60 PERCENT BY UNIFORM",
    "SHED 60 PERCENT BY CONCEPT",
    "BALANCE ERROR 30 PERCENT TRIM ALL",
    "PARTITIONER am",
    "PARTITIONER auto",
)
OTHER_OPTIONS = (
    *OPTIONS,
    "ERROR 20 PERCENT",
    "ERROR 30 PERCENT CONFIDENCE 80 PERCENT",
    "ERROR 30 PERCENT BUDGET 40 ROWS",
    "ERROR 30 PERCENT BY MEAN",
    "SHED 60.00000000001 PERCENT BY UNIFORM",
    "SHED 70 PERCENT BY CONCEPT",
    "BALANCE ERROR 20 PERCENT TRIM ALL",
    "BALANCE ERROR 30 PERCENT CONFIDENCE 80 PERCENT TRIM ALL",
    "PARTITIONER pk",
    "PARTITIONER hash",
)
"""What an option is changed to: another, and the same with other parameters."""

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
    source="s l [RANGE 6 SECONDS] JOIN s r [RANGE 4 SECONDS] ON l.k = r.k AND l.v <= r.v + 3",
)
JOIN_OPTIONS = ("", "SHED 60 PERCENT BY UNIFORM", "SHED 60 PERCENT BY CONCEPT")
OTHER_JOIN_OPTIONS = (*JOIN_OPTIONS, "SHED 50 PERCENT BY UNIFORM", "SHED 50 PERCENT BY CONCEPT")


def _on(text: str) -> dict[str, str]:
    return {"source": f"{JOIN.source.partition(' ON ')[0]} ON {text}"}


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
    "left window": {"source": JOIN.source.replace("RANGE 6 S", "RANGE 7 S")},
    "right window": {"source": JOIN.source.replace("RANGE 4 S", "RANGE 5 S")},
    "windows of tuples": {"source": JOIN.source.replace("RANGE 4 SECONDS", "ROWS 9")},
    "where": {"where": "l.v + r.v > 9"},
    "where of a side": {"where": "r.v > 3"},
    "a column less": {"select": "l.k AS k, l.v AS x"},
    "keys of columns less": {"select": "l.v AS x, r.v AS y"},
    "another column": {"select": "l.k AS k, l.v AS x, r.v AS y, r.k AS z"},
    "an expression": {"select": "l.v * r.v AS x"},
}

OVER_PAIRS = Query(
    select="k, COUNT(*) AS n, SUM(x) AS s",
    source="(SELECT l.k AS k, l.v AS x FROM s l [RANGE 3 SECONDS] JOIN s r [RANGE 2 SECONDS] "
    "ON l.k = r.k) [RANGE 4 SECONDS]",
    group="k",
)
OVER_PAIRS_OPTIONS = (
    "",
    "SHED 60 PERCENT BY UNIFORM",
    "SHED 60 PERCENT BY CONCEPT",
    "SHED 60 PERCENT BY CONCEPT WITH ERROR 30 PERCENT",
)
OTHER_OVER_PAIRS_OPTIONS = (
    *OVER_PAIRS_OPTIONS,
    "SHED 50 PERCENT BY CONCEPT",
    "SHED 60 PERCENT BY CONCEPT WITH ERROR 20 PERCENT",
)
OVER_PAIRS_CHANGES: dict[str, dict[str, str]] = {
    "equality": {"source": OVER_PAIRS.source.replace("l.k = r.k", "l.v = r.v")},
    "condition": {"source": OVER_PAIRS.source.replace("r.k)", "r.k AND l.v > 2)")},
    "join window": {"source": OVER_PAIRS.source.replace("RANGE 2 S", "RANGE 1 S")},
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


class Newest(tg.Process):
    """The sum of the newest values of a key."""

    output: ClassVar[Mapping[str, str]] = {"k": "string", "total": "bigint"}

    def __init__(self, most: int = 5) -> None:
        self.most = most
        self.values: dict[str, list[int]] = {}

    def on_tuple(self, tuple: Any, keys: Sequence[str]) -> Any:
        for key in keys:
            self.values[key] = [*self.values.get(key, []), tuple.v][-self.most :]
            yield {"k": str(key), "total": sum(self.values[key])}


class Summed(Newest):
    """Another class."""


class Largest(tg.Process):
    """The largest values of a window and group, a row for each."""

    output: ClassVar[Mapping[str, str]] = {"value": "bigint"}
    mergeable = True

    def __init__(self, most: int = 3) -> None:
        self.most = most
        self.values: list[int] = []

    def on_tuple(self, tuple: Any, keys: Sequence[str]) -> None:
        self.values = sorted([*self.values, tuple.v])[-self.most :]

    def merge(self, other: Largest) -> None:
        self.values = sorted([*self.values, *other.values])[-self.most :]

    def finish(self) -> Any:
        return [{"value": value} for value in self.values]


class Total(tg.Aggregator):
    """A sum times a factor."""

    state: ClassVar[Mapping[str, pa.DataType]] = {"total": pa.int64()}
    result = pa.int64()

    def __init__(self, factor: int = 1) -> None:
        self.factor = factor

    def init(self, n: int) -> dict[str, Any]:
        return {name: np.zeros(n, np.int64) for name in self.state}

    def fold(self, state: dict[str, Any], groups: Any, *columns: pa.Array) -> dict[str, Any]:
        for held in state.values():
            np.add.at(held, groups, columns[0].to_numpy())
        return state

    def merge(self, state: dict[str, Any], groups: Any, other: Any) -> dict[str, Any]:
        for name, held in state.items():
            np.add.at(held, groups, other[name])
        return state

    def finish(self, state: dict[str, Any]) -> pa.Array:
        return pa.array(next(iter(state.values())) * self.factor)


def _edited(**fields: Any) -> type[Total]:
    """The class after somebody has edited it: other attributes under the same name."""
    return type("Total", (Total,), {"__module__": __name__, "__qualname__": "Total", **fields})


def _even(bucket: int, tuples: pa.Table) -> pa.Array:
    return pa.array([v % 2 == 0 for v in tuples.column("v").to_pylist()])


Build = Callable[[Stream], Stream]


def _processed(stream: Stream, factory: Any = Newest, keys: str = "k", **more: Any) -> Stream:
    return stream.process(factory, keys=keys, **more)


def _windowed(
    stream: Stream, factory: Any = Largest, window: str = "4 seconds", key: str = "k"
) -> Stream:
    return stream.window(window, slide="2 seconds").group_by(key).process(factory)


def _folded(stream: Stream, *totals: Total) -> Stream:
    of = {f"t{i}": tg.aggregate(total, "v") for i, total in enumerate(totals)}
    return stream.window("4 seconds", slide="2 seconds").group_by("k").agg(n=tg.count(), **of)


V = tg.col("v")

PROGRAMS: dict[str, tuple[Build, dict[str, Build]]] = {
    "process": (
        _processed,
        {
            "another class": lambda s: _processed(s, Summed),
            "a parameter": lambda s: _processed(s, partial(Newest, 4)),
            "the same by a parameter": lambda s: _processed(s, partial(Newest)),
            "other keys": lambda s: _processed(s, keys="v"),
            "a filter": lambda s: _processed(s, filter=_even),
            "where": lambda s: _processed(s.where(V > 3)),
            "another column": lambda s: _processed(s.select("k", v=V + 1)),
            "a column more": lambda s: _processed(s.select("k", "v", w=V + 1)),
            "where after it": lambda s: _processed(s).where(tg.col("total") > 20),
            "select after it": lambda s: _processed(s).select(t=tg.col("total") * 2),
            "a window after it": lambda s: _folded(_processed(s).select("k", v="total")),
        },
    ),
    "mergeable process": (
        _windowed,
        {
            "a parameter": lambda s: _windowed(s, partial(Largest, 2)),
            "window": lambda s: _windowed(s, window="6 seconds"),
            "key": lambda s: _windowed(s, key="v"),
            "where": lambda s: _windowed(s.where(V > 3)),
            "another column": lambda s: _windowed(s.select("k", v=V + 1)),
            "where after it": lambda s: _windowed(s).having(tg.col("value") > 9),
            "select after it": lambda s: _windowed(s).select(w=tg.col("value") + 1),
            "order": lambda s: _windowed(s).top(1, by="value"),
        },
    ),
    "user's aggregate": (
        lambda s: _folded(s, Total()),
        {
            "a parameter": lambda s: _folded(s, Total(2)),
            "twice": lambda s: _folded(s, Total(), Total()),
            "one less": _folded,
            "another state": lambda s: _folded(s, _edited(state={"sum": pa.int64()})()),
            "another type of state": lambda s: _folded(s, _edited(state={"total": pa.int32()})()),
            "another result": lambda s: _folded(s, _edited(result=pa.float64())()),
        },
    ),
    "a column's type": (
        lambda s: s.where(V > 3).window("4 seconds").agg(n=tg.count()),
        {
            "of a condition": lambda s: (
                _retyped(s).where(V > 3).window("4 seconds").agg(n=tg.count())
            )
        },
    ),
}


def _retyped(stream: Stream) -> Stream:
    return _stream(pa.schema([f if f.name != "v" else pa.field("v", pa.int32()) for f in SCHEMA]))


def _stream(schema: pa.Schema = SCHEMA) -> Stream:
    return stream(Input(StreamDef("s", (), "ts", 0, None, schema)))


def _program(build: Build) -> Plan:
    return lower((Output(None, build(_stream()).node),))


Case = tuple[str, str, Callable[[], Plan], Callable[[], Plan]]
"""What it begins with, what is changed, and the plans before and after."""


def _cases() -> Iterator[Case]:
    for name, base, changes, options, others in (
        ("aggregate", AGGREGATE, AGGREGATE_CHANGES, OPTIONS, OTHER_OPTIONS),
        ("join", JOIN, JOIN_CHANGES, JOIN_OPTIONS, OTHER_JOIN_OPTIONS),
        ("pairs", OVER_PAIRS, OVER_PAIRS_CHANGES, OVER_PAIRS_OPTIONS, OTHER_OVER_PAIRS_OPTIONS),
        ("tuples", TUPLES, TUPLES_CHANGES, ("",), ("",)),
        ("pairs of tuples", COUNTED, COUNTED_CHANGES, ("",), ("",)),
        ("no state", PLAIN, PLAIN_CHANGES, ("",), ("",)),
        ("limit", LIMITED, LIMITED_CHANGES, ("",), ("",)),
        ("nested", NESTED, NESTED_CHANGES, ("",), ("",)),
    ):
        for option in options:
            title, old = f"{name} {option}".strip().lower(), replace(base, option=option)
            news = {change: replace(old, **clauses) for change, clauses in changes.items()}
            news |= {
                o.lower() or "no option": replace(old, option=o) for o in others if o != option
            }
            for change, new in news.items():
                yield title, change, partial(plan_of, old.sql), partial(plan_of, new.sql)
    for title, (build, builds) in PROGRAMS.items():
        for change, other in builds.items():
            yield title, change, partial(_program, build), partial(_program, other)


CASES = list(_cases())
FOUND = {
    "aggregate": (14, 33, 0),
    "aggregate error 30 percent": (11, 34, 2),
    "aggregate shed 60 percent by uniform": (16, 31, 0),
    "aggregate shed 60 percent by concept": (11, 36, 0),
    "aggregate balance error 30 percent trim all": (7, 37, 3),
    "aggregate partitioner am": (13, 34, 0),
    "aggregate partitioner auto": (11, 36, 0),
    "join": (16, 7, 0),
    "join shed 60 percent by uniform": (15, 6, 2),
    "join shed 60 percent by concept": (9, 12, 2),
    "pairs": (4, 11, 0),
    "pairs shed 60 percent by uniform": (4, 11, 0),
    "pairs shed 60 percent by concept": (4, 11, 0),
    "pairs shed 60 percent by concept with error 30 percent": (4, 9, 2),
    "tuples": (4, 6, 1),
    "pairs of tuples": (3, 2, 1),
    "no state": (2, 2, 0),
    "limit": (1, 4, 0),
    "nested": (3, 5, 0),
    "process": (2, 9, 0),
    "mergeable process": (3, 5, 0),
    "user's aggregate": (3, 3, 0),
    "a column's type": (0, 1, 0),
}
"""By what it begins with: how many changes go on, how many are refused, and how many are no query
at all."""


def _run(plan: Plan, place: Path, batches: int | None = None) -> list[list[Any]]:
    """The rows of each batch."""
    sink = MemorySink()
    loop = loop_of(plan, [memory(*ROWS, end=True)], place, sink, batch_rows=BATCH)
    counts = [0]
    try:
        for _ in itertools.count() if batches is None else range(batches):
            if loop.step() is None:
                break
            counts.append(sink.table().num_rows)
    finally:
        loop.close()
    rows = rows_of(sink)
    return [rows[a:b] for a, b in itertools.pairwise(counts)]


def _outcome(plan: Callable[[], Plan], begun: Path, folder: Path) -> str:
    """Refused with what changed, or the rows of a run that began with the new query."""
    try:
        new = plan()
    except QueryError:
        return "no query"
    place = folder / "changed"
    shutil.copytree(begun, place)
    try:
        rows = _run(new, place)
    except CheckpointError as error:
        refused = str(error)
    else:
        refused = ""
    if refused:
        assert "What changed:\n  " in refused
        assert _contents(place) == _contents(begun)
        return "refused"
    assert rows == _run(new, folder / "alone")[AT:]
    assert any(rows)
    return "goes on"


def _contents(place: Path) -> dict[str, bytes]:
    files = (path for path in place.rglob("*") if path.is_file())
    return {str(path.relative_to(place)): path.read_bytes() for path in files}


@pytest.mark.parametrize("title", FOUND)
def test_every_change_is_refused_or_gives_the_rows_of_the_new_query(
    title: str, tmp_path: Path
) -> None:
    cases = [case for case in CASES if case[0] == title]
    begun, outcomes = tmp_path / "begun", {}
    _run(cases[0][2](), begun, AT)
    for number, (_, change, _, new) in enumerate(cases):
        folder = tmp_path / str(number)
        folder.mkdir()
        outcomes[change] = _outcome(new, begun, folder)
        shutil.rmtree(folder)
    counts = Counter(outcomes.values())
    assert tuple(counts[k] for k in ("goes on", "refused", "no query")) == FOUND[title], outcomes


def test_every_query_of_the_table_is_changed() -> None:
    assert list(FOUND) == list(dict.fromkeys(title for title, *_ in CASES))
    assert sum(map(sum, FOUND.values())) == len(CASES)
