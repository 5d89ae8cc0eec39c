"""A server's address for others, in front of the real one: slow, cut off, or as if it were not."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress


class Wire:
    """Forwards the connections that come to its port; `delay_s` may change at any time."""

    def __init__(self, host: str) -> None:
        self._listener = socket.create_server((host, 0))
        self.address = f"{host}:{self._listener.getsockname()[1]}"
        self.delay_s = 0.0
        self._server = ("", 0)
        self._open = True
        self._ends: set[socket.socket] = set()

    def forward(self, server: str) -> None:
        """Begin to forward to an address, host:port."""
        host, _, port = server.rpartition(":")
        self._server = (host, int(port))
        threading.Thread(target=self._accept, daemon=True).start()

    def door(self, is_open: bool) -> None:
        self._open = is_open
        if not is_open:
            for end in list(self._ends):
                _cut(end)

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        with client:
            if not self._open:
                return
            try:
                server = socket.create_connection(self._server, 10)
            except OSError:  # it is down, and so is the wire
                return
            server.settimeout(None)
            with server:
                both = {client, server}
                self._ends |= both
                back = threading.Thread(target=self._pump, args=(server, client), daemon=True)
                back.start()
                self._pump(client, server)
                back.join()
                self._ends -= both

    def _pump(self, source: socket.socket, drain: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if self.delay_s:
                    time.sleep(self.delay_s)
                drain.sendall(data)
        for end in (source, drain):
            _cut(end)


def _cut(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
