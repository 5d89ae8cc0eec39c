"""Stops a run from outside: the main thread waits for signals while another thread runs the loop.

The main thread only waits, at the end of a pipe, for a signal or the end of the loop; both are
written to that pipe. So a signal is answered whatever the loop is doing: waiting for Spark to
start, for executors, or for a task that hangs. None of our code runs inside a signal handler.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Event, Lock
from typing import TYPE_CHECKING, NoReturn

from tidegate import schedule
from tidegate.cli.line import say
from tidegate.execute.shutdown import clean_now

if TYPE_CHECKING:  # commands that run no query start without the engine
    from tidegate.driver.loop import Loop
    from tidegate.driver.report.metrics import Summary

EXIT_STOPPED = 130
"""The exit code of a run that a signal stopped: 128 plus the number of SIGINT."""

STOPPING = "stopping after this batch"

_PATIENCE_S = 3.0
"""How long an aborted batch may take to end; then the process exits without waiting for it."""

_ENDED = 0
"""Written to the pipe when the loop has ended; other values are signal numbers."""

_abandoned: list[Loop] = []
"""Loops that were aborted and did not end."""


class Stopped(Exception):
    """A run was stopped before its end; what was committed stays."""

    def __init__(self, summary: Summary) -> None:
        super().__init__(summary)
        self.summary = summary


def run_stoppable(loop: Loop, ending: Callable[[str], None]) -> Summary:
    """Runs a loop. The first signal ends it after the running batch, a second one aborts the batch.

    `ending` is called with a text that says how it ends. Raises Stopped if a signal or a command
    stopped the query before the end of its input; otherwise raises what the loop raises.
    """
    signals = 0
    with _pipe() as (read_end, tell):
        running = schedule.current().start("tidegate-run", loop.run, daemon=True)
        running.add_done_callback(lambda _: tell(_ENDED))
        while os.read(read_end, 1)[0] != _ENDED:
            signals += 1
            if signals == 1:
                loop.stop()
                ending(STOPPING)
                say(f"{STOPPING}; Ctrl-C again aborts it, and what is committed stays")
            elif signals == 2:
                ending("aborting")
                say("aborting the batch")
                if not _aborted(loop, running, read_end):
                    _abandoned.append(loop)
                    raise Stopped(loop.summary)
                break
    # Read only now: while the loop runs, waiting for the future would leave signals unanswered.
    failure = running.exception()
    if failure is not None and signals < 2:  # else it is the abort that failed
        raise failure
    if not (loop.summary.finished or loop.summary.up_to_date):
        raise Stopped(loop.summary)
    return loop.summary


def wait_for_signal() -> None:
    """Blocks until a signal asks this process to end."""
    with _pipe() as (read_end, _):
        os.read(read_end, 1)


def leave(code: int) -> NoReturn:
    """Exits the process, without waiting for an aborted batch that still runs.

    What that batch leaves behind is what a crash leaves, and the next start removes it.
    """
    if not _abandoned:
        sys.exit(code)
    for loop in _abandoned:
        loop.abandon()
    clean_now(_PATIENCE_S)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _aborted(loop: Loop, running: Future[Summary], read_end: int) -> bool:
    """Aborts the batch; returns whether the loop then ended in time."""
    abort = schedule.current().start("tidegate-abort", loop.abort, daemon=True)
    try:
        if not abort.result(_PATIENCE_S):
            return running.done()
    except TimeoutError:  # Spark does not answer
        return running.done()
    poll = select.poll()  # select() takes no number from 1,024 on
    poll.register(read_end, select.POLLIN)
    while not running.done() and poll.poll(_PATIENCE_S * 1000):
        if os.read(read_end, 1)[0] != _ENDED:
            return False  # a third signal: somebody is in a hurry
    return running.done()


@contextmanager
def _pipe() -> Iterator[tuple[int, Callable[[int], None]]]:
    """The read end of a pipe that receives the numbers of stop signals, and a function to write to
    it.

    After the block the function does nothing: the loop may end later, when the descriptor's number
    belongs to another file.
    """
    read_end, write_end = os.pipe()
    lock, ended = Lock(), Event()

    def tell(number: int) -> None:
        with lock:
            if not ended.is_set():
                os.write(write_end, bytes([number]))

    os.set_blocking(write_end, False)
    woken = signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    stops = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: None) for number in stops}
    try:
        yield read_end, tell
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(woken)
        with lock:
            ended.set()
            os.close(read_end)
            os.close(write_end)
