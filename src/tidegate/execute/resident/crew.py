"""A crew of workers and who gets which work, between a driver's requests and their answers.

One thread owns the connections. It gives each idle worker a unit of work, takes answers, notices at
once when a worker's connection ends, and after a while when one no longer beats; what such a worker
had goes to another, or to the same one when it is back. Who starts workers, and starts them again,
is somebody else's business: they come by the listener.
"""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, Listener, wait
from threading import Lock
from typing import Any

from tidegate import schedule
from tidegate.errors import RunError
from tidegate.execute.resident.message import BEAT, Answer, Hello, Request, Task, packed, unpacked
from tidegate.execute.work import Work

_log = logging.getLogger(__name__)

TRIES = 4
"""How often a unit of work may lose its worker, as Spark has it for tasks."""

HUNG_S = 30.0
"""A worker that has not been heard of for so long is taken for hung. Loops give Python's lock back,
so a worker that computes beats on."""

_LOOK_S = 1.0

_REMEMBERED = 16
"""Fewer than a worker keeps of what it was sent (`work.keep_sent`), so that it has what we think
it has."""


@dataclass(eq=False)
class _Unit:
    """A task that somebody waits for."""

    id: int
    task: Task
    work: Work
    number: int
    data: dict[str, bytes]
    future: Future[Any]
    lost: int = 0


@dataclass(eq=False)
class _Worker:
    """A worker that has come; `has` are the keys of what it was sent, the newest last."""

    connection: Connection[bytes, bytes]
    hello: Hello
    heard: float
    unit: _Unit | None = None
    has: dict[str, None] = field(default_factory=dict)


