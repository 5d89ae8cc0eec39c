"""Connects a driver and its workers: checks who they are, and limits every read and write in time.

A channel is a connection of `multiprocessing.connection`: framed messages, and a secret that both
sides prove before the first message. On one host it is a Unix socket in a folder that only the user
can open; between hosts it is TCP.
"""

from __future__ import annotations

import os
import socket
import struct
from multiprocessing.connection import Client, Connection, answer_challenge, deliver_challenge
from typing import TypeAlias

Channel: TypeAlias = "Connection[bytes, bytes]"

Address: TypeAlias = str | tuple[str, int]
"""Where a driver listens: the path of a Unix socket, or a host and a port."""

BACKLOG = 128
"""The length of the listen queue; all workers connect at once."""


_CONNECT_S = 10.0
"""How long another host may take to accept a connection."""

_KEEPALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
"""The system notices a host that vanished after 10 + 3 * 5 = 25 seconds."""


def door_at(path: str) -> socket.socket:
    """A listening socket for workers of this host."""
    door = socket.socket(socket.AF_UNIX)
    door.bind(path)
    return _opened(door)


def door_on(host: str, port: int) -> socket.socket:
    """A listening socket for workers of other hosts; port 0 means any free port."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    door = socket.socket(family, kind, protocol)
    try:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind(address)
    except OSError:
        door.close()
        raise
    return _opened(door)


def _opened(door: socket.socket) -> socket.socket:
    door.listen(BACKLOG)
    door.setblocking(False)
    return door


def come(address: Address, secret: bytes) -> Channel:
    """Connect to the driver and prove the secret; called in a worker."""
    channel: Channel = Client(address, authkey=secret)
    with socket.socket(fileno=os.dup(channel.fileno())) as end:
        _keep_quick(end)
    return channel


def own_host(channel: Channel) -> str:
    """This host's own address of a TCP connection; empty for a Unix socket."""
    with socket.socket(fileno=os.dup(channel.fileno())) as end:
        return "" if end.family == socket.AF_UNIX else str(end.getsockname()[0])


def visit(address: tuple[str, int], secret: bytes, patience_s: float) -> Channel:
    """Connect to another worker; both sides prove the secret.

    Raises the errors of `admit`. Connecting takes at most some seconds, and no later read or write
    takes longer than `patience_s`.
    """
    end = socket.create_connection(address, min(patience_s, _CONNECT_S))
    channel = _patient(end, patience_s)
    try:
        answer_challenge(channel, secret)
        deliver_challenge(channel, secret)
    except BaseException:
        channel.close()
        raise
    return channel


def _keep_quick(end: socket.socket) -> None:
    """Over TCP: send without delay, and notice when the other host is gone."""
    if end.family == socket.AF_UNIX:
        return
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if hasattr(socket, name):  # not on every system
            end.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def admit(knocking: socket.socket, secret: bytes, patience_s: float) -> Channel:
    """Check that the other side of an accepted connection knows the secret; called in the driver.

    Raises an AuthenticationError, AssertionError, EOFError or OSError if it does not. From then on
    no read or write takes longer than `patience_s`.
    """
    channel = _patient(knocking, patience_s)
    try:
        deliver_challenge(channel, secret)
        answer_challenge(channel, secret)
    except BaseException:
        channel.close()
        raise
    return channel


def _patient(end: socket.socket, patience_s: float) -> Channel:
    """A socket as a channel of which no read or write takes longer than `patience_s`."""
    end.setblocking(True)
    _keep_quick(end)
    whole = int(patience_s)
    limit = struct.pack("ll", whole, int((patience_s - whole) * 1e6))
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        end.setsockopt(socket.SOL_SOCKET, option, limit)
    return Connection(end.detach())
