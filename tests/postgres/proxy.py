"""A wire between a client and the server that a test can cut around the COMMIT of a batch."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Literal

Cut = Literal["before", "after"]


class Held:
    """A COMMIT that is stopped on its way, or whose answer is, until a test lets it go."""

    def __init__(self, cut: Cut, after: int) -> None:
        self.cut, self.after = cut, after
        self.reached = threading.Event()
        self.let_go = threading.Event()


class Proxy:
    """Forwards connections; each of `cuts` ends one, before a COMMIT comes through or after it.

    After it, the server has answered, and the client never hears so.
    """

    def __init__(self, port: int, cuts: list[Cut], word: bytes = b"COMMIT\0") -> None:
        self._server, self._word = ("127.0.0.1", port), word
        self.cuts = cuts
        self._held: Held | None = None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def hold(self, cut: Cut, after: int) -> Held:
        """Hold a COMMIT, after so many that come through."""
        self._held = Held(cut, after)
        return self._held

    def close(self) -> None:
        self._listener.close()

    def _stopped(self, data: bytes, server: socket.socket) -> bool:
        """Whether a COMMIT was held that must not come through."""
        held = self._held
        if held is None or self._word not in data:
            return False
        held.after -= 1
        if held.after >= 0:
            return False
        self._held = None
        if held.cut == "after":
            server.sendall(data)
            _closed_when_answered(server)
        held.reached.set()
        held.let_go.wait(60)
        return True

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._forward, args=(client,), daemon=True).start()

    def _forward(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._server) as server:
            answers = threading.Thread(target=_pump, args=(server, client), daemon=True)
            answers.start()
            with suppress(OSError):
                while data := client.recv(1 << 16):
                    if self._stopped(data, server):
                        break
                    cut = self.cuts.pop(0) if self._word in data and self.cuts else None
                    if cut == "before":
                        break
                    if cut == "after":
                        client.shutdown(socket.SHUT_WR)
                        server.sendall(data)
                        _closed_when_answered(server)
                        break
                    server.sendall(data)
            for end in (server, client):
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)


def _pump(server: socket.socket, client: socket.socket) -> None:
    with suppress(OSError):
        while data := server.recv(1 << 16):
            client.sendall(data)


def _closed_when_answered(server: socket.socket) -> None:
    """Say goodbye after the COMMIT: the server closes when it has done both."""
    server.sendall(b"X\0\0\0\4")
    server.shutdown(socket.SHUT_WR)
    with suppress(OSError):
        server.settimeout(60)
        while server.recv(1 << 16):
            pass
