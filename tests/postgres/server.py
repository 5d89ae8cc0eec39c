"""A Postgres server of this host, for tests: Debian's, which tools/postgres.sh finds."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg

TOOL = Path(__file__).parents[2] / "tools" / "postgres.sh"
MEMORY = Path("/dev/shm")


class Server:
    """A server on a port of its own, which can be stopped and started again."""

    def __init__(self) -> None:
        base = MEMORY if MEMORY.is_dir() else None
        self._folder = Path(tempfile.mkdtemp(prefix="tidegate-postgres-", dir=base))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        found = subprocess.run([TOOL], capture_output=True, text=True, check=False)
        assert found.returncode == 0, found.stderr
        self._log = self._folder.with_name(f"{self._folder.name}.out").open("wb")
        self._process = self._started(str(TOOL), "serve", str(self._folder), str(self.port))

    def uri(self, table: str, *more: str, user: str = "tidegate", port: int = 0) -> str:
        """A table of the database, as a user names it."""
        said = "".join(f"&{parameter}" for parameter in more)
        return f"postgresql://{user}@127.0.0.1:{port or self.port}/postgres?table={table}{said}"

    def ask(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a query, in a transaction of its own."""
        with self.connect() as connection:
            cursor = connection.execute(query, values)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []

    def connect(self) -> psycopg.Connection[Any]:
        uri = f"postgresql://tidegate@127.0.0.1:{self.port}/postgres?options=-ctimezone%3DUTC"
        return psycopg.connect(uri)

    def stop(self) -> None:
        """As an administrator does: sessions are cut, what they had begun is undone."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait(60)

    def pids(self) -> list[int]:
        """The server and those that it has started."""
        pid = self._process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children")
        return [pid, *map(int, children.read_text().split())] if children.exists() else []

    def kill(self) -> None:
        """End all its processes at once, as a machine does that loses its power."""
        for pid in self.pids():
            with suppress(ProcessLookupError):  # one has ended with another
                os.kill(pid, signal.SIGKILL)
        self._process.wait()

    def start(self) -> None:
        """Again, over what it had."""
        command = (self._folder / "data" / "postmaster.opts").read_text().split()
        programs = [part.strip('"') for part in command]
        self._process = self._started(*self._as_owner(), *programs)

    def _as_owner(self) -> list[str]:
        owner = (self._folder / "data").stat()
        user = [f"--reuid={owner.st_uid}", f"--regid={owner.st_gid}", "--clear-groups"]
        return ["setpriv", *(user if os.getuid() == 0 else []), "--pdeathsig", "INT"]

    def close(self) -> None:
        if self._process.poll() is None:
            self.stop()
        self._log.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        for end in (".out", ".log"):
            self._folder.with_name(f"{self._folder.name}{end}").unlink(missing_ok=True)

    def _started(self, *command: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            command,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        deadline = time.monotonic() + 120
        while True:
            assert process.poll() is None, self._said()
            try:
                psycopg.connect(f"postgresql://tidegate@127.0.0.1:{self.port}/postgres").close()
                return process
            except psycopg.OperationalError:
                assert time.monotonic() < deadline, f"no answer of the server: {self._said()}"
                time.sleep(0.05)

    def _said(self) -> str:
        return Path(self._log.name).read_text()
