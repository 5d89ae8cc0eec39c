"""Fills topics of the tests' broker, and says what a query over them has to give."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from confluent_kafka import Producer
from tools.kafka import Broker

import tidegate as tg

START = datetime(2024, 1, 1, tzinfo=UTC)
PATIENCE_S = 60

SQL = "SELECT k, COUNT(*) AS n, SUM(v) AS s FROM r [RANGE 10 SECONDS] GROUP BY k"


def value(number: int) -> bytes:
    """A record's value: a tenth of a second later than the one before."""
    ts = START + timedelta(milliseconds=100 * number)
    return json.dumps({"ts": ts.isoformat(), "k": f"k{number % 3}", "v": number}).encode()


def send(broker: Broker, topic: str, records: Iterable[tuple[int, bytes | None]], **more: Any):
    """Write values to partitions, in order, and wait until the broker has them."""
    producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 1})
    for partition, body in records:
        producer.produce(topic, body, partition=partition, **more)
    assert producer.flush(PATIENCE_S) == 0
    producer.close()


def spread(numbers: Iterable[int], partitions: int) -> list[tuple[int, bytes]]:
    """Numbered values, in turn to all partitions."""
    return [(n % partitions, value(n)) for n in numbers]


def answer(numbers: Iterable[int]) -> Counter[tuple[str, str, int, int]]:
    """What SQL gives for numbered values when all windows are closed."""
    found: dict[tuple[datetime, str], list[int]] = {}
    for n in numbers:
        window = START + timedelta(seconds=n // 100 * 10)
        found.setdefault((window, f"k{n % 3}"), []).append(n)
    return Counter((w.isoformat(), k, len(v), sum(v)) for (w, k), v in found.items())


def given(rows: Sequence[dict[str, Any]]) -> Counter[tuple[str, str, int, int]]:
    """Rows of SQL as `answer` has them."""
    return Counter(
        (r["window_start"].astimezone(UTC).isoformat(), r["k"], r["n"], r["s"]) for r in rows
    )


def until(condition: Callable[[], bool], query: tg.RunningQuery | None = None) -> None:
    """Wait for something to become true; a failure of the query is raised."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "" if query is None else query.status()
        if query is None:
            time.sleep(0.02)
        else:
            query.wait(0.02)
