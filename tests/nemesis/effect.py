"""Inside of namespaces: says what each fault does to a host, before it, during it, and after it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.nemesis.fault import ClockJump, CutOff, DiskFull, Fault, LinkDown, Severed, Slow
from tests.nemesis.machine import HUB, Disk, Host, WallClock, prepare
from tests.nemesis.wire import Wire

HOSTS = ("one", "two")
DELAY_S, JUMP_S = 3.0, 3600
TRIES = 10
SERVE = """
import socket
server, held = socket.create_server(("", 7000)), []
print(flush=True)
while True:
    held.append(server.accept()[0])
    held[-1].send(b"x")
"""
CONNECT = "import socket, sys\nsocket.create_connection((sys.argv[1], 7000), 5)"


class Site:
    """Two hosts and a server behind a wire; what faults of machines need, and no more."""

    def __init__(self, folder: Path) -> None:
        self.hosts = {name: Host(name, number) for number, name in enumerate(HOSTS)}
        for host in [(), *(h.enter for h in self.hosts.values())]:
            server = subprocess.Popen([*host, sys.executable, "-c", SERVE], stdout=subprocess.PIPE)
            assert server.stdout is not None
            server.stdout.readline()
        self.wire = Wire(HUB)
        self.wire.forward(f"{HUB}:7000")
        self.clock = WallClock.at(folder / "clock")
        self.disk = Disk.at(folder / "disk")

    def link(self, host: str, up: bool) -> None:
        self.hosts[host].link(up)

    def route(self, one: str, other: str, there: bool) -> None:
        self.hosts[one].route(self.hosts[other].address, there)

    def delay(self, service: str, seconds: float) -> None:
        self.wire.delay_s = seconds

    def door(self, service: str, is_open: bool) -> None:
        self.wire.door(is_open)

    def shift(self, place: str, seconds: int) -> None:
        self.clock.shift(seconds)

    def fill(self, place: str) -> None:
        self.disk.fill()

    def free(self, place: str) -> None:
        self.disk.free()

    # What can be seen of it.

    def reaches(self, one: str, address: str) -> bool:
        command = [*self.hosts[one].enter, sys.executable, "-c", CONNECT, address]
        return subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0

    def ahead_s(self) -> int:
        """How far the clock of a process is ahead, in whole minutes and told in seconds."""
        command = [sys.executable, "-c", "import time; print(time.time())"]
        environment = os.environ | self.clock.environment
        told = subprocess.run(command, env=environment, capture_output=True, check=True).stdout
        return round((float(told) - time.time()) / 60) * 60

    def has_room(self) -> bool:
        file = self.disk.folder / "file"
        try:
            file.write_bytes(bytes(1 << 16))
        except OSError:
            return False
        finally:
            file.unlink()
        return True

    def answers(self) -> bool:
        """Whether the server can be reached through the wire."""
        with socket.create_connection(self.address, 60) as client, suppress(ConnectionError):
            return client.recv(1) == b"x"
        return False

    def is_slow(self) -> bool:
        """Whether what the server says takes at least as long as it should."""
        begun = time.monotonic()
        assert self.answers()
        return time.monotonic() - begun >= DELAY_S

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.wire.address.rpartition(":")
        return host, int(port)


def main() -> None:
    site = Site(prepare(HOSTS))
    told: dict[str, list[Any]] = {}

    def tell(name: str, fault: Fault, look: Callable[[], Any]) -> None:
        seen = [look()]
        fault.strike(site)
        seen.append(look())
        fault.heal(site)
        tries = (look() for _ in range(TRIES))  # a cable needs a moment
        told[name] = [*seen, next((now for now in tries if now == seen[0]), "not undone")]

    two = site.hosts["two"].address
    tell("link", LinkDown("one"), lambda: site.reaches("one", HUB))
    tell("route", Severed("one", "two"), lambda: site.reaches("one", two))
    tell("other route", Severed("one", "two"), lambda: site.reaches("one", HUB))
    tell("clock", ClockJump("one", JUMP_S), site.ahead_s)
    tell("disk", DiskFull("one"), site.has_room)
    tell("door", CutOff("server"), site.answers)
    tell("delay", Slow("server", DELAY_S), site.is_slow)
    print(json.dumps(told))


if __name__ == "__main__":
    main()
