"""What the servers in JVMs share that tests and `make` targets start on loopback."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tidegate.execute.java import ensure_java

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.cluster import environment, free_port, is_free, wait_for
from tools.jvm import QUICK


@dataclass
class Server(ABC):
    """A server below a folder; its port stays the same when it is started again."""

    folder: Path
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        self.port = self.port or free_port()

    @abstractmethod
    def start(self) -> None:
        """Start it and wait until it answers."""

    def launch(self, command: Sequence[str], started: str) -> None:
        """Run the JVM until it has logged that it has started."""
        self.folder.mkdir(parents=True, exist_ok=True)
        log = self.folder / "server.log"
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                command,
                cwd=self.folder,
                stdout=file,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=environment(),
                start_new_session=True,  # Ctrl-C is for who started it
            )
        wait_for(log, started, self.process)

    def stop(self) -> None:
        """End it in order."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()
        self.process = None

    def kill(self) -> None:
        """End it at once, as a machine does that loses its power."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


S = TypeVar("S", bound=Server)


def java(*options: str) -> list[str]:
    """The command of a JVM that starts quickly."""
    found = ensure_java(dict(os.environ))  # the JAVA_HOME of this process stays as it is
    return [str(found.home / "bin" / "java"), *QUICK.split(), *options]


def jars_of(server: str) -> Path:
    """The folder with the jars of a server of `tools/jars.sh`; they are fetched once."""
    fetch = [Path(__file__).with_name("jars.sh"), server]
    said = subprocess.run(fetch, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    return Path(said.stdout.strip())


@contextmanager
def running(make: Callable[[Path, int], S], usual: int, port: int | None) -> Iterator[S]:
    """A server that ends with the block, and whose folder goes with it.

    Without a port it is at the usual one, or at another one where that is taken.
    """
    folder = Path(tempfile.mkdtemp(prefix="tidegate-server-"))
    server = make(folder, usual if port is None and is_free(usual) else port or 0)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def arguments(description: str | None, usual: int) -> argparse.ArgumentParser:
    """The options that each of them has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--port", type=int, metavar="P", help=f"default: {usual}, if it is free")
    return parser


@contextmanager
def until_ctrl_c(
    name: str, make: Callable[[Path, int], S], usual: int, port: int | None
) -> Iterator[S]:
    """Run a server, have it presented in the block, and wait for Ctrl-C after it."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    print(f"Starting a {name}: some seconds", file=sys.stderr)
    with suppress(KeyboardInterrupt), running(make, usual, port) as server:
        yield server
        signal.pause()
    print(f"The {name} is stopped.", file=sys.stderr)
