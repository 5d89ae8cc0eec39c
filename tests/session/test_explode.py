"""EXPLODE and UNNEST: rows for the values of lists, in the total order, however a query is run."""

from __future__ import annotations

from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidegate as tg
from tests.oracle.unnest import exploded
from tidegate.errors import QueryError
from tidegate.operate import unnest
from tidegate.schema import TIME

_ids = count()
LISTS = st.one_of(st.none(), st.lists(st.one_of(st.none(), st.integers(-3, 3)), max_size=4))


def table(lists: list[Any], instants: int = 3) -> pa.Table:
    times = pa.array([n * 1_000_000 // instants for n in range(len(lists))], pa.int64())
    columns = {"ts": times.view(TIME), "id": pa.array(range(len(lists)), pa.int64())}
    return pa.table({**columns, "l": pa.array(lists, pa.list_(pa.int64()))})


def run(text: str, *tables: pa.Table, **options: Any) -> list[dict[str, Any]]:
    session, sources = tg.Session(master="none"), []
    for rows in tables:
        source = tg.MemorySource(rows, time="ts", id=f"s/{next(_ids)}")
        source.end()
        sources.append(source)
    sink = tg.sink.memory()
    stream = session.stream(sources, time="ts", name="s")
    session.sql(text, s=stream).start(sink=sink, **options).wait()
    return sink.table().to_pylist()


@given(st.lists(LISTS, max_size=8), st.booleans(), st.integers(0, 1))
def test_the_kernel_is_the_plain_twin(lists: list[Any], outer: bool, first: int) -> None:
    rows = pa.table({"id": range(len(lists)), unnest.VALUES: pa.array(lists, pa.list_(pa.int64()))})
    for part in (rows, rows.slice(2)):
        made = unnest.exploded(part, first, outer).select(["id", unnest.VALUE, unnest.PLACE])
        wanted = list(exploded(part.to_pylist(), unnest.VALUES, first, outer))
        assert made.rename_columns(["id", "value", "place"]).to_pylist() == wanted


@given(
    st.lists(LISTS, min_size=1, max_size=12),
    st.integers(1, 7),
    st.integers(1, 3),
    st.integers(1, 3),
)
def test_the_same_rows_however_it_is_run(
    lists: list[Any], batch: int, instances: int, then: int
) -> None:
    rows = table(lists)
    wanted = [
        {"ts": r["ts"], "id": r["id"], "p": r["place"], "v": r["value"]}
        for r in exploded(rows.to_pylist(), "l", 0, outer=True)
    ]
    got = run(
        "SELECT id, POSEXPLODE_OUTER(l) AS (p, v) FROM s",
        rows,
        batch_rows=batch,
        instances=instances,
        switches={2: then},
    )
    assert got == wanted


WAYS = {
    "SELECT id, EXPLODE(l) AS v FROM s WHERE id <> 1": (None, False),
    "SELECT id, v FROM s CROSS JOIN UNNEST(l) AS t(v) WHERE s.id <> 1": (None, False),
    "SELECT id, t.v FROM s, UNNEST(l) AS t(v) WHERE id <> 1": (None, False),
    "SELECT id, v FROM s CROSS JOIN LATERAL EXPLODE(l) AS t(v) WHERE id <> 1": (None, False),
    "SELECT id, v FROM s LATERAL VIEW EXPLODE(l) t AS v WHERE id <> 1": (None, False),
    "SELECT id, EXPLODE_OUTER(l) AS v FROM s WHERE id <> 1": (None, True),
    "SELECT id, v FROM s LATERAL VIEW OUTER EXPLODE(l) t AS v WHERE id <> 1": (None, True),
    "SELECT id, POSEXPLODE(l) AS (p, v) FROM s WHERE id <> 1": (0, False),
    "SELECT id, p, v FROM s LATERAL VIEW POSEXPLODE(l) t AS p, v WHERE id <> 1": (0, False),
    "SELECT id, p, v FROM s, UNNEST(l) WITH ORDINALITY AS t(v, p) WHERE id <> 1": (1, False),
}


@pytest.mark.parametrize("text", WAYS)
def test_every_way_to_write_it(text: str) -> None:
    rows = table([[1, 2], [3], None, [], [None, 4], [5]])
    first, outer = WAYS[text]
    tuples = [r for r in rows.to_pylist() if r["id"] != 1]
    wanted = []
    for r in exploded(tuples, "l", first or 0, outer):
        place = {} if first is None else {"p": r["place"]}
        wanted.append({"ts": r["ts"], "id": r["id"], **place, "v": r["value"]})
    assert run(text, rows, batch_rows=2, instances=2) == wanted


def test_two_sources_and_a_window_over_values() -> None:
    rows = [table([[1, 2], [2], [3, 3]]), table([[2], None, [1]])]
    text = (
        "SELECT v, COUNT(*) AS n, ARRAY_AGG(p) AS places FROM s [RANGE 1 SECOND] CROSS JOIN "
        "UNNEST(l) WITH ORDINALITY AS t(v, p) GROUP BY v"
    )
    got = run(text, *rows, batch_rows=2, instances=3)
    assert [(r["v"], r["n"], r["places"]) for r in got] == [
        (1, 2, [1, 1]),
        (2, 3, [2, 1, 1]),
        (3, 2, [1, 2]),
    ]
    assert got == run(text, *rows)


def test_lists_of_windows_become_tuples_again() -> None:
    text = (
        "SELECT k, EXPLODE(ids) AS id FROM (SELECT id % 2 AS k, ARRAY_AGG(id ORDER BY id DESC) AS "
        "ids FROM s [RANGE 1 SECOND] GROUP BY id % 2)"
    )
    got = run(text, table([[]] * 3), batch_rows=1)
    assert [(r["k"], r["id"]) for r in got] == [(0, 2), (0, 0), (1, 1)]


def test_two_lists_give_every_pair_in_order() -> None:
    text = "SELECT a, b FROM s LATERAL VIEW EXPLODE(l) x AS a LATERAL VIEW EXPLODE(l) y AS b"
    got = run(text, table([[2, 1]]))
    assert [(r["a"], r["b"]) for r in got] == [(2, 2), (2, 1), (1, 2), (1, 1)]


def test_python_explodes_in_place_or_beside() -> None:
    session = tg.Session(master="none")
    stream = session.stream(table([[1, 2], []]), time="ts")
    in_place = stream.explode("l")
    assert in_place.schema.names == ["ts", "id", "l"]
    assert in_place.schema.field("l").type == pa.int64()
    beside = stream.explode("l", into="v", position="p", outer=True)
    assert beside.schema.names == ["ts", "id", "l", "p", "v"]
    found = []
    for query in (in_place, beside.select("id", "p", "v")):
        sink = tg.sink.memory()
        query.start(sink=sink).wait()
        found.append([tuple(r.values())[1:] for r in sink.table().to_pylist()])
    assert found == [[(0, 1), (0, 2)], [(0, 0, 1), (0, 1, 2), (1, None, None)]]
    with pytest.raises(QueryError, match="explode: what is computed needs a name"):
        stream.explode(tg.col("id") + 1)
    with pytest.raises(QueryError, match="EXPLODE: must be of an array; got id, which is bigint"):
        stream.explode("id")


def test_rows_of_tuples_that_were_decided_later_show_the_time_of_the_tuple() -> None:
    last = "SELECT DISTINCT ON (id % 2) id, l FROM s KEEP LAST WITHIN '1 second'"
    rows = run(f"SELECT id, EXPLODE(l) AS v FROM ({last})", table([[0], [1], [2, 3], [4]]))
    kept = run(last, table([[0], [1], [2, 3], [4]]))
    own = {row["id"]: row["ts"] for row in kept}
    assert [(row["id"], row["v"]) for row in rows] == [(2, 2), (2, 3), (3, 4)]
    assert [row["ts"] for row in rows] == [own[row["id"]] for row in rows]


def test_a_column_that_has_the_name_of_the_event_time_is_not_lost() -> None:
    session = tg.Session(master="none")
    rows = table([[1]]).rename_columns(["at", "ts", "l"])
    stream = session.stream(rows, time="at", name="s")
    with pytest.raises(QueryError, match="the name ts belongs to the event time"):
        session.sql("SELECT ts, EXPLODE(l) AS v FROM s", s=stream)
    named = session.sql("SELECT t, EXPLODE(l) AS v FROM (SELECT ts AS t, l FROM s)", s=stream)
    assert [(row["t"], row["v"]) for row in named.to_arrow().to_pylist()] == [(0, 1)]
