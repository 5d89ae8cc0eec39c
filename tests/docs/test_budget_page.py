"""What the page on a budget of instances shows runs, and is refused with the words that it has."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import tidegate as tg
from tests.docs.block import ROOT, blocks

START = datetime(2024, 1, 1, tzinfo=UTC)


def source(key: str) -> tg.MemorySource:
    rows = [{"ts": START + timedelta(seconds=i), key: i % 3} for i in range(90)]
    return tg.MemorySource(rows, time="ts")


def test_two_queries_run_within_it() -> None:
    (block,) = blocks("docs/budget.md", "python")
    names: dict[str, Any] = {"rides_source": source("route"), "calls_source": source("district")}
    exec(compile(block, "docs/budget.md", "exec"), names)
    told = names["first"].status()["budget"]
    assert (told["instances"], told["queries"]) == (8, 2)
    with pytest.raises(tg.OptionError) as refused:
        names["second"].scale(9)
    said = str(refused.value).partition("; got")[0]
    assert said in (ROOT / "docs" / "budget.md").read_text(encoding="utf-8")
    for name in ("rides_source", "calls_source"):
        names[name].end()
    for name in ("first", "second"):
        assert names[name].wait().finished
