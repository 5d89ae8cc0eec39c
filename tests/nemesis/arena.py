"""The site of a campaign: hosts with executors, three servers, a driver, and a producer."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from confluent_kafka import Producer
from tools.cluster import HOST, LIGHT, Machine, Standalone
from tools.kafka import Broker

from tests.crash.process import gone
from tests.kafka.reading import committed, in_order
from tests.nemesis import query
from tests.nemesis.fault import Victim
from tests.nemesis.machine import HUB, Disk, Host, WallClock
from tests.nemesis.query import PARTITIONS, Row
from tests.nemesis.supervisor import Supervisor
from tests.nemesis.wire import Wire
from tests.postgres import server as postgres
from tests.s3 import server as s3

RATE = 60
"""Records per second."""
TICK_S = 0.1

CONF = {
    "spark.cores.max": "3",
    "spark.executor.memory": "512m",
    "spark.driver.memory": "512m",
    "spark.executor.extraJavaOptions": LIGHT,
    "spark.driver.extraJavaOptions": LIGHT,
    "spark.driver.host": HUB,
    "spark.driver.bindAddress": HUB,
    "spark.shuffle.readHostLocalDisk": "false",
}
OF_ROLE = {
    "executor": b"CoarseGrainedExecutorBackend",
    "python": b"pyspark",
    "worker": b"deploy.worker.Worker",
    "jvm": b"deploy.SparkSubmit",
}
"""What the command lines of processes have that nobody of ours has started."""


class Feed(threading.Thread):
    """Sends records at a steady rate, each once and in order whatever becomes of the broker."""

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        settings = {"enable.idempotence": True, "message.timeout.ms": 600_000, "log_level": 0}
        self._producer = Producer({"bootstrap.servers": address, "linger.ms": 20, **settings})
        self._end = threading.Event()

    def run(self) -> None:
        begun, sent = time.monotonic(), 0
        while not self._end.wait(TICK_S):
            due = int((time.monotonic() - begun) * RATE)
            for number in range(sent, due):
                self._send(number % PARTITIONS, query.body(number))
            sent = due
            self._producer.poll(0)

    def end(self) -> None:
        """Send the records that let all others be ready."""
        self._end.set()
        self.join()
        for partition in range(PARTITIONS):
            self._send(partition, query.last_body())
        assert self._producer.flush(60) == 0, "the broker must take what was sent"

    def _send(self, partition: int, value: bytes) -> None:
        self._producer.produce("in", value, partition=partition)


class Arena:
    """Everything that a schedule strikes; it is used once, inside of namespaces of its own."""

    def __init__(self, folder: Path, hosts: Sequence[str]) -> None:
        self._folder = folder
        folder.mkdir()
        self._hosts = {name: Host(name, n) for n, name in enumerate(hosts)}
        self._clocks = {name: WallClock.at(folder / f"{name}.clock") for name in (*hosts, "driver")}
        os.environ.update(s3.KEYS)
        self._disks = {name: Disk.at(folder / "cluster" / name / "local") for name in hosts} | {
            "s3": Disk.at(folder / "s3")
        }
        self._wires = {name: Wire(HUB) for name in ("kafka", "postgres", "s3")}
        self._cluster = self._started_cluster() if hosts else None
        self._broker = self._started_broker()
        self._postgres = postgres.Server()
        self._s3 = s3.Server(folder / "s3" / "server")
        self._wires["postgres"].forward(f"{HOST}:{self._postgres.port}")
        self._wires["s3"].forward(self._s3.address)
        environment = s3.KEYS | self._clocks["driver"].environment
        self.driver = Supervisor(self._request(), environment)
        self.feed = Feed(self._broker.address)

    def _started_cluster(self) -> Standalone:
        machines = {
            name: Machine(host.address, host.enter, self._clocks[name].environment)
            for name, host in self._hosts.items()
        }
        found = Standalone(
            self._folder / "cluster",
            memory="768m",
            machines=machines | {"master": Machine(HUB)},
            daemons="-Dspark.deploy.maxExecutorRetries=-1",
        )
        found.start_master()
        found.start_workers(dict.fromkeys(self._hosts, False))
        return found

    def _started_broker(self) -> Broker:
        settings: dict[str, str] = {}
        broker = Broker(self._folder / "kafka", settings=settings, listeners={"HOSTS": "PLAINTEXT"})
        wire = self._wires["kafka"]
        settings["advertised.listeners"] = f"PLAINTEXT://{broker.address},HOSTS://{wire.address}"
        wire.forward(broker.address_of("HOSTS"))
        broker.start()
        broker.create("in", PARTITIONS)
        broker.create("counts")
        return broker

    def _request(self) -> dict[str, Any]:
        at = {name: wire.address for name, wire in self._wires.items()}
        bucket = f"s3://{s3.BUCKET}/{{}}?scheme=http&endpoint_override={at['s3']}"
        return {
            "master": "none" if self._cluster is None else self._cluster.url,
            "conf": {} if self._cluster is None else CONF,
            "kafka": at["kafka"],
            "checkpoint": bucket.format("state"),
            "sinks": {
                "counts": f"kafka://{at['kafka']}/counts",
                "pairs": f"postgresql://tidegate@{at['postgres']}/postgres?table=pairs",
                "odd": bucket.format("odd"),
            },
            "trigger": "300 milliseconds",
            "log": str(self._folder / "driver.log"),
        }

    # What faults do.

    def link(self, host: str, up: bool) -> None:
        self._hosts[host].link(up)

    def route(self, one: str, other: str, there: bool) -> None:
        self._hosts[one].route(self._hosts[other].address, there)

    def delay(self, service: str, seconds: float) -> None:
        self._wires[service].delay_s = seconds

    def door(self, service: str, is_open: bool) -> None:
        self._wires[service].door(is_open)

    def shift(self, place: str, seconds: int) -> None:
        self._clocks[place].shift(seconds)

    def fill(self, place: str) -> None:
        self._disks[place].fill()

    def free(self, place: str) -> None:
        self._disks[place].free()

    def signal(self, victim: Victim, number: signal.Signals) -> int:
        struck = 0
        for pid in self._pids(victim):
            if not gone(pid):
                os.kill(pid, number)
                struck += 1
        return struck

    def revive(self, victim: Victim) -> None:
        if victim.role == "kafka":
            self._broker.kill()
            self._broker.start()
        elif victim.role == "postgres":
            self._postgres.kill()
            self._postgres.start()
        elif victim.role == "s3":
            self._s3.kill()
            self._s3.start()
        elif victim.role == "worker" and self._cluster is not None:
            self._cluster.kill(victim.place)
            self._cluster.start_workers({victim.place: False})

    def _pids(self, victim: Victim) -> list[int]:
        if victim.role == "driver":
            return [] if self.driver.pid is None else [self.driver.pid]
        if victim.role == "kafka":
            return [] if self._broker.process is None else [self._broker.process.pid]
        if victim.role == "postgres":
            return self._postgres.pids()
        if victim.role == "s3":
            return [self._s3.pid]
        host = self._hosts.get(victim.place)
        network = os.readlink("/proc/self/ns/net") if host is None else host.network
        return [pid for pid, line in processes(network) if OF_ROLE[victim.role] in line]

    # What comes out.

    def sent(self) -> list[Any]:
        return committed(self._broker, "in")

    def found(self) -> dict[str, list[Row]]:
        """The rows of each output, as readers see them in their order."""
        return {
            "counts": [query.plain(r.row) for r in in_order(committed(self._broker, "counts"))],
            "pairs": self._pairs(),
            "odd": self._odd(),
        }

    def _pairs(self) -> list[Row]:
        if self._postgres.ask("SELECT to_regclass('pairs')") == [(None,)]:
            return []
        with self._postgres.connect() as connection:
            cursor = connection.execute("SELECT * FROM pairs ORDER BY ctid")
            names = [column.name for column in cursor.description or ()]
            return [query.plain(dict(zip(names, row, strict=True))) for row in cursor]

    def _odd(self) -> list[Row]:
        files = sorted((self._s3.folder / "odd").glob("batch=*/part-*"))
        return [query.plain(row) for file in files for row in pq.read_table(file).to_pylist()]

    def logs(self) -> dict[str, str]:
        """The ends of what processes have said."""
        found = sorted(self._folder.glob("*.log")) + sorted(self._folder.glob("cluster/*.log"))
        return {f.name: f.read_text(errors="replace")[-6000:] for f in found}


def processes(network: str) -> Iterator[tuple[int, bytes]]:
    """The processes of a network namespace, with their command lines."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            if os.readlink(folder / "ns" / "net") == network:
                yield int(folder.name), (folder / "cmdline").read_bytes()
