"""Ctrl-C in a real Python prompt while it waits for a query."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROMPT = ">>> "


class Prompt:
    """A Python prompt on a terminal of its own, as a person has it: Ctrl-C is a key."""

    def __init__(self, folder: Path) -> None:
        self._main, side = pty.openpty()
        # The process is a session of its own, and this terminal controls it: keys are signals.
        begin = (
            "import fcntl, os, signal, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
            "signal.signal(signal.SIGINT, signal.SIG_DFL);"  # which may be ignored here
            "os.execv(sys.executable, [sys.executable, '-q'])"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-c", begin],
            cwd=folder,
            env={**os.environ, "TERM": "dumb", "PYTHON_BASIC_REPL": "1"},
            stdin=side,
            stdout=side,
            stderr=side,
            start_new_session=True,
        )
        os.close(side)
        self._seen = ""
        self._until(PROMPT)

    def type(self, line: str) -> None:
        """A line without waiting for what it does."""
        os.write(self._main, f"{line}\n".encode())
        self._until("\n")

    def ask(self, line: str) -> str:
        """What a line prints before the next prompt."""
        self.type(line)
        return self._until(PROMPT)

    def interrupt(self) -> str:
        """Ctrl-C, and what is printed before the next prompt."""
        os.write(self._main, b"\x03")
        return self._until(PROMPT)

    def end(self) -> int:
        os.write(self._main, b"exit()\n")
        try:
            while os.read(self._main, 65536):
                pass
        except OSError:  # Linux says so when the other side is closed
            pass
        os.close(self._main)
        return self._process.wait()

    def _until(self, text: str) -> str:
        while text not in self._seen:
            part = os.read(self._main, 65536)
            assert part, f"the prompt ended: {self._seen}"
            self._seen += part.decode().replace("\r", "")
        before, self._seen = self._seen.split(text, 1)
        return before


@pytest.mark.parametrize("handler", ["", "pyspark.core.context"])
def test_ctrl_c_in_wait_leaves_a_query_that_goes_on(handler: str, tmp_path: Path) -> None:
    """Also where a Spark context has set a handler, which would cancel the jobs of the query."""
    prompt = Prompt(tmp_path)
    prompt.ask(
        "import signal, threading, time; from datetime import datetime; import tidegate as tg"
    )
    if handler:
        prompt.ask("cancelled = lambda *_: print('all jobs are cancelled')")
        prompt.ask(f"cancelled.__module__ = {handler!r}")
        prompt.ask("before = signal.signal(signal.SIGINT, cancelled)")
    prompt.ask("rows = [{'ts': datetime(2024, 1, 1, 0, 0, s)} for s in (1, 2, 12)]")
    prompt.ask("source, found = tg.MemorySource(rows, time='ts'), tg.sink.memory()")
    prompt.ask("stream = tg.Session(master='none').stream(source, time='ts')")
    prompt.ask("query = stream.window('10 seconds').agg(n=tg.count()).start(sink=found)")
    prompt.ask("while query.status()['rows_in'] < 3: _ = query.wait(0.01)\n")
    # Told by another thread once `wait` has put a handler of its own in the place of this one.
    mine = "signal.getsignal(signal.SIGINT) is cancelled" if handler else "False"
    looks = f"[time.sleep(0.01) for _ in iter(lambda: {mine}, False)]"
    prompt.ask(f"tell = lambda: ({looks}, print('waiting', flush=True))")
    prompt.type("threading.Thread(target=tell).start(); query.wait()")
    prompt._until("waiting\n")
    said = prompt.interrupt()
    assert said.rstrip().endswith("KeyboardInterrupt")
    assert "cancelled" not in said
    assert prompt.ask("query.status()['running'], query.status()['failure']") == "(True, None)\n"
    prompt.ask("source.append([{'ts': datetime(2024, 1, 1, 0, 0, 25)}])")
    prompt.ask("source.end()")
    assert re.search("finished.*True", prompt.ask("print(query.wait().as_dict())"))
    assert prompt.ask("found.table().column('n').to_pylist()") == "[2, 1, 1]\n"
    assert prompt.ask("query.stop().finished, query.status()['running']") == "(True, False)\n"
    assert prompt.end() == 0


def test_a_ctrl_c_that_wakes_no_thread_is_seen(tmp_path: Path) -> None:
    """As one that comes just before the thread sleeps: here another thread is told of it."""
    prompt = Prompt(tmp_path)
    prompt.ask(
        "import signal, sys, threading, time; from datetime import datetime; import tidegate as tg"
    )
    prompt.ask("source = tg.MemorySource([{'ts': datetime(2024, 1, 1)}], time='ts')")
    prompt.ask("stream = tg.Session(master='none').stream(source, time='ts')")
    prompt.ask("query = stream.select('ts').start(sink=tg.sink.memory())")
    frame = "sys._current_frames()[threading.main_thread().ident]"
    prompt.ask(f"names = lambda: ({frame}.f_code.co_name, {frame}.f_back.f_code.co_name)")
    prompt.ask("asleep = lambda: (time.sleep(0.01), names() == ('wait', 'exception'))[1]")
    told = "signal.pthread_kill(threading.get_ident(), signal.SIGINT)"
    prompt.ask(f"tell = lambda: ([None for _ in iter(asleep, True)], {told})")
    prompt.type("threading.Thread(target=tell, daemon=True).start(); query.wait()")
    assert prompt._until(PROMPT).rstrip().endswith("KeyboardInterrupt")
    prompt.ask("source.end()")
    assert prompt.ask("query.wait().finished") == "True\n"
    assert prompt.end() == 0
