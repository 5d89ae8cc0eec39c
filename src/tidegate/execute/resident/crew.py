"""Gives work to workers that stay, and has others do what a worker that died has left.

One thread owns the connections. It gives each idle worker a unit of work, takes answers, notices at
once when a worker's connection ends, and after a while when one no longer beats; what such a worker
had goes to another, or to the same one when it is back. Who starts workers, and starts them again,
is somebody else's business: they come by the door.
"""

from __future__ import annotations

import itertools
import logging
import os
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from multiprocessing import AuthenticationError
from multiprocessing.connection import wait
from threading import Event, Lock
from typing import Any

from tidegate import schedule
from tidegate.errors import RunError
from tidegate.execute.resident.channel import Channel, admit
from tidegate.execute.resident.message import (
    BEAT,
    BYE,
    Hello,
    TaskAnswer,
    TaskRequest,
    packed,
    unpacked,
)
from tidegate.execute.resident.unit import AskedTask, CrewMember, DiedError, WorkUnit

_log = logging.getLogger(__name__)

TRIES = 4
"""A unit of work fails when it has lost so many workers; Spark's default for tasks is the same."""

HUNG_S = 30.0
"""A worker that was silent for so long counts as hung. A worker that computes still sends beats,
because our compiled loops release Python's lock."""

_ALONE_S = 10.0
"""A warning is logged once work has waited so long and no worker is there."""

_LOOK_S = 1.0
_AGAIN_S = 0.1

_KNOCKING = 64
"""The most connections that may prove the secret at a time; more are closed at once."""

_TURNS = ((False, True), (False, False), (True, True), (True, False))
"""The order in which work is given out, as pairs (later, own): urgent work before work that may
come later, and a worker's own units before those of others."""

_REMEMBERED = 16
"""The keys of sent bytes that the crew remembers for each worker. Fewer than the worker keeps
(`work.keep_sent`), so that the worker surely still has what the crew does not send again."""


