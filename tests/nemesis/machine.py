"""Hosts with a network, a disk and a wall clock of their own, all on this machine.

Everything is inside of namespaces that `entered` makes: networks, mounts and processes. They belong
to one process. When it is gone, however it ended, the kernel ends all processes that are inside,
and removes links, mounts and files in memory. Nothing in them can reach a network outside.
"""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

NAMESPACES = ["unshare", "--net", "--mount", "--uts", "--pid", "--kill-child", "--mount-proc"]
LAUNCH = Path(__file__).parents[2] / "tools" / "launch.py"
SHIM = Path(__file__).with_name("clock.c")
MEMORY = Path("/dev/shm")
NETWORK = "10.213.7."
HUB = f"{NETWORK}1"
"""The address of the driver and of all servers, for the hosts."""
BRIDGE = "hosts"
DISK_BYTES = 256 << 20

NEEDED = (
    "needs root with namespaces for networks, mounts and processes (unshare), ip, mkfs.ext4, loop "
    "devices and gcc"
)


def entered(command: Sequence[str]) -> list[str]:
    """The command that runs another one inside of new namespaces, and dies with who started it."""
    unshare = shutil.which(NAMESPACES[0])
    assert unshare is not None, f"The nemesis {NEEDED}; got no unshare."
    assert os.geteuid() == 0, f"The nemesis {NEEDED}; got another user."
    return [sys.executable, str(LAUNCH), "--", unshare, *NAMESPACES[1:], *command]


def done(*words: str | Path) -> None:
    """Run a command of the system; it must go well."""
    try:
        subprocess.run([str(w) for w in words], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", "") or error
        raise AssertionError(f"The nemesis {NEEDED}; {words[0]} says: {said}") from error


def prepare(hosts: Sequence[str]) -> Path:
    """Inside: set up the bridge and loopback; a folder in memory that goes with the namespaces."""
    done("mount", "-t", "tmpfs", "nemesis", MEMORY)
    done("chmod", "1777", MEMORY)
    done("ip", "link", "set", "lo", "up")
    done("ip", "link", "add", BRIDGE, "type", "bridge")
    done("ip", "addr", "add", f"{HUB}/24", "dev", BRIDGE)
    done("ip", "link", "set", BRIDGE, "up")
    names = [f"127.0.0.1 localhost {socket.gethostname()}"]
    names += [f"{address_of(number)} {name}" for number, name in enumerate(hosts)]
    (MEMORY / "hosts").write_text("\n".join(names) + "\n")
    done("mount", "--bind", MEMORY / "hosts", "/etc/hosts")
    done("gcc", "-O1", "-shared", "-fPIC", "-o", MEMORY / "clock.so", SHIM)
    return MEMORY


def address_of(number: int) -> str:
    return f"{NETWORK}{11 + number}"


@dataclass(frozen=True)
class WallClock:
    """The wall clock of the processes that are started with its `environment`."""

    file: Path

    @classmethod
    def at(cls, file: Path) -> WallClock:
        file.write_bytes(bytes(8))
        return cls(file)

    @property
    def environment(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(MEMORY / "clock.so"), "WALL_CLOCK_SHIFT": str(self.file)}

    def shift(self, seconds: int) -> None:
        with self.file.open("r+b") as file:
            file.write(struct.pack("q", seconds))


@dataclass(frozen=True)
class Disk:
    """A file system of its own, in a file in memory."""

    folder: Path

    @classmethod
    def at(cls, folder: Path) -> Disk:
        folder.mkdir(parents=True, exist_ok=True)
        image = folder.with_name(f"{folder.name}.image")
        with image.open("wb") as file:
            file.truncate(DISK_BYTES)
        done("mkfs.ext4", "-q", "-m", "0", image)
        done("mount", "-o", "loop", image, folder)
        return cls(folder)

    @property
    def _ballast(self) -> Path:
        return self.folder / "ballast"

    def fill(self) -> None:
        """Take every block that is free."""
        with self._ballast.open("ab") as file:
            for size in (1 << 20, 1 << 10):
                with suppress(OSError):
                    while True:
                        os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, size)

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)


class Host:
    """A host on the bridge: commands that begin with `enter` run there."""

    def __init__(self, name: str, number: int) -> None:
        self.name, self.address = name, address_of(number)
        self._cable = f"to-{name}"
        self.process = subprocess.Popen(
            [
                "unshare",
                "--net",
                "--uts",
                "sh",
                "-c",
                f"hostname {name}; echo; exec sleep infinity",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline(), f"The nemesis {NEEDED}; host {name} did not start."
        pid = self.process.pid
        self.network = os.readlink(f"/proc/{pid}/ns/net")
        self.enter = ("nsenter", f"--net=/proc/{pid}/ns/net", f"--uts=/proc/{pid}/ns/uts")
        peer = ["peer", "name", "eth0", "netns", str(pid)]
        done("ip", "link", "add", self._cable, "type", "veth", *peer)
        done("ip", "link", "set", self._cable, "master", BRIDGE, "up")
        done(*self.enter, "ip", "addr", "add", f"{self.address}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            done(*self.enter, "ip", "link", "set", device, "up")

    def link(self, up: bool) -> None:
        done("ip", "link", "set", self._cable, "up" if up else "down")

    def route(self, address: str, there: bool) -> None:
        """Whether what this host sends to an address arrives."""
        change = "del" if there else "add"
        done(*self.enter, "ip", "route", change, "blackhole", f"{address}/32")
