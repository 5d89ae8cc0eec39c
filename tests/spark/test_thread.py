"""PySpark's server of accumulator updates in our charge: what it says, and that it ends."""

from __future__ import annotations

import socket
import struct
import tempfile
import threading
from collections.abc import Iterator
from inspect import signature
from typing import Any

import pytest
from pyspark.accumulators import _start_update_server

from tidegate.execute.spark.thread import UpdateServer

KINDS = ["unix", "tcp"] if "socket_path" in signature(_start_update_server).parameters else ["tcp"]
"""Spark 4.0 knows no Unix sockets."""


@pytest.fixture(params=KINDS)
def server(request: pytest.FixtureRequest) -> Iterator[Any]:
    """As a context starts it; its connections need a token where they are not of Unix."""
    before = set(threading.enumerate())
    with tempfile.TemporaryDirectory() as folder:
        more = (request.param == "unix", f"{folder}/updates") if "unix" in KINDS else ()
        made = _start_update_server("token", *more)
        yield made
        assert set(threading.enumerate()) <= before, "its thread has ended"


def connected(server: Any) -> socket.socket:
    """A connection as the JVM's, after an update without values; the server has answered it."""
    client = socket.socket(server.address_family)
    client.connect(server.server_address)
    client.sendall((server.auth_token or "").encode() + struct.pack("!i", 0))
    assert client.recv(1) == b"\1"
    return client


def test_it_ends_at_once_where_a_connection_is_open(server: Any) -> None:
    updates = UpdateServer(server)
    with connected(server) as jvm:
        updates.stop()
        assert jvm.recv(1) == b""
    updates.stop()


def test_it_ends_where_there_is_no_connection(server: Any) -> None:
    UpdateServer(server).stop()


def test_it_ends_where_a_connection_was_open_before(server: Any) -> None:
    with connected(server):
        UpdateServer(server).stop()


@pytest.mark.parametrize("sent", [b"", b"\0\0", struct.pack("!ii", 1, 100) + b"half of it"])
def test_a_jvm_that_is_gone_is_nothing_to_print(
    server: Any, sent: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    updates = UpdateServer(server)
    with connected(server) as jvm:
        jvm.sendall(sent)
    connected(server).close()  # which is served after the one before
    updates.stop()
    assert capfd.readouterr().err == ""


def test_a_value_that_cannot_be_read_is_printed(
    server: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    updates = UpdateServer(server)
    with connected(server) as jvm:
        jvm.sendall(struct.pack("!ii", 1, 4) + b"odd!")
        assert jvm.recv(1) == b"", "the server has closed it"
    updates.stop()
    assert "UnpicklingError" in capfd.readouterr().err
