"""Connections between a driver and its workers: how they are made, proved and kept from hanging.

They are those of `multiprocessing.connection`: framed messages, and a secret that both sides prove
to have before the first one; over Unix sockets in a folder of the user's own.
"""

from __future__ import annotations

import socket
import struct
from multiprocessing.connection import Client, Connection, answer_challenge, deliver_challenge
from typing import TypeAlias

Channel: TypeAlias = "Connection[bytes, bytes]"

BACKLOG = 128
"""How many may knock at a time; workers come all at once."""


def door_at(path: str) -> socket.socket:
    """A socket that workers of this host come by."""
    door = socket.socket(socket.AF_UNIX)
    door.bind(path)
    door.listen(BACKLOG)
    door.setblocking(False)
    return door


def come(address: str, secret: bytes) -> Channel:
    """Connect to the driver and prove the secret; in a worker."""
    channel: Channel = Client(address, authkey=secret)
    return channel


def admit(knocking: socket.socket, secret: bytes, patience_s: float) -> Channel:
    """Let somebody in who knows the secret; in the driver.

    Whoever else it is gets an error here: AuthenticationError, AssertionError, EOFError or OSError.
    From now on no read or write that has begun takes longer than `patience_s`.
    """
    knocking.setblocking(True)
    whole = int(patience_s)
    limit = struct.pack("ll", whole, int((patience_s - whole) * 1e6))
    for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        knocking.setsockopt(socket.SOL_SOCKET, option, limit)
    channel: Channel = Connection(knocking.detach())
    try:
        deliver_challenge(channel, secret)
        answer_challenge(channel, secret)
    except BaseException:
        channel.close()
        raise
    return channel
