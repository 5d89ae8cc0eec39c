"""CPU of reading a small batch of a topic, in the driver and its tasks, and of each record sent.

    python benchmarks/kafka_cpu.py                       1,200 records of six partitions, four tasks

CPU says something on a busy machine too, where `kafka.py` is for quiet ones. Tasks are played by
this process: what the driver hands over is pickled, and each task reads all of it. Results go to
results/kafka_cpu.json.
"""

from __future__ import annotations

import argparse
import pickle
import sys
import time
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa
from kafka_topic import PARTITIONS, PATIENCE_S, Topics, bodies
from measure import HERE, write_report

from tidegate.errors import OptionError
from tidegate.kafka.address import KafkaAddress
from tidegate.kafka.client import make_producer
from tidegate.schema import TIME
from tidegate.sink.kafka.record import json_values, rows_as_records
from tidegate.sink.kafka.wire import BY_KEY, origin, send
from tidegate.source.registry import open_uri
from tidegate.source.subscription import Reading

sys.path.insert(0, str(HERE.parent))  # the broker is that of tools/

WARM = 10
SCHEMA = pa.schema([("ts", TIME), ("k", pa.string()), ("v", pa.int64())])
PARTS = ("gate", "hand_over", "tasks")


def reading(topics: Topics, topic: str, records: int, tasks: int, batches: int) -> dict[str, Any]:
    """Milliseconds of CPU in a batch: event times, readers as bytes, and all tasks together."""
    each = records // PARTITIONS
    values = bodies(each * PARTITIONS * (batches + WARM))
    uri = f"kafka://{topics.address}/{topic}"
    connector = open_uri(uri, "r", "ts", True, Reading(schema=SCHEMA))
    producer, sources = topics.producer(linger_ms=1), connector.discover()
    for source in sources:
        source.start(0)
    used, handed = np.zeros((batches + WARM, len(PARTS))), 0
    for batch in range(batches + WARM):
        start, stop = batch * each, (batch + 1) * each
        for n in range(start * PARTITIONS, stop * PARTITIONS):
            producer.produce(topic, values[n], partition=n % PARTITIONS)
        producer.flush(PATIENCE_S)
        until = time.monotonic() + PATIENCE_S
        while any(source.extend(stop) < stop for source in sources):
            if time.monotonic() > until:
                raise SystemExit(f"{topic}: batch {batch} must come.")
            time.sleep(0.002)
        marks = [time.process_time()]
        for source in sources:
            source.times(start, stop)
        marks.append(time.process_time())
        work = pickle.dumps([source.reader(start, stop) for source in sources])
        marks.append(time.process_time())
        for _ in range(tasks):
            found = [reader._read().rows for reader in pickle.loads(work)]
        marks.append(time.process_time())
        if sum(rows.table.num_rows for rows in found) != each * PARTITIONS:
            raise SystemExit(f"{topic}: batch {batch} must have {each * PARTITIONS} rows.")
        used[batch], handed = np.diff(marks) * 1e3, len(work)
        for source in sources:
            source.answered(stop)
    connector.close()
    by_part = dict(zip(PARTS, np.median(used[WARM:], axis=0).round(3).tolist(), strict=True))
    return {"records": each * PARTITIONS, "tasks": tasks, "cpu_ms": by_part, "bytes": handed}


def sending(topics: Topics, topic: str, rows: int, rounds: int) -> dict[str, Any]:
    """Microseconds of CPU for a record: in the thread that hands it over, and in all."""
    address = KafkaAddress("benchmark", topics.address, topic, {})
    producer = make_producer(
        address,
        OptionError,
        transactional_id=topic,
        partitioner="murmur2",
        compression_type="lz4",
        queue_buffering_max_messages=250_000,
    )
    producer.init_transactions(PATIENCE_S)
    keys = np.char.add("k", (np.arange(rows) % 1_000).astype(str))
    table = pa.table({"k": keys, "v": np.arange(rows)})
    found = []
    for _ in range(rounds):
        began, before = time.thread_time(), time.process_time()
        records = rows_as_records(table, ("k",), json_values)
        encoded = time.thread_time()
        producer.begin_transaction()
        send(producer, topic, records, repeat(BY_KEY), origin("tidegate-benchmark", 0), 0)
        sent = time.thread_time()
        producer.commit_transaction(PATIENCE_S)
        found.append((encoded - began, sent - encoded, time.process_time() - before))
    names = ("encode", "send", "all_threads")
    medians = (np.median(found, axis=0) / rows * 1e6).round(3).tolist()
    return {"rows": rows, "cpu_us_a_record": dict(zip(names, medians, strict=True))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=1_200, help="of a batch")
    parser.add_argument("--tasks", type=int, default=4)
    parser.add_argument("--batches", type=int, default=50)
    parser.add_argument("--rows", type=int, default=300_000, help="that are sent in a transaction")
    parser.add_argument("--rounds", type=int, default=5, help="of sending")
    asked = parser.parse_args()
    from tools.kafka import PORT, Broker
    from tools.server import running

    with running(Broker, PORT, 0) as broker:
        topics = Topics(broker.address)
        topics.make("in", "out")
        read = reading(topics, "in", asked.records, asked.tasks, asked.batches)
        print(read, flush=True)
        sent = sending(topics, "out", asked.rows, asked.rounds)
        print(sent, flush=True)
    write_report("kafka_cpu", {"reading": read, "sending": sent})


if __name__ == "__main__":
    main()
