"""Rows that are decided later than their own time keep it through what follows them."""

from __future__ import annotations

from typing import Any

import pytest

import tidegate as tg

ALONE = (
    "SELECT a.k, b.k AS other FROM a [RANGE 2 SECONDS] LEFT JOIN b [RANGE 2 SECONDS] ON a.k = b.k"
)
AHEAD = (
    "SELECT a.k, b.k AS other FROM a ASOF LEFT JOIN b [RANGE 2 SECONDS] "
    "MATCH_CONDITION (a.ts <= b.ts) ON a.k = b.k"
)
STRATEGIES = ("operator-set", "query-cloud", "operator-cloud")


def rows(text: str, strategy: str = "operator-set") -> list[tuple[Any, ...]]:
    session = tg.Session(master="none")
    given: dict[str, Any] = {
        name: session.stream(
            [{"ts": f"1970-01-01 00:00:0{t}", "k": t % m} for t in range(6)], time="ts", name=name
        )
        for name, m in (("a", 3), ("b", 2))
    }
    given["zones"] = session.table([{"id": i, "name": f"z{i}"} for i in range(3)], name="zones")
    sink = tg.sink.memory()
    query = session.sql(text, **{n: s for n, s in given.items() if n in text})
    query.start(sink=sink, strategy=strategy, batch_rows=3, instances=2).wait()
    return [tuple(row.values()) for row in sink.table().to_pylist()]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("below", [ALONE, AHEAD], ids=["left join", "as-of ahead"])
def test_through_a_table(below: str, strategy: str) -> None:
    wanted = rows(below)
    joined = rows(f"{below} LEFT JOIN zones AS z ON a.k = z.id", strategy)
    above = rows(f"SELECT q.k, q.other FROM ({below}) AS q JOIN zones ON q.k = zones.id", strategy)
    asked = rows(f"SELECT * FROM ({below}) AS q SEMI JOIN zones ON q.k = zones.id", strategy)
    assert [at for at, *_ in wanted] != sorted(at for at, *_ in wanted)
    assert joined == above == asked == wanted


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_time_that_is_selected_after_a_table_is_the_one_that_is_shown(strategy: str) -> None:
    found = rows(
        f"SELECT ts AS at, z.name FROM ({ALONE}) AS q JOIN zones AS z ON q.k = z.id", strategy
    )
    assert [ts for ts, *_ in found] == [at for _, at, _ in found]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_through_a_list(strategy: str) -> None:
    found = rows(
        f"SELECT k, other, EXPLODE(SPLIT(CAST(k AS STRING), ',')) AS v FROM ({ALONE}) AS q",
        strategy,
    )
    assert [row[:3] for row in found] == rows(ALONE)


def test_their_order_is_not_that_of_ts_after_a_table_and_a_list() -> None:
    for above in (
        "q SEMI JOIN zones ON q.k = zones.id",
        "q, UNNEST(SPLIT(CAST(k AS STRING), ',')) AS u(v)",
    ):
        with pytest.raises(tg.QueryError, match="some later than their ts"):
            rows(f"SELECT k FROM ({ALONE}) AS {above} ORDER BY ts")
