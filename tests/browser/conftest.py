"""One browser for all tests of a process, and reports of two runs to look at."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from contextlib import chdir
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

import tidegate as tg
from tests.browser.sight import tools
from tidegate.cli.main import invoke

HOSTILE = '<img src=x onerror="alert(1)">'
SLOW_KEY = "slow"
NEW_YEAR = datetime(2024, 1, 1, tzinfo=UTC)


class SlowForOne(tg.Process):
    """Takes 5 ms for each tuple of one key: the instance that has it is the straggler."""

    output = {"who": "string", HOSTILE: "bigint"}  # noqa: RUF012

    def on_tuple(self, one: Any, keys: list[str]) -> Iterator[dict[str, Any]]:
        if SLOW_KEY in keys:
            time.sleep(0.005)
        yield {"who": HOSTILE, HOSTILE: 1}


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=tools()[0], args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture(scope="session")
def slowed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint of a run with a straggler, hostile texts and a switch."""
    folder = tmp_path_factory.mktemp("slowed")
    drawn = random.Random(1)
    keys = [SLOW_KEY if drawn.random() < 0.1 else f"k{drawn.randrange(100)}" for _ in range(3000)]
    rows = [{"ts": NEW_YEAR + timedelta(milliseconds=i), "key": k} for i, k in enumerate(keys)]
    source = tg.MemorySource(rows[:1000], time="ts")
    stream = tg.Session(master="none").stream(source, time="ts")
    query = stream.process(SlowForOne, keys="key").start(
        sink=tg.sink.memory(), checkpoint=folder / "ckpt", instances=4, batch_rows=100
    )
    while query.status()["batch"] < 5:
        assert "running" in repr(query), query
        time.sleep(0.02)
    query.scale(3, why=HOSTILE)
    source.append(rows[1000:])
    source.end()
    query.wait()
    return folder / "ckpt"


@pytest.fixture(scope="session")
def straggler(slowed: Path) -> str:
    """The page of that run, as a URL."""
    return _reported(slowed)


@pytest.fixture(scope="session")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of a run with answers from samples, late rows, and rows that cannot be read."""
    folder = tmp_path_factory.mktemp("sampled")
    drawn = random.Random(2)
    lines = ["ts,zone,size"]
    for i in range(40_000):
        late = timedelta(milliseconds=drawn.expovariate(1 / 300) if drawn.random() < 0.1 else 0)
        at = max(NEW_YEAR + timedelta(milliseconds=10 * i) - late, NEW_YEAR)
        size = "oops" if i % 5_000 == 7 else f"{drawn.gauss(500, 90):.1f}"
        lines.append(f"{at.isoformat()},{'north' if i % 2 else 'south'},{size}")
    (folder / "sales.csv").write_text("\n".join(lines))
    (folder / "q.sql").write_text(
        "CREATE STREAM sales (ts TIMESTAMP, zone STRING, size DOUBLE) FROM 'sales.csv' TIME ts "
        "DISORDER 200 MILLISECONDS;"
        "SELECT zone, MEDIAN(size) AS size, COUNT(*) AS n FROM sales [RANGE 1 MINUTE] "
        "GROUP BY zone WITH ERROR 10 PERCENT CONFIDENCE 95 PERCENT"
    )
    with chdir(folder):
        asked = (
            "run q.sql --master none --instances 2 --batch-rows 4000 --out out --checkpoint ckpt"
        )
        assert invoke(asked.split()) == 0
    return _reported(folder / "ckpt")


def _reported(checkpoint: Path) -> str:
    page = checkpoint.with_name("report.html")
    assert invoke(["report", os.fspath(checkpoint), "-o", os.fspath(page)]) == 0
    return page.as_uri()
