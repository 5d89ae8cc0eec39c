"""Topics for `kafka.py`: fills them, reads results, and times results of records that arrive live.

Record n has the event time START + n / PER_SECOND, goes to partition n % PARTITIONS, and has one of
KEYS keys. What windows must give is counted here too, without either engine.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from threading import Event
from typing import Any

import numpy as np
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from data import START_US

PARTITIONS, KEYS, PER_SECOND = 6, 1_000, 20_000
PATIENCE_S, START_S = 120, 300
"""How long rows may take to come, and the first one of an engine that starts."""
_TICK_S = 0.002
_LINGER_MS = 5
"""How long live records wait for others, as in producers of Kafka 4: a broker that is sent each of
20,000 records a second by itself falls a second behind."""


@dataclass(frozen=True)
class Topics:
    """The topics of a broker."""

    address: str

    def make(self, *names: str) -> None:
        asked = self._admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in names])
        for future in asked.values():
            future.result(PATIENCE_S)

    @cached_property
    def _admin(self) -> AdminClient:
        """One for all: each would connect anew."""
        return AdminClient({"bootstrap.servers": self.address, "log_level": 0})

    def fill(self, topic: str, rows: int) -> None:
        """Write the first records."""
        producer = self.producer(linger_ms=50)
        for n, body in enumerate(bodies(rows)):
            _send(producer, topic, n, body)
        if producer.flush(PATIENCE_S):
            raise SystemExit(f"{topic}: not all records could be written.")
        producer.close()

    def producer(self, linger_ms: int) -> Producer:
        return Producer({"bootstrap.servers": self.address, "linger.ms": linger_ms})

    def consumer(self, topic: str) -> Consumer:
        """Of committed records, from the first one on."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.address,
                "group.id": "benchmark",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )
        consumer.assign([TopicPartition(topic, n, 0) for n in range(PARTITIONS)])
        return consumer

    def values(self, topic: str) -> list[bytes]:
        """All committed values of a topic that nobody writes to any more."""
        consumer, found, left = self.consumer(topic), [], PARTITIONS
        until = time.monotonic() + PATIENCE_S
        while left:
            if time.monotonic() > until:
                raise SystemExit(f"{topic}: its end did not come.")
            for message in consumer.consume(10_000, 0.5):
                if message.error() is None:
                    found.append(message.value())
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    left -= 1
        consumer.close()
        return found


def bodies(rows: int, per_second: int = PER_SECOND) -> list[bytes]:
    """The values of the first records."""
    texts = np.datetime_as_string(_times_us(rows, per_second).astype("M8[us]"), timezone="UTC")
    keys, values = _keys(rows).tolist(), _values(rows).tolist()
    return [
        b'{"ts":"%s","k":"k%d","v":%d}' % (ts.encode(), k, v)
        for ts, k, v in zip(texts.tolist(), keys, values, strict=True)
    ]


def _times_us(rows: int, per_second: int) -> np.ndarray[Any, Any]:
    return START_US + np.arange(rows, dtype=np.int64) * 1_000_000 // per_second


def _keys(rows: int) -> np.ndarray[Any, Any]:
    """All keys equally often, in an order without a pattern."""
    return np.random.default_rng(7).integers(0, KEYS, rows)


def _values(rows: int) -> np.ndarray[Any, Any]:
    return np.arange(rows) * 977 % 1_460


def counted(rows: int, range_s: int, upto_us: int) -> Counter[tuple[int, str, int, int]]:
    """The rows of windows that end by then: start, key, count and sum."""
    windows = (_times_us(rows, PER_SECOND) - START_US) // (range_s * 1_000_000)
    places = windows * KEYS + _keys(rows)
    counts, sums = np.bincount(places), np.bincount(places, _values(rows))
    found: Counter[tuple[int, str, int, int]] = Counter()
    for place in np.flatnonzero(counts).tolist():
        start_us = START_US + place // KEYS * range_s * 1_000_000
        if start_us + range_s * 1_000_000 <= upto_us:
            found[start_us, f"k{place % KEYS}", int(counts[place]), int(sums[place])] += 1
    return found


