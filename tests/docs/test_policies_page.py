"""What the pages on policies show runs as it stands, and does what they say."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import tidegate as tg
from tests.docs.block import blocks
from tidegate.testing import drive

PAGES = ("docs/policies.md", "docs/own-policy.md")


@pytest.fixture
def page(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Everything the blocks of the pages define, and what they print."""
    names: dict[str, Any] = {}
    for path in PAGES:
        for block in blocks(path, "python"):
            exec(compile(block, path, "exec"), names)
    return {**names, "printed": capsys.readouterr().out.strip()}


def test_it_prints_what_its_comment_says(page: dict[str, Any]) -> None:
    shown = [b.rstrip() for path in PAGES for b in blocks(path, "python") if "print(" in b]
    printed = page["printed"].splitlines()
    assert len(shown) == len(printed) == 3
    for block, line in zip(shown, printed, strict=True):
        assert block.endswith(f"# {line}")


def test_the_policy_of_one_s_own_decides(page: dict[str, Any]) -> None:
    policy = page["Patient"](batches=2, most=3)
    (driven,) = drive(policy, [[0.1] * 4])
    late = replace(driven.observed, backlog=1_200)
    memory: Any = {}
    asked = []
    for _ in range(3):
        decision = policy.decide((late,), memory)
        memory = decision.memory
        asked.append([(r.change.instances, r.why) for r in decision.requests])
    assert asked == [[], [(2, "1,200 tuples wait after 2 batches")], []]


def test_the_policy_of_one_s_own_runs(page: dict[str, Any]) -> None:
    start = datetime(2024, 1, 1, tzinfo=UTC)
    rows = [{"t": start + timedelta(seconds=i), "k": i % 5} for i in range(200)]
    found = []
    for policy in (page["Patient"](batches=1, most=3), None):
        source = tg.MemorySource(rows, time="t")
        sink = tg.sink.memory()
        stream = tg.Session(master="none").stream(source, time="t")
        counts = stream.window("10 seconds").group_by("k").agg(n=tg.count())
        query = counts.start(sink=sink, policy=policy, batch_rows=20, instances=1)
        source.end()  # while it runs: it is live, and what it has is a backlog
        assert query.wait().finished
        found.append((sink.table(), query.status()["instances"]))
    (switched, instances), (fixed, one) = found
    assert switched.equals(fixed)
    assert (instances, one) == (3, 1)
