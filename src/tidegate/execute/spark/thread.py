"""Silences PySpark's own threads when the JVM is gone, and ends them before Python ends.

Every context has two daemon threads. One takes the values of accumulators from the JVM; the other,
of Py4J, tells the JVM which of its objects are no longer needed. When the JVM dies, both print
stacks. `tidegate.execute.shutdown` says what that does to a program that is ending.
"""

from __future__ import annotations

import logging
import socket
import struct
import sys
import threading
from contextlib import suppress
from typing import Any
from weakref import WeakSet

from py4j import clientserver
from py4j.clientserver import SHUTDOWN_FINALIZER_WORKER, FinalizerWorker
from pyspark import SparkContext

from tidegate.execute.shutdown import clean_at_end
from tidegate.execute.spark.failure import hide_stacks

_log = logging.getLogger(__name__)

# Py4J's thread sleeps between two looks for work; its own second is long to wait for at the end.
clientserver.DEFAULT_WORKER_SLEEP_TIME = 0.1

_PATIENCE_S = 2.0
"""How long it may take to end: it waits for an answer if the JVM is there but stands still."""

_BROKEN_OFF = (EOFError, OSError, struct.error)
"""What reading from a JVM that is gone comes to: between two updates, or inside one."""

_servers: WeakSet[Any] = WeakSet()
"""The servers that were taken charge of; grows with Spark contexts."""


def take_charge(context: SparkContext) -> None:
    """Keep the threads of a context quiet, and end them with the program; once more does nothing.

    Called for every context that tasks run on, also for one that the program brought.
    """
    server = context._accumulatorServer
    if server is None or server in _servers:
        return
    _servers.add(server)
    logging.getLogger().addFilter(_not_of_finalizer)
    clean_at_end(_end_threads, UpdateServer(server))


class UpdateServer:
    """PySpark's server of accumulator updates, without its stacks, and with an end that is quick.

    It serves one connection at a time, the JVM's, for as long as that is open. By itself it looks
    once a second whether it is to end, or every half a second while there is no connection. One
    that was open before `take_charge` is not known here, and costs that second.
    """

    def __init__(self, server: Any) -> None:
        self._server = server
        self._serve = server.finish_request
        self._connection: socket.socket | None = None
        self._ending = False
        self._threads = [
            t for t in threading.enumerate() if getattr(t, "_target", None) == server.serve_forever
        ]
        server.finish_request = self._finish_request
        server.handle_error = self._handle_error

    def stop(self) -> None:
        """End the server and its thread; once more does nothing."""
        self._ending = True
        connection = self._connection
        with suppress(OSError):  # what is closed already needs no waking
            with socket.socket(self._server.address_family) as knock:
                knock.connect(self._server.server_address)
            if connection is not None:
                connection.shutdown(socket.SHUT_RDWR)
        self._server.shutdown()
        for thread in self._threads:
            thread.join()

    def _finish_request(self, request: socket.socket, address: Any) -> None:
        if self._ending:
            return
        self._connection = request
        try:
            self._serve(request, address)
        finally:
            self._connection = None

    def _handle_error(self, request: socket.socket, address: Any) -> None:
        """Say nothing of a lost connection: the query it was lost to does, in one line."""
        if isinstance(sys.exception(), _BROKEN_OFF):
            _log.debug("the JVM has closed the connection for accumulators", exc_info=True)
        else:
            type(self._server).handle_error(self._server, request, address)


def _not_of_finalizer(record: logging.LogRecord) -> bool:
    """Keep Py4J's thread from logging that a JVM which is gone does not forget an object."""
    return not isinstance(threading.current_thread(), FinalizerWorker)


def _end_threads(updates: UpdateServer) -> None:
    hide_stacks()
    workers = [t for t in threading.enumerate() if isinstance(t, FinalizerWorker)]
    for worker in workers:
        worker.deque.append(SHUTDOWN_FINALIZER_WORKER)  # the end that it takes from
    updates.stop()
    for worker in workers:
        worker.join(_PATIENCE_S)
