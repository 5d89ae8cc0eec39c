"""Partitions that are silent or out of order: who says so, and that the advice is right."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pytest
from tools.kafka import Broker

import tidegate as tg
from tests.kafka.topic import answer, given, send, spread, until, value
from tidegate.cli.main import invoke

SELECT = "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM r [RANGE 10 SECONDS] GROUP BY k;"


def start(place: str, clauses: str, folder: Path) -> tuple[tg.RunningQuery, Any]:
    script = f"CREATE STREAM r FROM '{place}' TIME ts {clauses};\n{SELECT}"
    sink = tg.sink.memory()
    query = (
        tg.Session(master="none").sql(script).start(sink=sink, follow=True, checkpoint=str(folder))
    )
    return query, sink


def test_a_silent_partition_is_named_with_what_lets_the_watermark_pass(
    broker: Broker,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("tidegate.driver.report.advice.SILENT_S", 1.0)
    broker.create(topic, 3)
    send(broker, topic, spread(range(1000), 2))  # nothing in the third
    place = f"kafka://{broker.address}/{topic}"
    with caplog.at_level(logging.WARNING):
        query, sink = start(place, "", tmp_path / "held")
        until(lambda: bool(query.status()["advice"]), query)
    [line] = query.status()["advice"]
    assert line in caplog.text
    assert invoke(["ctl", str(tmp_path / "held"), "status"]) == 0
    assert "has no row yet" in capsys.readouterr().out
    query.stop()
    assert line.startswith(f"stream r: {topic}/2 has been silent for 1 second")
    assert sink.table().num_rows == 0
    clause = re.search("Write (IDLE .*?) after its TIME", line)
    assert clause is not None
    query, sink = start(place, clause[1], tmp_path / "passed")
    until(lambda: given(sink.table().to_pylist()) == answer(range(900)), query)
    # A silent one that speaks again counts from then on.
    send(broker, topic, [(2, value(1500)), (0, value(1500)), (1, value(1500))])
    until(lambda: given(sink.table().to_pylist()) == answer(range(1000)), query)
    assert query.status()["advice"] == []
    query.stop()


def test_disorder_is_proposed_after_the_first_batch(
    broker: Broker, topic: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broker.create(topic, 2)
    shuffled = [n + 7 - 2 * (n % 8) for n in range(800)]  # back by up to 0.7 s
    send(broker, topic, [(n // 8 % 2, value(n)) for n in shuffled])
    place = f"kafka://{broker.address}/{topic}"
    with caplog.at_level(logging.WARNING):
        query, sink = start(place, "", tmp_path / "late")
        until(lambda: bool(query.status()["advice"]), query)
    [line] = query.status()["advice"]
    query.stop()
    assert line in caplog.text
    clause = re.search("Write (DISORDER .*?) after its TIME", line)
    assert clause is not None
    assert clause[1] == "DISORDER 700 MILLISECONDS"
    query, sink = start(place, clause[1], tmp_path / "in")
    until(lambda: given(sink.table().to_pylist()) == answer(range(700)), query)
    assert query.status()["advice"] == []
    assert query.status()["rows_late"] == 0
    query.stop()
