"""Opens the control socket of a loop, for `tidegate ctl`."""

from __future__ import annotations

import logging
from contextlib import suppress
from functools import partial

from tidegate.control.address import (
    read_record,
    record_path,
    remove_left,
    remove_record,
    write_record,
)
from tidegate.control.command import answer
from tidegate.control.server import ControlServer
from tidegate.driver.loop import Loop

_log = logging.getLogger(__name__)


def reachable(loop: Loop) -> Loop:
    """Give a loop a control socket while it runs, and return the loop.

    `tidegate ctl` finds the socket by the checkpoint, so the loop needs one that the user named. If
    the socket cannot be opened, the query runs without it.
    """
    path = record_path(loop.store)
    if path is not None:
        loop.on_run(partial(_listen, loop, path))
    return loop


def _listen(loop: Loop, path: str) -> None:
    try:
        left = read_record(path, loop.store)
        if left is not None:
            remove_left(left)
        server = ControlServer(partial(answer, loop))
    except OSError as error:
        _unreachable(loop, error)
        return
    address = server.address.of(loop.store)
    try:
        write_record(path, address)
    except OSError as error:
        server.close()
        _unreachable(loop, error)
        return

    def end() -> None:
        with suppress(OSError):  # a file that is left is known by the process in it
            remove_record(path, loop.store, address)
        server.close()

    loop.on_close(end)
    server.start()


def _unreachable(loop: Loop, error: OSError) -> None:
    _log.warning(
        "%s: `tidegate ctl` cannot reach this run; got %s. The query goes on.",
        loop.store.location,
        error,
    )
