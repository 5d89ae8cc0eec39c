"""What the page on Python says of aggregates of one's own runs as it stands."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest

import tidegate as tg
from tests.docs.block import ROOT, blocks
from tests.testing.test_aggregate import Total
from tidegate.testing import check_aggregate


@pytest.fixture
def page() -> dict[str, Any]:
    (program,) = [b for b in blocks("docs/python.md", "python") if "check_aggregate" in b]
    names: dict[str, Any] = {}
    exec(compile(program, "docs/python.md", "exec"), names)
    return names


def test_its_check_passes(page: dict[str, Any]) -> None:
    page["test_spread"]()


def test_it_is_an_aggregate(page: dict[str, Any]) -> None:
    start = datetime(2024, 1, 1, tzinfo=UTC)
    source = tg.MemorySource([{"t": start, "x": x} for x in (1.5, None, 4.0)], time="t")
    source.end()
    found = tg.sink.memory()
    stream = tg.Session(master="none").stream(source, time="t")
    stream.window("1 second").agg(s=tg.aggregate(page["Spread"](), "x")).start(sink=found).wait()
    assert found.table()["s"].to_pylist() == [2.5]


def test_a_total_of_floats_is_told_as_it_says() -> None:
    with pytest.raises(AssertionError) as caught:
        check_aggregate(Total(), [0.1, 0.2, 0.3, 1e16, -1e16])
    (said,) = re.findall(r"^(got .*)$", (ROOT / "docs/python.md").read_text(), re.MULTILINE)
    assert said in str(caught.value)