def windows_in(values: list[bytes], range_s: int, upto_us: int) -> Counter[tuple[Any, ...]]:
    """The rows of a topic as `counted` has them."""
    found: Counter[tuple[Any, ...]] = Counter()
    for row in map(json.loads, values):
        start_us = _us(row["window_start"])
        if start_us + range_s * 1_000_000 <= upto_us:
            found[start_us, row["k"], row["n"], row["s"]] += 1
    return found


def _us(text: str) -> int:
    return int(np.datetime64(text.removesuffix("Z"), "us").astype(np.int64))


@dataclass(frozen=True)
class Course:
    """How records arrive live: so many a second, for a while that does not count and one that does.

    Windows are of `range_ms`.
    """

    rate: int
    warm_s: int
    seconds: int
    range_ms: int

    @property
    def whole_s(self) -> int:
        return self.warm_s + self.seconds


def live_ms(
    topics: Topics, source: str, out: str, course: Course
) -> tuple[list[float], list[float]]:
    """Milliseconds from when a window's end was due to when a consumer had each of its rows; and
    how late records were sent.

    Those of the first second are sent at once. When rows of them are there, the engine has started,
    and from then on records are sent when they are due, by the clock of this process, which also
    consumes.
    """
    values = bodies(course.rate * course.whole_s, course.rate)
    last_us = course.whole_s * 1_000_000 - 2 * course.range_ms * 1_000
    producer, begun = topics.producer(_LINGER_MS), Event()
    with ThreadPoolExecutor(1) as pool:
        consumed = pool.submit(_consumed, topics.consumer(out), last_us, begun)
        for n in range(course.rate):
            _send(producer, source, n, values[n])
        producer.flush(PATIENCE_S)
        while not begun.wait(0.1) and not consumed.done():
            pass
        begun_s = time.time() - 1
        late_ms = _send_when_due(producer, source, values, course.rate, begun_s)
        came = consumed.result()
    producer.close()
    found = []
    for came_s, value in came:
        end_us = _end_us(value)
        if course.warm_s * 1_000_000 <= end_us <= last_us:
            found.append((came_s - begun_s - end_us / 1e6) * 1e3)
    return found, late_ms


def _end_us(value: bytes) -> int:
    """The end of a row's window, from the first record on."""
    return _us(json.loads(value)["window_end"]) - START_US


def _send_when_due(
    producer: Producer, topic: str, values: list[bytes], rate: int, begun_s: float
) -> list[float]:
    """Those after the first second; how long the first of each call waited, in milliseconds."""
    sent, late_ms = rate, []
    while sent < len(values):
        due = min(int((time.time() - begun_s) * rate), len(values))
        if due > sent:
            late_ms.append((time.time() - begun_s - sent / rate) * 1e3)
            for n in range(sent, due):
                _send(producer, topic, n, values[n])
            sent = due
        producer.poll(0)
        time.sleep(_TICK_S)
    producer.flush(PATIENCE_S)
    return late_ms


def _send(producer: Producer, topic: str, n: int, body: bytes) -> None:
    while True:
        try:
            producer.produce(topic, body, partition=n % PARTITIONS)
            return
        except BufferError:  # as many wait to be sent as it holds
            producer.poll(0.1)


def _consumed(consumer: Consumer, last_us: int, begun: Event) -> list[tuple[float, bytes]]:
    """What comes, and when, until the rows of a window are there and no more come."""
    found: list[tuple[float, bytes]] = []
    came: list[Any] = []
    end_us, newest_s = 0, time.time()
    while end_us <= last_us or came:
        first = consumer.poll(1.0)
        came = [] if first is None else [first, *consumer.consume(10_000, 0)]
        now_s = time.time()
        values = [m.value() for m in came if m.error() is None]
        if values:
            begun.set()
            found += [(now_s, value) for value in values]
            end_us, newest_s = max(end_us, *map(_end_us, values)), now_s
        elif now_s - newest_s > (PATIENCE_S if begun.is_set() else START_S):
            raise SystemExit(f"windows up to {last_us / 1e6} s must come; got {end_us / 1e6} s.")
    consumer.close()
    return found
