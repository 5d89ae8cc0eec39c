"""Gives queries of this process a page: one server for each address, which all of them share."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from tidegate import schedule
from tidegate.driver.loop import Loop
from tidegate.errors import OptionError

if TYPE_CHECKING:  # only who asks for a page imports a server of HTTP
    from tidegate.dashboard.server import DashboardServer

WHERE = "dashboard"

_lock = threading.Lock()
_servers: dict[tuple[str, int], DashboardServer] = {}
"""By the address that was asked for; they last as long as the process, for those who look at a
query that has ended."""


class ServedPage:
    """A page that was asked for before a query is made; without one nothing is served."""

    def __init__(self, asked: bool | int | str | None, where: str = WHERE) -> None:
        self._server = None
        asked = _in_notebook() if asked is None else asked
        if asked is not False:
            self._server = _opened(asked, where)

    def show(self, loop: Loop, title: str) -> str | None:
        """Show a query that is about to begin, and say where."""
        if self._server is None:
            return None
        from tidegate.dashboard.watched import LoopQuery

        self._server.add(LoopQuery(loop, title, schedule.current().clock))
        return self._server.address.url

    def __enter__(self) -> ServedPage:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Let go of a server that shows no query, because the first could not be made."""
        with _lock:
            if self._server is not None and not self._server.dashboard.queries:
                for address in [a for a, server in _servers.items() if server is self._server]:
                    del _servers[address]
                self._server.close()


def _opened(asked: bool | int | str, where: str) -> DashboardServer:
    from tidegate.dashboard.address import DashboardAddress
    from tidegate.dashboard.guard import user_token
    from tidegate.dashboard.server import DashboardServer

    if not isinstance(asked, bool | int | str):
        raise OptionError(where, "must be a port, HOST:PORT or True", type(asked).__name__)
    address = DashboardAddress.parse(0 if asked is True else asked, where)
    with _lock:
        server = _servers.get((address.host, address.port))
        if server is None:
            server = DashboardServer(address, user_token()[0], where)
            _servers[address.host, address.port] = server
    return server


def _in_notebook() -> bool:
    """Whether a kernel of Jupyter runs this."""
    shell = sys.modules.get("IPython")
    found = None if shell is None else shell.get_ipython()
    return found is not None and "IPKernelApp" in found.config