class Crew:
    """Gives work to workers that come by a listener; `run` may be called by several threads.

    `replace` is called with the Hello of a worker that hangs, to have it killed. Grows with the
    workers, and with the work that is asked for at a time.
    """

    def __init__(
        self,
        listener: Listener,
        size: int,
        replace: Callable[[Hello], None],
        hung_s: float = HUNG_S,
    ) -> None:
        self.size = size
        self.answered = 0
        self._listener = listener
        self._replace = replace
        self._hung_s = hung_s
        self._clock = schedule.current().clock
        self._ids = itertools.count()
        self._lock = Lock()
        self._asked: list[_Unit] = []
        self._come: list[Connection[bytes, bytes]] = []
        self._failure: BaseException | None = None
        self._closed = False
        self._waiting: list[_Unit] = []
        self._workers: dict[Connection[bytes, bytes], _Worker | None] = {}
        self._awake, self._wake = os.pipe()
        start = schedule.current().start
        self._accepting = start("tidegate-crew-door", self._accept, daemon=True)
        self._dispatching = start("tidegate-crew", self._dispatch, daemon=True)

    def run(self, tasks: Sequence[tuple[Task, Work, int, dict[str, bytes]]]) -> list[Any]:
        """Have all tasks done, and give what they returned, in order; the first error is raised.

        Each is a function, its work, a number, and the data that the work needs by key. When it
        returns or raises, none of them is being done any more, unless its worker hangs.
        """
        units = [
            _Unit(next(self._ids), task, work, number, data, Future())
            for task, work, number, data in tasks
        ]
        with self._lock:
            if self._failure is not None:
                raise self._failure
            self._asked += units
        self._rouse()
        schedule.wait(u.future for u in units)
        return [u.future.result() for u in units]

    def fail(self, failure: BaseException) -> None:
        """No worker will come any more: whoever waits, and whoever asks later, is told."""
        with self._lock:
            self._failure = self._failure or failure
        self._rouse()

    def close(self) -> None:
        """Let all workers go; they end when they have done what they are at."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._failure = self._failure or RunError("crew", "must be open", "one that was closed")
        self._rouse()
        self._dispatching.exception()
        self._listener.close()
        os.close(self._wake)
        os.close(self._awake)

    def _rouse(self) -> None:
        os.write(self._wake, b"!")

    def _accept(self) -> None:
        """Take workers in as they come, until the listener is closed."""
        while True:
            try:
                connection = self._listener.accept()
            except (AuthenticationError, EOFError, ConnectionError) as error:
                _log.warning("somebody who is no worker was turned away: %s", error)
                continue
            except OSError:
                return
            with self._lock:
                if self._closed:
                    connection.close()
                    return
                self._come.append(connection)
            self._rouse()

    def _dispatch(self) -> None:
        try:
            while not self._closed:
                for ready in wait([*self._workers, self._awake], timeout=_LOOK_S):
                    if isinstance(ready, Connection):
                        self._hear(ready)
                    else:
                        os.read(self._awake, 4096)
                self._take_in()
                self._look_after()
                self._give_out()
        except BaseException as error:
            self._failure = self._failure or error
            raise
        finally:
            self._let_go()

    def _take_in(self) -> None:
        """What was asked and who has come, since the last time."""
        with self._lock:
            asked, self._asked = self._asked, []
            come, self._come = self._come, []
        self._waiting += asked
        for connection in come:
            self._workers[connection] = None  # until it has said who it is

    def _hear(self, connection: Connection[bytes, bytes]) -> None:
        """One message of a worker."""
        try:
            data = connection.recv_bytes()
        except (EOFError, OSError):
            self._lose(connection)
            return
        worker = self._workers[connection]
        if worker is None:
            self._workers[connection] = _Worker(connection, unpacked(data), self._clock.now())
            return
        worker.heard = self._clock.now()
        if data == BEAT:
            return
        answer: Answer = unpacked(data)
        unit, worker.unit = worker.unit, None
        assert unit is not None
        assert unit.id == answer.unit
        self.answered += 1
        if answer.error is not None:
            unit.future.set_exception(answer.error)
        else:
            unit.future.set_result(answer.value)

    def _lose(self, connection: Connection[bytes, bytes]) -> None:
        """A worker is gone; what it was at is to be done again."""
        worker = self._workers.pop(connection)
        connection.close()
        if worker is None or worker.unit is None:
            return
        unit, worker.unit = worker.unit, None
        unit.lost += 1
        if unit.lost < TRIES:
            self._waiting.insert(0, unit)
            return
        unit.future.set_exception(
            RunError(
                f"worker {worker.hello.number} on {worker.hello.host}",
                "its process must live until its task is done",
                f"{TRIES} that died at the same task",
                "See the executor's log (standard error of Python workers); a process that is "
                "killed for its memory needs smaller batches (--batch-rows) or more memory.",
            )
        )

    def _look_after(self) -> None:
        """Get rid of workers that hang, and of work that nobody will do."""
        now = self._clock.now()
        for connection, worker in list(self._workers.items()):
            if worker is not None and now - worker.heard > self._hung_s:
                _log.warning(
                    "worker %d on %s (process %d) has not been heard of for %.0f s and is replaced",
                    worker.hello.number,
                    worker.hello.host,
                    worker.hello.process,
                    now - worker.heard,
                )
                self._replace(worker.hello)
                self._lose(connection)
        if self._failure is not None and not self._closed:
            waiting, self._waiting = self._waiting, []
            for unit in waiting:
                unit.future.set_exception(self._failure)

    def _give_out(self) -> None:
        """A unit for each idle worker: one of its own number, so that it finds what it has kept.

        Who has none of those takes another's, which is busy or not there.
        """
        idle = [w for w in self._workers.values() if w is not None and w.unit is None]
        if not idle or not self._waiting:
            return
        for own in (True, False):
            for worker in list(idle):
                unit = self._next(worker, own)
                if unit is None:
                    continue
                idle.remove(worker)
                self._waiting.remove(unit)
                self._send(worker, unit)

    def _next(self, worker: _Worker, own: bool) -> _Unit | None:
        for unit in self._waiting:
            if not own or unit.number % self.size == worker.hello.number:
                return unit
        return None

    def _send(self, worker: _Worker, unit: _Unit) -> None:
        data = {key: bytes_ for key, bytes_ in unit.data.items() if key not in worker.has}
        worker.has |= dict.fromkeys(data)
        while len(worker.has) > _REMEMBERED:
            del worker.has[next(iter(worker.has))]
        worker.unit = unit
        try:
            worker.connection.send_bytes(
                packed(Request(unit.id, unit.task, unit.work, unit.number, data))
            )
        except OSError:
            self._lose(worker.connection)

    def _let_go(self) -> None:
        """End all connections, and tell whoever still waits."""
        units = [*self._waiting, *self._asked]
        for connection, worker in self._workers.items():
            connection.close()
            if worker is not None and worker.unit is not None:
                units.append(worker.unit)
        for connection in self._come:
            connection.close()
        for unit in units:
            if not unit.future.done():
                unit.future.set_exception(self._failure or RunError("crew", "must be open", "none"))
