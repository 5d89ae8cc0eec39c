"""Connections over TCP, for workers on other hosts: the same proof, and no waiting for more."""

from __future__ import annotations

import os
import socket
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import AuthenticationError

import pytest

from tidegate.execute.resident.channel import Channel, admit, come, door_on

HOST = "127.0.0.1"


def met(secret: bytes, known: bytes) -> tuple[Channel, Channel]:
    """Both ends of a connection, the driver's first."""
    with door_on(HOST, 0) as door, ThreadPoolExecutor(1) as beside:
        coming = beside.submit(come, (HOST, door.getsockname()[1]), known)
        door.settimeout(60)
        knocking, _ = door.accept()
        return admit(knocking, secret, 60), coming.result()


def test_messages_over_tcp_are_sent_at_once() -> None:
    driver, worker = met(b"secret", b"secret")
    with driver, worker:
        for end, other in ((driver, worker), (worker, driver)):
            end.send_bytes(b"message")
            assert other.recv_bytes() == b"message"
            with socket.socket(fileno=os.dup(end.fileno())) as same:
                assert same.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
                assert same.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


def test_who_does_not_know_the_secret_does_not_come_in_over_tcp() -> None:
    with pytest.raises(AuthenticationError):
        met(b"secret", b"another")


def test_a_port_that_is_taken_is_an_error() -> None:
    with door_on(HOST, 0) as door, pytest.raises(OSError, match="in use"):
        door_on(HOST, door.getsockname()[1]).listen()
