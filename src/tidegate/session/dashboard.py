"""Gives queries of this process a page: one server for each address, which all of them share."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from tidegate.driver.loop import Loop
from tidegate.errors import OptionError
from tidegate.session.notebook import in_notebook

if TYPE_CHECKING:  # only who asks for a page imports a server of HTTP
    from tidegate.dashboard.address import DashboardAddress
    from tidegate.dashboard.server import DashboardServer

WHERE = "dashboard"


class PageServers:
    """Servers by the address that was asked for, and the token that changes need.

    They last as long as the process, for those who look at a query that has ended. Grows with the
    addresses; any thread may ask.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._servers: dict[tuple[DashboardAddress, str], DashboardServer] = {}

    def open(self, asked: bool | int | str, where: str) -> DashboardServer:
        """The server at a port, at HOST:PORT or, for True, at any port."""
        from tidegate.dashboard.address import DashboardAddress
        from tidegate.dashboard.guard import user_token
        from tidegate.dashboard.server import DashboardServer

        if not isinstance(asked, bool | int | str):
            raise OptionError(where, "must be a port, HOST:PORT or True", type(asked).__name__)
        address = DashboardAddress.parse(0 if asked is True else asked, where)
        token = user_token()[0]
        with self._lock:
            if (address, token) not in self._servers:
                self._servers[address, token] = DashboardServer(address, token, where)
            return self._servers[address, token]

    def leave(self, server: DashboardServer) -> None:
        """Close a server that shows no query, because the first could not be made."""
        with self._lock:
            if not server.dashboard.queries:
                self._servers = {k: one for k, one in self._servers.items() if one is not server}
                server.close()


_OF_PROCESS = PageServers()


class ServedPage:
    """A page that was asked for before a query is made; without one nothing is served."""

    def __init__(
        self,
        asked: bool | int | str | None,
        where: str = WHERE,
        servers: PageServers = _OF_PROCESS,
    ) -> None:
        asked = in_notebook() if asked is None else asked
        self._servers = servers
        self._server = None if asked is False else servers.open(asked, where)

    def show(self, loop: Loop, title: str) -> str | None:
        """Show a query that is about to begin, and say where."""
        if self._server is None:
            return None
        from tidegate.dashboard.loop_query import LoopQuery

        self._server.add(LoopQuery(loop, title))
        return self._server.address.url

    def __enter__(self) -> ServedPage:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._server is not None:
            self._servers.leave(self._server)
