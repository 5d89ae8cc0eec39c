"""A real terminal for the tests: a command on a pseudo terminal, and the screen it leaves."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import pty
import re
import struct
import sys
import tempfile
import termios
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"
_CODE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# Commands are forked from a process that has the imports behind it: they are most of a short run.
_FORK = multiprocessing.get_context("forkserver")
_FORK.set_forkserver_preload(["tidegate.cli.main", "tidegate.execute.local"])


@dataclass(frozen=True)
class Seen:
    """What came out of a command: the terminal's bytes as text, and what went elsewhere."""

    code: int
    drawn: str
    piped: str

    @property
    def plain(self) -> str:
        """All that was ever drawn, without control sequences."""
        return _CODE.sub("", self.drawn).replace("\r", "")

    @property
    def screen(self) -> list[str]:
        """The lines as they stand at the end, as a terminal with endless lines has them."""
        rows, row, column = [""], 0, 0
        for part in re.split(r"(\x1b\[[0-9;?]*[A-Za-z]|[\r\n])", self.drawn):
            if part == "\n":
                row += 1
                rows += [""] * (row == len(rows))
            elif part == "\r":
                column = 0
            elif part.endswith("A") and part.startswith("\x1b"):
                row = max(0, row - int(part[2:-1] or 1))
            elif part == "\x1b[2K":
                rows[row] = ""
            elif not part.startswith("\x1b"):
                line = rows[row].ljust(column)
                rows[row] = line[:column] + part + line[column + len(part) :]
                column += len(part)
        return [line.rstrip() for line in rows]


class Terminal:
    """A command with its standard output on a pseudo terminal, and standard error too if asked."""

    def __init__(
        self,
        arguments: Sequence[str],
        folder: Path,
        width: int = 80,
        height: int = 40,
        both: bool = True,
        **environment: str,
    ) -> None:
        self._main, side = pty.openpty()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        clean = {k: v for k, v in os.environ.items() if k not in _DECIDING}
        settings = {**clean, "TERM": "xterm-256color", **environment}
        with tempfile.NamedTemporaryFile(delete=False) as elsewhere:
            self._elsewhere = Path(elsewhere.name)
        name = os.ttyname(side)
        error = name if both else str(self._elsewhere)
        started, tell = _FORK.Pipe(duplex=False)
        self._process = _FORK.Process(
            target=_command, args=(list(arguments), str(folder), settings, name, error, tell)
        )
        self._process.start()
        tell.close()
        started.recv()  # the command has the terminal open, so that it stays when this side closes
        os.close(side)
        self._drawn = b""

    def read_until(self, text: str) -> None:
        """Wait for something to be drawn; fails if the command ends before."""
        while text not in self._text():
            assert self._read(), f"the command ended without {text!r}: {self._text()}"

    def signal(self, number: int) -> None:
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def finish(self) -> Seen:
        """Read to the end of the command."""
        while self._read():
            pass
        os.close(self._main)
        self._process.join()
        error = self._elsewhere.read_text(encoding="utf-8")
        self._elsewhere.unlink()
        assert self._process.exitcode is not None
        return Seen(self._process.exitcode, self._text(), error)

    def _text(self) -> str:
        return self._drawn.decode(errors="replace")

    def _read(self) -> bool:
        try:
            part = os.read(self._main, 65536)
        except OSError:  # Linux says so when the other side is closed
            return False
        self._drawn += part
        return bool(part)


_DECIDING = ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS", "LINES")


def _command(
    arguments: list[str],
    folder: str,
    environment: Mapping[str, str],
    terminal: str,
    error: str,
    tell: Connection,
) -> None:
    """Run the command line in a process of its own, as a shell would start it."""
    os.setsid()
    for number, name in enumerate((terminal, terminal, error)):
        opened = os.open(name, os.O_RDWR | os.O_NOCTTY)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, encoding="utf-8", buffering=1, closefd=False)
        for number, mode in enumerate("rww")
    )
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    tell.send(True)
    from tidegate.cli.main import main

    main(arguments)
