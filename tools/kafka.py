"""A Kafka broker on loopback, of one node in KRaft mode, from the jars of `tools/jars.sh`.

`make kafka` runs it until Ctrl-C; `tests/kafka` starts one for its tests.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.cluster import HOST, environment, free_port
from tools.server import Server, arguments, jars_of, java, until_ctrl_c

PORT = 9092
"""Where users of Kafka look for a broker; taken where it is free."""

USER, PASSWORD = "tide", "of-no-worth"
"""Who may speak to listeners that ask for a password (SASL/PLAIN)."""

LOGIN = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'username="{USER}" password="{PASSWORD}" user_{USER}="{PASSWORD}";'
)

MEMORY = "-Xmx256m -Xms64m -XX:MaxDirectMemorySize=64m"
QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
STARTED = "Kafka Server started"
READY = "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info"

SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    # One node: every topic of its own has one copy, and few partitions that must be opened.
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    "num.network.threads": "2",
    "num.io.threads": "2",
    "num.recovery.threads.per.data.dir": "1",
    "background.threads": "2",
    "log.cleaner.dedupe.buffer.size": "2097152",
    "log.retention.check.interval.ms": "500",
    "log.initial.task.delay.ms": "100",
    "controlled.shutdown.enable": "false",
    # One that was killed is forgotten so soon, and can be started again.
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "500",
}
"""What a single node needs, and what makes it small."""


@dataclass
class Broker(Server):
    """A broker below a folder; its ports stay the same when it is started again.

    `listeners` are those besides the plain one: their names, and how they speak.
    """

    settings: Mapping[str, str] = field(default_factory=dict)
    listeners: Mapping[str, str] = field(default_factory=lambda: {"SASL": "SASL_PLAINTEXT"})

    def __post_init__(self) -> None:
        super().__post_init__()
        self._controller = free_port()
        self._ports = {name: free_port() for name in self.listeners}
        self._admin: AdminClient | None = None

    @property
    def address(self) -> str:
        """Where anybody is served, for `kafka://ADDRESS/topic`."""
        return f"{HOST}:{self.port}"

    def address_of(self, listener: str) -> str:
        """Where a listener is."""
        return f"{HOST}:{self._ports[listener]}"

    @property
    def sasl_address(self) -> str:
        """Where USER is served, with PASSWORD and without TLS."""
        return self.address_of("SASL")

    def start(self) -> None:
        """Start it, also once more; its storage is formatted the first time."""
        settings = self.folder / "server.properties"
        if not settings.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            settings.write_text("".join(f"{k}={v}\n" for k, v in self._all_settings().items()))
            words = ["format", "--standalone", "--cluster-id", "5L6g3nShT-eMCtK--X86sw"]
            done = subprocess.run(
                [*self._java(), "kafka.tools.StorageTool", *words, "--config", str(settings)],
                capture_output=True,
                text=True,
                env=environment(),
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
        self.launch([*self._java(), "kafka.Kafka", str(settings)], STARTED)

    def stop(self) -> None:
        """End it in order, after the client that asks it."""
        if self._admin is not None:
            self._admin.__exit__(None, None, None)
            self._admin = None
        super().stop()

    def admin(self) -> AdminClient:
        """The client that asks it about topics, until it is stopped: all callers have the same one.

        librdkafka 2.16 can crash where a client ends while its first answers come.
        """
        if self._admin is None:
            self._admin = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        return self._admin

    def create(self, topic: str, partitions: int = 1, **config: str) -> None:
        """Make a topic; settings with underscores for dots, as `retention_ms="1000"`."""
        named = {name.replace("_", "."): value for name, value in config.items()}
        new = NewTopic(topic, partitions, 1, config=named)
        _done(self.admin().create_topics([new]))

    def grow(self, topic: str, partitions: int) -> None:
        """Give a topic more partitions, so many in all."""
        _done(self.admin().create_partitions([NewPartitions(topic, partitions)]))

    def _all_settings(self) -> dict[str, str]:
        controller = f"CONTROLLER://{HOST}:{self._controller}"
        more = [f"{name}://{self.address_of(name)}" for name in self.listeners]
        public = ",".join([f"PLAINTEXT://{self.address}", *more])
        kinds = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", **self.listeners}
        login = {}
        for name, kind in self.listeners.items():
            if kind.startswith("SASL_"):
                here = f"listener.name.{name.lower()}"
                login[f"{here}.sasl.enabled.mechanisms"] = "PLAIN"
                login[f"{here}.plain.sasl.jaas.config"] = LOGIN
        own = {
            "listener.security.protocol.map": ",".join(f"{n}:{k}" for n, k in kinds.items()),
            "listeners": f"{public},{controller}",
            "advertised.listeners": public,
            "controller.quorum.bootstrap.servers": f"{HOST}:{self._controller}",
            "log.dirs": str(self.folder / "data"),
        }
        return {**SETTINGS, **own, **login, **self.settings}

    def _java(self) -> list[str]:
        return java(*MEMORY.split(), QUIET, READY, "-cp", f"{jars_of('kafka')}/*")


def _done(asked: Mapping[str, Any]) -> None:
    for future in asked.values():
        future.result(30)


HOW = """\
A Kafka broker runs on this machine, with {topics}.

  address  {address}
  as {user} with the password {password} (SASL/PLAIN): {sasl}
  folder   {folder}, removed at the end

Read a topic from another terminal:

  .venv/bin/tidegate run --follow -e "SELECT * FROM 'kafka://{address}/TOPIC' TIME ts"

docs/kafka.md has more. Ctrl-C stops the broker.
"""


def main() -> None:
    parser = arguments(__doc__, PORT)
    parser.add_argument(
        "topics", nargs="*", metavar="TOPIC[:PARTITIONS]", help="topics to make; 1 partition"
    )
    asked = parser.parse_args()
    topics = {name: int(count or 1) for name, _, count in (t.partition(":") for t in asked.topics)}
    with until_ctrl_c("Kafka broker", Broker, PORT, asked.port) as broker:
        for name, partitions in topics.items():
            try:
                broker.create(name, partitions)
            except KafkaException as error:
                sys.exit(f"topic {name}: {error.args[0].str()}")
        listed = ", ".join(f"{name} ({count})" for name, count in topics.items())
        said = HOW.format(
            topics=f"topics and their partitions: {listed}" if topics else "no topic yet",
            address=broker.address,
            sasl=broker.sasl_address,
            user=USER,
            password=PASSWORD,
            folder=broker.folder,
        )
        print(said, flush=True)


if __name__ == "__main__":
    main()
