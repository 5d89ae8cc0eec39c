"""The records of a band join of two topics, who sends them, and the rows that must come of them."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import Any

import numpy as np
from confluent_kafka import Producer
from tools.kafka import Broker

from tests.kafka.topic import START
from tests.oracle.join import Joined, Within, join
from tests.oracle.query import Answer, PlainStream, Row, in_total_order
from tests.seed import SEED

PARTITIONS = 6
STEP_US, JITTER_US, DISORDER_MS, RANGE_MS = 10_000, 200_000, 60, 500
"""In a partition records are 12 steps apart, so that some are out of order, and a few are late."""

VALUES, BAND = 200, 2
PATIENCE_S, TICK_S = 900, 0.02
TICK_SHARE, COMMIT_SHARE = 0.0002, 0.02

_STREAM = """CREATE STREAM {0} (ts TIMESTAMP, n BIGINT, v BIGINT) FROM 'kafka://{1}/{2}' TIME ts
DISORDER {3} MILLISECONDS;
"""


def sql(address: str, topics: tuple[str, str]) -> str:
    """The query over both topics."""
    streams = [_STREAM.format(s, address, topic, DISORDER_MS) for s, topic in zip("lr", topics)]
    window = f"[RANGE {RANGE_MS} MILLISECONDS]"
    return "".join(streams) + (
        f"SELECT l.n AS a, r.n AS b FROM l {window}, r {window} "
        f"WHERE l.v BETWEEN r.v - {BAND} AND r.v + {BAND}"
    )


class BandRecords:
    """The records of both topics, in the order in which they are sent; `n` is the number of one."""

    def __init__(self, count: int, topics: tuple[str, str]) -> None:
        chance = np.random.default_rng(SEED)
        jitter = chance.integers(0, JITTER_US // 1000, count) * 1000
        self.us = int(START.timestamp() * 1e6) + np.arange(count) * STEP_US + jitter
        self.values = chance.integers(0, VALUES, count)
        self.topics = topics

    def place(self, n: int) -> tuple[int, int]:
        """Whose record it is: the stream and the partition."""
        return n % 2, n // 2 % PARTITIONS

    def send(self, broker: Broker, commits: Callable[[], int], calm: Event) -> None:
        """Send a share of what is left at each commit, and a small one all the time, so that there
        is some left however slow all is; from `calm` on all, and those that let all be ready."""
        producer = Producer({"bootstrap.servers": broker.address, "enable.idempotence": True})
        times, values, sent = _texts(self.us), self.values.tolist(), 0
        seen, due = commits(), 0.0
        while sent < len(times):
            left, now = len(times) - sent, commits()
            due += left * (TICK_SHARE + COMMIT_SHARE * min(now - seen, 5))
            portion, seen = left if calm.wait(TICK_S) else int(due), now
            for n in range(sent, sent + portion):
                self._produce(producer, n, times[n], values[n])
            sent, due = sent + portion, due - portion
            producer.poll(0)
        calm.wait(PATIENCE_S)
        (end,) = _texts(np.array([self.end_us]))
        for n in range(2 * PARTITIONS):
            self._produce(producer, n, end, -1)
        assert producer.flush(PATIENCE_S) == 0
        producer.close()

    @property
    def end_us(self) -> int:
        """The time of the last record of each partition, far behind all others."""
        return int(self.us.max()) + 60_000_000

    @property
    def ready_us(self) -> int:
        """The frontier at which all but these are ready."""
        return self.end_us - DISORDER_MS * 1000

    def answer(self) -> tuple[list[dict[str, Any]], set[int]]:
        """The rows that must come out, in order, and the numbers of the late records."""
        sources: list[list[list[Row]]] = [[[] for _ in range(PARTITIONS)] for _ in range(2)]
        for n, (us, v) in enumerate(zip(self.us.tolist(), self.values.tolist(), strict=True)):
            stream, partition = self.place(n)
            sources[stream][partition].append({"ts": us, "n": n, "v": v})
        streams = [PlainStream(s, of, DISORDER_MS * 1000) for s, of in zip("lr", sources)]
        answer = Answer()
        ordered = [row for _, row in in_total_order(streams, answer)]
        window = Within(RANGE_MS * 1000)
        query = Joined(
            window,
            window,
            on=lambda left, right: abs(left["v"] - right["v"]) <= BAND,
            select=lambda left, right: (left["n"], right["n"]),
        )
        rows = join(query, ordered)
        times = _texts(np.array([row[0] for row in rows]))
        late = {int(sources[p.stream][p.source][p.seq]["n"]) for p in answer.late}
        found = [{"ts": t, "a": a, "b": b} for t, (_, a, b) in zip(times, rows, strict=True)]
        return found, late

    def _produce(self, producer: Producer, n: int, ts: str, v: int) -> None:
        stream, partition = self.place(n)
        body = b'{"ts":"%s","n":%d,"v":%d}' % (ts.encode(), n, v)
        while True:
            try:
                producer.produce(self.topics[stream], body, partition=partition)
                return
            except BufferError:  # as many wait to be sent as it holds
                producer.poll(0.1)


def _texts(us: np.ndarray[Any, Any]) -> list[str]:
    texts: list[str] = np.datetime_as_string(us.astype("M8[us]"), timezone="UTC").tolist()
    return texts
