"""A worker of a crew: takes requests from the driver and answers them, until it is let go.

It runs inside a task of Spark, which has made the process and starts it again if it dies. When the
driver goes, the connection ends, and so does the task: nothing is left behind.
"""

from __future__ import annotations

import os
import pickle
import socket
import threading
from multiprocessing.connection import Client, Connection
from typing import Any

from tidegate.errors import TidegateError
from tidegate.execute.resident.message import BEAT, Answer, Hello, Request, packed, unpacked
from tidegate.execute.work import keep_sent

BEAT_S = 1.0
"""How often a worker says that it is there."""


def serve(address: Any, secret: bytes, number: int, attempt: int, beat_s: float = BEAT_S) -> None:
    """Answer requests until the driver ends the connection, or is gone."""
    try:
        connection: Connection[bytes, bytes] = Client(address, authkey=secret)
    except (OSError, EOFError):
        return  # the driver has gone, or let this crew go, before the task began
    lock, ended = threading.Lock(), threading.Event()

    def say(data: bytes) -> None:
        with lock:
            connection.send_bytes(data)

    def beat() -> None:
        while not ended.wait(beat_s):
            try:
                say(BEAT)
            except OSError:
                return

    try:
        say(packed(Hello(number, os.getpid(), attempt, socket.gethostname())))
        threading.Thread(target=beat, name="tidegate-beat", daemon=True).start()
        while True:
            request: Request = unpacked(connection.recv_bytes())
            say(_answered(request))
    except (EOFError, OSError):
        return
    finally:
        ended.set()
        connection.close()


def _answered(request: Request) -> bytes:
    for key, data in request.data.items():
        keep_sent(key, data)
    try:
        return packed(Answer(request.unit, request.task(request.work, request.number)))
    except Exception as error:
        return packed(Answer(request.unit, error=_sendable(error)))


def _sendable(error: Exception) -> BaseException:
    """An error as it is where it survives the way, else one that says the same."""
    if isinstance(error, TidegateError | MemoryError):
        return error
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
