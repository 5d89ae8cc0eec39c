"""A query over a topic is switched over while the topic goes on, at exact offsets."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tools.kafka import Broker

from tests.kafka.topic import send, spread
from tidegate.cli.main import invoke

CREATE = """CREATE STREAM r (ts TIMESTAMP, k STRING, v BIGINT)
FROM 'kafka://{}/{}?from=earliest' TIME ts OPTIONS (format 'json');
"""
OLD = "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM r [RANGE 10 SECONDS] GROUP BY k;"
NEW = "SELECT k, COUNT(*) AS n, MAX(v) AS s FROM r [RANGE 20 SECONDS] GROUP BY k;"
PARTITIONS = 3


def run(query: str, checkpoint: str, out: str) -> None:
    words = f"run {query}.sql --master none --available-now --batch-rows 150"
    assert invoke([*words.split(), "--checkpoint", checkpoint, "--out", out]) == 0


def rows(out: str) -> list[dict[str, object]]:
    parts = sorted(Path(out).glob("batch=*/*.parquet"))
    return [row for part in parts for row in pq.read_table(part).to_pylist()]


@pytest.mark.parametrize("limit_rows", [100_000, 40])
def test_a_query_over_a_topic_is_switched_over(
    broker: Broker,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    limit_rows: int,
) -> None:
    """Records that come after the newest batch are not for the shadow, and none is lost."""
    monkeypatch.chdir(tmp_path)
    broker.create(topic, PARTITIONS)
    for name, text in (("old", OLD), ("new", NEW)):
        Path(f"{name}.sql").write_text(CREATE.format(broker.address, topic) + text)
    send(broker, topic, spread(range(900), PARTITIONS))
    run("old", "ck", "out")
    before = rows("out")
    send(broker, topic, spread(range(900, 1000), PARTITIONS))
    capsys.readouterr()
    words = ["--cutover", "kept", "--batch-rows", str(limit_rows), "--json"]
    assert invoke(["compare", "ck", "new.sql", *words]) == 0
    assert json.loads(capsys.readouterr().out)["switched"]
    assert rows("out") == before
    send(broker, topic, spread(range(1000, 1500), PARTITIONS))
    run("new", "ck", "out")
    run("new", "ck-new", "out-new")
    end = before[-1]["window_end"]
    after = [row for row in rows("out-new") if row["window_end"] > end]  # type: ignore[operator]
    assert rows("out") == [*before, *after]
    assert (len(before), len(after)) == (24, 9)
