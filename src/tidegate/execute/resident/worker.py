"""A worker of a crew: takes requests from the driver and answers them until it is dismissed.

It runs inside a Spark task: Spark starts the process, and starts it again if it dies. When the
driver goes away, the connection ends, and the process ends too, even in the middle of a task. So no
orphan keeps writing to the checkpoint.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import traceback
from collections.abc import Callable
from contextlib import ExitStack, suppress
from threading import Lock

from tidegate import schedule
from tidegate.errors import TidegateError
from tidegate.execute.resident.channel import Address, Channel, come, own_host
from tidegate.execute.resident.depot import Depot, DepotPlan, using
from tidegate.execute.resident.message import (
    BEAT,
    BYE,
    Hello,
    RaisedError,
    TaskAnswer,
    TaskRequest,
    packed,
    unpacked,
)
from tidegate.execute.work import keep_sent

BEAT_S = 1.0
"""The time between two beats, by which the driver sees that a worker is alive."""

GRACE_S = 1.0
"""How long a task may still run after the driver is gone; then its process is killed."""

_GONE = getattr(select, "POLLRDHUP", 0)
"""The event "the other side has closed". Only Linux has it; elsewhere the next beat fails."""


def serve(
    address: Address,
    secret: bytes,
    number: int,
    attempt: int,
    beat_s: float = BEAT_S,
    depot: DepotPlan | None = None,
) -> None:
    """Answer requests until the driver says that there are no more.

    With a `depot` the worker keeps its parcels in its own folder; without, in the checkpoint's. A
    connection that breaks raises, so that Spark starts the task again and it connects anew.
    """
    try:
        channel = come(address, secret)
    except (ConnectionRefusedError, FileNotFoundError):
        return  # the driver is gone, or has let this crew go, before the task began
    gc.freeze()  # imported modules stay for good, so the collector need not scan them every time
    lock = Lock()

    def say(data: bytes) -> None:
        with lock:
            channel.send_bytes(data)

    with _Pulse(channel, lambda: say(BEAT), beat_s), ExitStack() as stack:
        own = None
        if depot is not None:
            own = Depot(depot, secret, number, own_host(channel))
            stack.enter_context(using(own))
        say(packed(Hello(number, os.getpid(), attempt, socket.gethostname())))
        while (data := channel.recv_bytes()) != BYE:
            request = unpacked(data)
            if isinstance(request, TaskRequest):
                answer = _answered(request)
                try:
                    say(answer)
                except OSError:
                    if _is_let_go(channel):
                        return
                    raise
            elif own is not None:
                own.drop(request.jobs)


def _is_let_go(channel: Channel) -> bool:
    """Whether the driver sent BYE and closed without waiting for an answer."""
    with suppress(OSError, EOFError):
        return bool(channel.poll()) and channel.recv_bytes() == BYE
    return False


class _Pulse:
    """Sends beats from a thread while a worker serves; kills the process if the driver is gone."""

    def __init__(self, channel: Channel, beat: Callable[[], None], beat_s: float) -> None:
        self._channel, self._beat, self._beat_s = channel, beat, beat_s

    def __enter__(self) -> None:
        self._over, self._end = os.pipe()
        self._beating = schedule.current().start("tidegate-beat", self._watch, daemon=True)

    def __exit__(self, *_: object) -> None:
        os.close(self._end)
        self._beating.exception()
        os.close(self._over)
        self._channel.close()

    def _watch(self) -> None:
        poll = select.poll()
        poll.register(self._over, select.POLLIN)
        poll.register(self._channel.fileno(), _GONE)
        while not (events := dict(poll.poll(self._beat_s * 1000))):
            try:
                self._beat()
            except OSError:
                break
        if self._over in events:
            return
        poll.unregister(self._channel.fileno())
        if not poll.poll(GRACE_S * 1000):  # the serving thread has not noticed: it is in a task
            os.kill(os.getpid(), signal.SIGKILL)


def _answered(request: TaskRequest) -> bytes:
    for key, data in request.data.items():
        keep_sent(key, data)
    try:
        return packed(TaskAnswer(request.unit, request.task(request.work, request.number)))
    except TidegateError as error:
        return packed(TaskAnswer(request.unit, error=error))
    except Exception as error:
        raised = RaisedError(_said(error), isinstance(error, MemoryError))
        return packed(TaskAnswer(request.unit, error=raised))


def _said(error: Exception) -> str:
    """The line of a printed traceback that names the exception."""
    lines = "".join(traceback.format_exception_only(error)).splitlines()
    return next((line for line in lines if line.strip() and not line[0].isspace()), "an exception")