class Crew:
    """Gives work to workers, which connect through the socket `door`.

    One thread of its own owns the workers and the waiting work. Any thread may call the methods
    without underscore; they leave messages under the lock and wake that thread through a pipe.
    `replace` is called with the Hello of a hung worker and must kill it. Grows with the workers and
    with the work that is asked for at a time.
    """

    def __init__(
        self,
        door: socket.socket,
        secret: bytes,
        size: int,
        replace: Callable[[Hello], None],
        hung_s: float = HUNG_S,
    ) -> None:
        self.size = size
        self.answered = 0
        """How many units were done or raised an error: progress, unlike a worker that died."""
        self.came = 0
        """How many workers have connected; one that connects again counts again."""
        self._door, self._secret = door, secret
        self._replace = replace
        self._hung_s = hung_s
        self._look_s = min(_LOOK_S, hung_s / 4)
        self._clock = schedule.current().clock
        self._looked = self._clock.now()
        self._alone_s = 0.0
        self.ready = Event()
        """Set when all `size` workers have connected, or no more will."""
        self.at_work = Event()
        """Set once the waiting units were given to all idle workers, until `run` returns."""
        self._ids = itertools.count()
        self._lock = Lock()
        """Guards what other threads write: the fields up to `_ended`, and the open pipe."""
        self._asked: list[WorkUnit] = []
        self._told: list[bytes] = []
        self._come: list[CrewMember] = []
        self._knocking = 0
        self._failure: BaseException | None = None
        self._aborted = False
        self._closed = False
        self._ended = False
        self._waiting: list[WorkUnit] = []
        self._workers: dict[Channel, CrewMember] = {}
        self._there: set[int] = set()
        """The numbers of the connected workers when work was last given out."""
        self._awake, self._wake = os.pipe()
        self._dispatching = schedule.current().start("tidegate-crew", self._dispatch, daemon=True)

    @property
    def present(self) -> int:
        """How many workers are connected now."""
        return len(self._workers)

    def run(self, tasks: Sequence[AskedTask], own: bool = False) -> list[Any]:
        """Run all tasks; return their answers in order, or raise the first error.

        With `own` each task goes to the worker of its number if that is connected, even if others
        are idle: it has state in memory there. When `run` returns or raises, none of its tasks is
        running any more, unless a worker hangs or the crew was aborted. An error is one of ours, a
        RaisedError (the task raised something else), or a DiedError (its workers died).
        """
        futures = self.begin(tasks, own=own)
        schedule.wait(futures)
        self.at_work.clear()
        return [future.result() for future in futures]

    def begin(
        self, tasks: Sequence[AskedTask], later: bool = False, own: bool = False
    ) -> list[Future[Any]]:
        """Queue tasks, and return their futures; those marked `later` run after all others."""
        units = [
            WorkUnit(next(self._ids), task, work, number, data, Future(), later, own)
            for task, work, number, data in tasks
        ]
        with self._lock:
            if self._failure is not None:
                raise self._failure
            self._asked += units
            self._rouse()
        return [unit.future for unit in units]

    def tell(self, message: object) -> None:
        """Send a message to all connected workers; they do not answer it."""
        with self._lock:
            self._told.append(packed(message))
            self._rouse()

    def fail(self, failure: BaseException) -> None:
        """Note that no worker will come any more: waiting and later work fails with `failure`."""
        with self._lock:
            self._failure = self._failure or failure
            self.ready.set()
            self._rouse()

    def abort(self, failure: BaseException) -> None:
        """Break off all work: it fails at once, and busy workers are killed."""
        with self._lock:
            self._failure, self._aborted = self._failure or failure, True
            self.ready.set()
            self._rouse()

    def close(self) -> None:
        """Dismiss all workers; a busy one kills its own process a moment later (`worker`)."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._failure = self._failure or _closed()
            self._rouse()
        self._dispatching.exception()

    def _rouse(self) -> None:
        """Wake the dispatching thread; call with the lock held."""
        if not self._ended:
            os.write(self._wake, b"!")

    def _dispatch(self) -> None:
        try:
            while not self._closed:
                for ready in wait([*self._workers, self._awake, self._door], self._look_s):
                    if ready is self._door:
                        self._answer_door()
                    elif ready == self._awake:
                        os.read(self._awake, 4096)
                    elif ready in self._workers:
                        self._hear(self._workers[ready])
                self._take_in()
                self._look_after()
                self._give_out()
        except BaseException as error:
            _log.exception("the crew cannot go on")
            self._failure = self._failure or error
        finally:
            self._let_go()

    def _answer_door(self) -> None:
        """Accept a connection; another thread checks the secret, because that may take long."""
        try:
            knocking, _ = self._door.accept()
        except OSError as error:  # it has closed again, or this process has too many files open
            _log.warning("a worker could not come in: %s", error)
            self._clock.sleep(_AGAIN_S)
            return
        if self._knocking >= _KNOCKING:
            knocking.close()
            return
        with self._lock:
            self._knocking += 1
        work = partial(self._admit, knocking)
        schedule.current().start("tidegate-crew-door", work, daemon=True)

    def _admit(self, knocking: socket.socket) -> None:
        worker = None
        try:
            channel = admit(knocking, self._secret, self._hung_s)
            try:
                worker = CrewMember(channel, unpacked(channel.recv_bytes()))
            except BaseException:
                channel.close()
                raise
        except (AuthenticationError, AssertionError, EOFError, OSError) as error:
            said = str(error) or type(error).__name__
            _log.warning("somebody who is no worker was turned away: %s", said)
        with self._lock:
            self._knocking -= 1
            if worker is not None and not self._ended:
                self._come.append(worker)
                self._rouse()
            elif worker is not None:
                worker.channel.close()

    def _take_in(self) -> None:
        """Take over what other threads left since the last time: messages, units, workers."""
        with self._lock:
            asked, self._asked = self._asked, []
            come, self._come = self._come, []
            told, self._told = self._told, []
        for message in told:
            for worker in list(self._workers.values()):
                self._write(worker, message)
        self._waiting += asked
        for worker in come:
            self._workers[worker.channel] = worker
            self.came += 1
        if self.came >= self.size:
            self.ready.set()

    def _hear(self, worker: CrewMember) -> None:
        """Read one message of a worker."""
        try:
            data = worker.channel.recv_bytes()
        except BlockingIOError:  # it stopped in the middle of a message
            self._be_rid_of(worker)
            return
        except (EOFError, OSError):
            self._lose(worker)
            return
        worker.silent_s = 0.0
        if data == BEAT:
            return
        unit, worker.unit = worker.unit, None
        assert unit is not None
        self.answered += 1
        try:
            answer: TaskAnswer = unpacked(data)
        except Exception as error:
            unit.future.set_exception(error)
            return
        assert unit.id == answer.unit
        if answer.error is not None:
            unit.future.set_exception(answer.error)
        else:
            unit.future.set_result(answer.value)

    def _lose(self, worker: CrewMember) -> None:
        """Drop a worker that is gone; its unit is queued again, or fails after `TRIES`."""
        del self._workers[worker.channel]
        worker.channel.close()
        unit, worker.unit = worker.unit, None
        if unit is None:
            return
        unit.lost += 1
        if unit.lost < TRIES:
            _log.info(
                "worker %d on %s is gone; its work is done again (lost %d of %d times)",
                worker.hello.number,
                worker.hello.host,
                unit.lost,
                TRIES,
            )
            self._waiting.insert(0, unit)
        else:
            unit.future.set_exception(DiedError(worker.hello.host))

    def _be_rid_of(self, worker: CrewMember) -> None:
        _log.warning(
            "worker %d on %s (process %d) has not been heard of for %.0f s and is replaced",
            worker.hello.number,
            worker.hello.host,
            worker.hello.process,
            max(worker.silent_s, self._hung_s),
        )
        self._replace(worker.hello)
        self._lose(worker)

    def _look_after(self) -> None:
        """Replace workers that hang, and fail work that nobody will do."""
        now = self._clock.now()
        # A pause of the machine or of this process must not make all workers look hung: between two
        # looks at most twice the usual time counts.
        passed, self._looked = min(now - self._looked, 2 * self._look_s), now
        for worker in list(self._workers.values()):
            worker.silent_s += passed
            if worker.silent_s > self._hung_s:
                self._be_rid_of(worker)
        self._tell_of_waiting(passed)
        if self._failure is not None and not self._closed:
            waiting, self._waiting = self._waiting, []
            for unit in waiting:
                unit.future.set_exception(self._failure)
        if self._aborted:
            self._break_off()

    def _tell_of_waiting(self, passed: float) -> None:
        """Warn once that work waits and no worker is connected."""
        before = self._alone_s
        self._alone_s = before + passed if self._waiting and not self._workers else 0.0
        if before <= _ALONE_S < self._alone_s:
            _log.warning("no task of Spark has come to do the work for %.0f s", _ALONE_S)

    def _break_off(self) -> None:
        for worker in list(self._workers.values()):
            if worker.unit is not None:
                unit, worker.unit = worker.unit, None
                unit.future.set_exception(self._failure)
                self._replace(worker.hello)
                self._lose(worker)

    def _give_out(self) -> None:
        """Give each idle worker a unit, if possible one of its own number.

        The worker of a number has state of that instance in memory. A worker without a unit of its
        own takes another's, unless that unit waits for its own worker (`own`).
        """
        idle = [w for w in self._workers.values() if w.unit is None]
        if not idle or not self._waiting:
            return
        self._there = {w.hello.number for w in self._workers.values()}
        awaited = any(not unit.later for unit in self._waiting)
        for later, own in _TURNS:
            for worker in list(idle):
                unit = self._next(worker, later, own)
                if unit is None:
                    continue
                idle.remove(worker)
                self._waiting.remove(unit)
                self._send(worker, unit)
        if awaited:  # only now may `until_at_work` return: reading ahead must not delay sending
            self.at_work.set()

    def _next(self, worker: CrewMember, later: bool, own: bool) -> WorkUnit | None:
        for unit in self._waiting:
            number = unit.number % self.size
            is_free = not own and not (unit.own and number in self._there)
            if unit.later == later and (number == worker.hello.number or is_free):
                return unit
        return None

    def _send(self, worker: CrewMember, unit: WorkUnit) -> None:
        data = {key: bytes_ for key, bytes_ in unit.data.items() if key not in worker.has}
        worker.has |= dict.fromkeys(data)
        while len(worker.has) > _REMEMBERED:
            del worker.has[next(iter(worker.has))]
        request = TaskRequest(unit.id, unit.task, unit.work, unit.number, data)
        worker.unit = unit
        self._write(worker, packed(request))

    def _write(self, worker: CrewMember, message: bytes) -> None:
        try:
            worker.channel.send_bytes(message)
        except BlockingIOError:  # it no longer reads
            self._be_rid_of(worker)
        except OSError:
            self._lose(worker)

    def _let_go(self) -> None:
        """Close all connections, and fail all work that still waits."""
        with self._lock:
            self._ended = True
            self._failure = self._failure or _closed()
            units = [*self._waiting, *self._asked]
            workers = [*self._workers.values(), *self._come]
            os.close(self._wake)
            os.close(self._awake)
        self._door.close()
        for worker in workers:
            if worker.unit is not None:
                units.append(worker.unit)
            with suppress(OSError):  # is gone already
                worker.channel.send_bytes(BYE)
            worker.channel.close()
        for unit in units:
            unit.future.set_exception(self._failure)


def _closed() -> RunError:
    return RunError("crew", "must be open", "one that was closed")
