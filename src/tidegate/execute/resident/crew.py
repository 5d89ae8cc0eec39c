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
"""How often a unit of work may lose its worker, as Spark has it for tasks."""

HUNG_S = 30.0
"""A worker that has not been heard of for so long is taken for hung. Loops give Python's lock back,
so a worker that computes beats on."""

_ALONE_S = 10.0
"""Work that has waited so long without any worker is told of."""

_LOOK_S = 1.0
_AGAIN_S = 0.1

_KNOCKING = 64
"""So many may prove at a time that they know the secret; more are turned away."""

_TURNS = ((False, True), (False, False), (True, True), (True, False))
"""In what order work is given out: whether it may come later, and whether it is a worker's own."""

_REMEMBERED = 16
"""Fewer than a worker keeps of what it was sent (`work.keep_sent`), so that it has what we think
it has."""


class Crew:
    """Gives work to workers that come by a door; `run` may be called by several threads.

    `replace` is called with the Hello of a worker that hangs, to have it killed. Grows with the
    workers, and with the work that is asked for at a time.
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
        """Units that were done, or failed by themselves: what counts as progress."""
        self.came = 0
        """Workers that have come, each time they did."""
        self._door, self._secret = door, secret
        self._replace = replace
        self._hung_s = hung_s
        self._look_s = min(_LOOK_S, hung_s / 4)
        self._clock = schedule.current().clock
        self._looked = self._clock.now()
        self._alone_s = 0.0
        self.ready = Event()
        """Set when as many workers have come as there are to be, or none will."""
        self.at_work = Event()
        """Set while somebody waits for work of which some was given out."""
        self._ids = itertools.count()
        self._lock = Lock()
        """For what other threads leave: these, and whether the pipe is there to wake us by."""
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
        """The numbers of those, when work was given out last."""
        self._awake, self._wake = os.pipe()
        self._dispatching = schedule.current().start("tidegate-crew", self._dispatch, daemon=True)

    @property
    def present(self) -> int:
        """Workers that are there now; for who wants to know whether some are missing."""
        return len(self._workers)

    def run(self, tasks: Sequence[AskedTask], own: bool = False) -> list[Any]:
        """Have all tasks done, and give what they returned, in order; the first error is raised.

        With `own` each is done by the worker of its number, if that is there, even if others are
        idle. When it returns or raises, none of them is being done any more, unless its worker
        hangs or the crew was aborted. What a task raises is an error of ours or a RaisedError;
        DiedError says that its workers died.
        """
        futures = self.begin(tasks, own=own)
        schedule.wait(futures)
        self.at_work.clear()
        return [future.result() for future in futures]

    def begin(
        self, tasks: Sequence[AskedTask], later: bool = False, own: bool = False
    ) -> list[Future[Any]]:
        """Have all tasks done, those that may come `later` after all others that wait then."""
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
        """Send a message that is not answered to all workers that are there."""
        with self._lock:
            self._told.append(packed(message))
            self._rouse()

    def fail(self, failure: BaseException) -> None:
        """No worker will come any more: whoever waits, and whoever asks later, is told."""
        with self._lock:
            self._failure = self._failure or failure
            self.ready.set()
            self._rouse()

    def abort(self, failure: BaseException) -> None:
        """Break off all work: whoever waits is told at once, and who is at work is killed."""
        with self._lock:
            self._failure, self._aborted = self._failure or failure, True
            self.ready.set()
            self._rouse()

    def close(self) -> None:
        """Let all workers go; those that are at work are killed by themselves a moment later."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._failure = self._failure or _closed()
            self._rouse()
        self._dispatching.exception()

    def _rouse(self) -> None:
        """Wake the thread that dispatches; with the lock held."""
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
        """Somebody knocks; whether it is a worker is found beside, because that may take long."""
        try:
            knocking, _ = self._door.accept()
        except OSError as error:  # has gone again, or this process has too many files open
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
        """What was asked and who has come, since the last time."""
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
        """One message of a worker."""
        try:
            data = worker.channel.recv_bytes()
        except BlockingIOError:  # it stands still in the middle of what it says
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
        """A worker is gone; what it was at is to be done again."""
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
        """Get rid of workers that hang, and of work that nobody will do.

        Time counts only as far as it passed between two looks: neither is anybody to blame for a
        machine that slept, nor for a driver that did.
        """
        now = self._clock.now()
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
        """Say once that work waits and no worker is there."""
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
        """A unit for each idle worker: one of its own number, so that it finds what it has kept.

        Who has none of those takes another's, which is busy or not there.
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
        if awaited:  # not before all are given out: who reads ahead is not to be in their way
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
        except BlockingIOError:  # it takes nothing any more
            self._be_rid_of(worker)
        except OSError:
            self._lose(worker)

    def _let_go(self) -> None:
        """End all connections, and tell whoever still waits."""
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
