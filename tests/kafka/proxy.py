"""Stands between clients and a broker, and loses, holds or cuts off what it is told to.

A client that is given the address of the proxy stays with it: where answers name the broker's port
they are made to name that of the proxy, which has as many bytes.
"""

from __future__ import annotations

import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from socket import socket as Socket
from threading import Event, Lock, Thread

HOST = "127.0.0.1"
PRODUCE, ADD_PARTITIONS, ADD_OFFSETS, END, OFFSET_COMMIT, INIT = 0, 24, 25, 26, 28, 22
"""Kinds of requests, by the numbers of the protocol."""


class Pass:
    """What is done with a request: it goes on, and so does its answer."""

    def asked(self) -> bool:
        """Whether the request goes on; called when it comes."""
        return True

    def answered(self) -> bool:
        """Whether the answer goes on; if not, the connection is cut."""
        return True


class LostRequest(Pass):
    """It never arrives: the connection is cut before."""

    def asked(self) -> bool:
        return False


class LostAnswer(Pass):
    """It is done, and nobody is told: the connection is cut before the answer."""

    def answered(self) -> bool:
        return False


class Call(Pass):
    """Something happens when it comes, or when it is done and the answer is on its way."""

    def __init__(self, function: Callable[[], None], done: bool = False) -> None:
        self._function = function
        self._done = done

    def asked(self) -> bool:
        if not self._done:
            self._function()
        return True

    def answered(self) -> bool:
        if self._done:
            self._function()
        return True


class Gone(Pass):
    """It is done, nobody is told, and for a while nobody can connect to ask."""

    def __init__(self, proxy: Proxy, seconds: float) -> None:
        self._proxy = proxy
        self._seconds = seconds

    def answered(self) -> bool:
        self._proxy.cut_off(self._seconds)
        return False


class Hold(Pass):
    """It waits before it goes on until it is let go."""

    def __init__(self) -> None:
        self.came, self.let_go = Event(), Event()

    def asked(self) -> bool:
        self.came.set()
        assert self.let_go.wait(60), "what is held must be let go"
        return True


class Proxy:
    """Each request of a kind is counted, and the n-th one of it can be given a fate."""

    def __init__(self, port: int) -> None:
        self._broker = struct.pack(">i", port)
        self._upstream = port
        self._listener = socket.create_server((HOST, 0))
        self.port = self._listener.getsockname()[1]
        self.count: Counter[int] = Counter()
        self.fates: dict[tuple[int, int], Pass] = {}
        self._lock = Lock()
        self._open: list[socket.socket] = []
        self._cut_off_until = 0.0
        Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    def plan(self, kind: int, fate: Pass, after: int = 0) -> None:
        """Give a fate to the next request of a kind, or to one after it."""
        with self._lock:
            self.fates[kind, self.count[kind] + after] = fate

    def cut_off(self, seconds: float) -> None:
        """Cut all connections, and take none for so long."""
        self._cut_off_until = time.monotonic() + seconds
        for end in self._open:
            _cut(end)

    def close(self) -> None:
        self._listener.close()
        for end in self._open:
            _cut(end)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if time.monotonic() < self._cut_off_until:
                    client.close()
                    continue
                try:
                    broker = socket.create_connection((HOST, self._upstream))
                except OSError:  # it is down
                    client.close()
                    continue
                self._open += [client, broker]
                waiting: dict[int, Pass] = {}
                for work in (self._requests, self._answers):
                    Thread(target=work, args=(client, broker, waiting), daemon=True).start()

    def _requests(self, client: Socket, broker: Socket, waiting: dict[int, Pass]) -> None:
        with _cutting(client, broker):
            for frame in _frames(client):
                kind, _, number = struct.unpack(">hhi", frame[4:12])
                with self._lock:
                    fate = self.fates.pop((kind, self.count[kind]), Pass())
                    self.count[kind] += 1
                if not fate.asked():
                    return
                waiting[number] = fate
                broker.sendall(frame)

    def _answers(self, client: Socket, broker: Socket, waiting: dict[int, Pass]) -> None:
        ours, theirs = (HOST.encode() + p for p in (struct.pack(">i", self.port), self._broker))
        with _cutting(client, broker):
            for frame in _frames(broker):
                (number,) = struct.unpack(">i", frame[4:8])
                if not waiting.pop(number, Pass()).answered():
                    return
                client.sendall(frame.replace(theirs, ours))


def _frames(end: socket.socket) -> Iterator[bytes]:
    """Requests or answers, each with the four bytes that say how long it is."""
    stream = end.makefile("rb")
    while len(size := stream.read(4)) == 4:
        yield size + stream.read(struct.unpack(">i", size)[0])


def _cut(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


@contextmanager
def _cutting(*ends: socket.socket) -> Iterator[None]:
    """Both ends are cut when one direction is over, however that came."""
    try:
        with suppress(OSError):
            yield
    finally:
        for end in ends:
            _cut(end)


@contextmanager
def between(port: int) -> Iterator[Proxy]:
    """A proxy before the broker of a port, until the block is left."""
    made = Proxy(port)
    try:
        yield made
    finally:
        made.close()
