"""What the pages on operators of one's own show runs as it stands, and does what they say."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tests.docs.block import ROOT, blocks

PAGES = ("docs/process.md", "docs/process-reference.md")
START = datetime(2024, 1, 1, tzinfo=UTC)


@pytest.fixture
def page() -> dict[str, Any]:
    """Everything the blocks of the pages define, one after the other."""
    names: dict[str, Any] = {}
    for path in PAGES:
        for block in blocks(path, "python"):
            exec(compile(block, path, "exec"), names)
    return names


def ran(stream: tg.Stream, **options: Any) -> pa.Table:
    sink = tg.sink.memory()
    assert stream.start(sink=sink, **options).wait().finished
    return sink.table()


def stream(rows: list[dict[str, Any]]) -> tg.Stream:
    source = tg.MemorySource(rows, time="at")
    source.end()
    return tg.Session(master="none").stream(source, time="at")


def test_the_first_example_prints_what_its_comment_says(capsys: Any) -> None:
    program = blocks("docs/process.md", "python")[0]
    exec(compile(program, "docs/process.md", "exec"), {})
    (said,) = re.findall(r"print\(.*\)  # (\S.*)", program)
    assert capsys.readouterr().out == f"{said}\n"


def test_the_example_of_initial_state_gives_what_its_comment_says(page: dict[str, Any]) -> None:
    text = "".join(blocks("docs/process-reference.md", "python"))
    (said,) = re.findall(r"print\(balances.*\)  # (\S.*)", text)
    assert str(page["balances"].to_arrow()["balance"].to_pylist()) == said


def test_the_example_by_columns_does_not_depend_on_the_batches(page: dict[str, Any]) -> None:
    prices = np.random.default_rng(3).permutation(200).astype(float)
    rows = [{"at": START + timedelta(seconds=i), "price": p} for i, p in enumerate(prices)]
    lowest = np.minimum.accumulate(prices)
    drops = [p for i, p in enumerate(prices) if i == 0 or p < lowest[i - 1]]
    for batch_rows in (7, 1000):
        query = stream(rows).process(page["Drops"])
        found = ran(query, buckets=1, instances=1, batch_rows=batch_rows)
        assert found["price"].to_pylist() == drops


def test_the_example_with_columns_does_not_depend_on_the_batches(page: dict[str, Any]) -> None:
    prices = np.random.default_rng(4).permutation(200).astype(float)
    rows = [{"at": START + timedelta(seconds=i), "price": p} for i, p in enumerate(prices)]
    below = [prices[max(0, i - 59) : i + 1].max() - p for i, p in enumerate(prices)]
    for batch_rows in (7, 1000):
        query = stream(rows).process(page["BelowHighest"])
        found = ran(query, buckets=1, instances=1, batch_rows=batch_rows)
        assert found["below"].to_pylist() == below


def test_the_example_with_timers(page: dict[str, Any]) -> None:
    said = [(0, "a"), (30, "b"), (50, "a"), (200, "b"), (230, "a")]
    rows = [{"at": START + timedelta(seconds=s), "sensor": n} for s, n in said]
    for batch_rows in (1, 1000):
        found = ran(stream(rows).process(page["Silent"], keys="sensor"), batch_rows=batch_rows)
        silent = [((r["ts"] - START).seconds, r["sensor"]) for r in found.to_pylist()]
        assert silent == [(90, "b"), (110, "a"), (260, "b"), (290, "a")]


def test_the_example_with_a_time_to_live(page: dict[str, Any]) -> None:
    sent = [(0, "ann", "x"), (9, "ann", "x"), (10, "bob", "x"), (19, "ann", "x"), (20, "bob", "x")]
    rows = [{"at": START + timedelta(minutes=m), "user": u, "id": i} for m, u, i in sent]
    for batch_rows in (1, 1000):
        orders = stream(rows).process(page["Repeats"], keys="user")
        found = ran(orders, batch_rows=batch_rows, buckets=1)
        seen = [
            ((r["ts"] - START).seconds // 60, r["user"], r["repeats"]) for r in found.to_pylist()
        ]
        assert seen == [(9, "ann", 1)], "ten minutes later it is forgotten"


def test_the_page_names_what_a_class_may_use() -> None:
    text = "".join((ROOT / path).read_text(encoding="utf-8") for path in PAGES)
    public = [n for n in vars(tg.Process) if not n.startswith("_")]
    assert [n for n in public if n not in text] == []


def test_the_example_over_windows(page: dict[str, Any]) -> None:
    page["test_busiest"]()
    found = ran(page["busiest"], instances=3, batch_rows=700)
    assert found.column_names == ["window_start", "window_end", "protocol", "host", "bytes"]
    by_hash = page["packets"].window("1 minute").group_by("protocol").process(page["Busiest"])
    assert ran(by_hash, instances=1) == found
    assert found.num_rows > 5
