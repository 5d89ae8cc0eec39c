"""Stopping a run from outside: signals on the main thread, the loop on another.

The main thread does nothing but wait, for the loop to end or for a signal, at the end of a pipe
that both write to. So a signal is answered whatever the loop is doing: waiting for Spark to start,
for executors, for a task that hangs. And nothing of ours runs inside a signal handler.
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
    from tidegate.driver.metrics import Summary

EXIT_STOPPED = 130
"""The exit code of a run that a signal has stopped: 128 and the number of SIGINT."""

STOPPING = "stopping after this batch"

_PATIENCE_S = 3.0
"""How long an aborted batch may take to end before the process ends without it."""

_ENDED = 0
"""What the pipe has when the loop has ended; else it has the numbers of signals."""

_abandoned: list[Loop] = []
"""Loops that were aborted and did not end."""


class Stopped(Exception):
    """A run was stopped before its end; what was committed stays."""

    def __init__(self, summary: Summary) -> None:
        super().__init__(summary)
        self.summary = summary


def run_stoppable(loop: Loop, ending: Callable[[str], None]) -> Summary:
    """Run a loop: the first signal ends it after the batch at hand, the second aborts that.

    `ending` is told in words how it ends. Raises Stopped where a signal, or somebody who asked the
    query to stop, came before the end of the input, and what the loop raises otherwise.
    """
    signals = 0
    with _pipe() as (ear, tell):
        running = schedule.current().start("tidegate-run", loop.run, daemon=True)
        running.add_done_callback(lambda _: tell(_ENDED))
        while os.read(ear, 1)[0] != _ENDED:
            signals += 1
            if signals == 1:
                loop.stop()
                ending(STOPPING)
                say(f"{STOPPING}; Ctrl-C again aborts it, and what is committed stays")
            elif signals == 2:
                ending("aborting")
                say("aborting the batch")
                if not _aborted(loop, running, ear):
                    _abandoned.append(loop)
                    raise Stopped(loop.summary)
                break
    failure = running.exception()
    if failure is not None and signals < 2:  # else it is the abort that failed
        raise failure
    if not (loop.summary.finished or loop.summary.up_to_date):
        raise Stopped(loop.summary)
    return loop.summary


def wait_for_signal() -> None:
    """Block until somebody wants this process to end."""
    with _pipe() as (ear, _):
        os.read(ear, 1)


def leave(code: int) -> NoReturn:
    """End the process; if a batch was aborted and goes on all the same, without waiting for it.

    What it leaves behind is what a crash leaves, and the next start removes it.
    """
    if not _abandoned:
        sys.exit(code)
    for loop in _abandoned:
        loop.abandon()
    clean_now(_PATIENCE_S)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _aborted(loop: Loop, running: Future[Summary], ear: int) -> bool:
    """Break off the batch; whether the loop has ended with it, soon enough."""
    abort = schedule.current().start("tidegate-abort", loop.abort, daemon=True)
    try:
        if not abort.result(_PATIENCE_S):
            return running.done()
    except TimeoutError:  # Spark does not answer
        return running.done()
    while not running.done() and select.select([ear], [], [], _PATIENCE_S)[0]:
        if os.read(ear, 1)[0] != _ENDED:
            return False  # a third signal: somebody is in a hurry
    return running.done()


@contextmanager
def _pipe() -> Iterator[tuple[int, Callable[[int], None]]]:
    """The end of a pipe that has the number of each signal to stop which comes meanwhile.

    And a function to put a number into it; afterwards it does nothing, because the loop may end
    when somebody else has the descriptor.
    """
    ear, mouth = os.pipe()
    lock, ended = Lock(), Event()

    def tell(number: int) -> None:
        with lock:
            if not ended.is_set():
                os.write(mouth, bytes([number]))

    os.set_blocking(mouth, False)
    woken = signal.set_wakeup_fd(mouth, warn_on_full_buffer=False)
    stops = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: None) for number in stops}
    try:
        yield ear, tell
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(woken)
        with lock:
            ended.set()
            os.close(ear)
            os.close(mouth)
