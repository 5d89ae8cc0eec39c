"""A schema registry on loopback, in memory, from the jars of `tools/jars.sh`.

`make schema-registry` runs it until Ctrl-C; `tests/kafka` starts one for its tests.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.cluster import HOST
from tools.server import Server, arguments, jars_of, java, until_ctrl_c

PORT = 8081
"""Where users look for a schema registry; taken where it is free."""

MEMORY = "-Xmx256m -Xms64m"
STARTED = "Listening on"


@dataclass
class RegistryServer(Server):
    """A registry whose schemas are in memory, and go with it."""

    @property
    def url(self) -> str:
        """Where it speaks Confluent's REST interface."""
        return f"http://{HOST}:{self.port}/apis/ccompat/v7"

    def start(self) -> None:
        """Start it and wait until it answers."""
        (jar,) = jars_of("schema-registry").glob("*-runner.jar")
        settings = {
            "quarkus.http.host": HOST,
            "quarkus.http.port": str(self.port),
            "quarkus.log.level": "WARN",
            'quarkus.log.category."io.quarkus".level': "INFO",
            "quarkus.http.access-log.enabled": "false",
            "apicurio.storage.kind": "sql",
            "apicurio.storage.sql.kind": "h2",
            "apicurio.datasource.url": f"jdbc:h2:mem:registry_{self.port}",
        }
        words = [f"-D{name}={value}" for name, value in settings.items()]
        self.launch(java(*MEMORY.split(), *words, "-jar", str(jar)), STARTED)


def main() -> None:
    asked = arguments(__doc__, PORT).parse_args()
    with until_ctrl_c("schema registry", RegistryServer, PORT, asked.port) as server:
        print(
            f"A schema registry runs on this machine, until Ctrl-C:\n\n  {server.url}", flush=True
        )


if __name__ == "__main__":
    main()
