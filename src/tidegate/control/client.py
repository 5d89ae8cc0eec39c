"""Sends a command to a query in another process, over its control socket (`tidegate ctl`).

Reports that a query has ended only when nobody listens at its socket any more.
"""

from __future__ import annotations

import os
import pwd
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from tidegate import schedule
from tidegate.control.address import ControlAddress, read_record, record_path
from tidegate.control.message import MOST_ASKED_BYTES, encoded, receive
from tidegate.errors import CheckpointError, OptionError, RunError, StateError, TidegateError
from tidegate.state.store import Store

_PATIENCE_S = 60.0
"""How long to wait for an answer. A running batch does not delay it, but a swapping machine may."""

_REFUSED_S = 2.0
"""How long a living process may refuse connections: some systems refuse when the queue is full."""

_AGAIN_S = 0.02

_REQUIREMENT = "must be the checkpoint of a query that runs"
_MUST_ANSWER = "the query must answer"


def ask(location: str, question: Mapping[str, Any]) -> Any:
    """The answer of the query that runs on a checkpoint; an error in the answer is raised here.

    Raises CheckpointError if no query runs, or none that this user can reach from this host.
    """
    sent = encoded(question)
    if len(sent) > MOST_ASKED_BYTES:
        requirement = f"a request must have at most {MOST_ASKED_BYTES:,} bytes"
        raise OptionError("ctl", requirement, f"{len(sent):,}", "Ask for less at a time.")
    store = Store.open(location)
    address, connection = _reached(store)
    try:
        with connection:
            with suppress(BrokenPipeError):  # if the query stops reading, its answer says why
                connection.sendall(sent)
            answer = receive(connection)
    except TimeoutError as error:
        raise _silent(store, address) from error
    except (OSError, RunError) as error:
        if _listens(address):
            got = f"a connection that process {address.process} has ended"
            raise RunError(store.location, _MUST_ANSWER, got, "Try again.") from error
        raise _ended(store, address) from error
    if "error" in answer:
        raise TidegateError.from_dict(answer["error"])
    return answer.get("done")


def _reached(store: Store) -> tuple[ControlAddress, socket.socket]:
    """A connection to the query of a checkpoint; waits while the socket's queue is full."""
    clock = schedule.current().clock
    since = clock.now()
    while True:
        # Read again in every round: a restarted query has a new socket.
        address = _address(store)
        try:
            return address, _connected(address)
        except PermissionError as error:
            raise _of_another(store.location, address.user) from error
        except (BlockingIOError, TimeoutError) as error:  # its queue is full
            if clock.now() - since > _PATIENCE_S:
                raise _silent(store, address) from error
        except OSError as error:
            if not _lives(address.process):
                raise _ended(store, address) from error
            if clock.now() - since > _REFUSED_S:
                gone = isinstance(error, FileNotFoundError)
                raise (_removed if gone else _ended)(store, address) from error
        clock.sleep(_AGAIN_S)


def _connected(address: ControlAddress) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(_PATIENCE_S)
        connection.connect(address.socket)
    except BaseException:
        connection.close()
        raise
    return connection


def _listens(address: ControlAddress) -> bool:
    """Whether somebody still listens at a socket after a connection to it was closed."""
    try:
        _connected(address).close()
    except (BlockingIOError, TimeoutError):
        return True
    except OSError:
        return False
    return True


def _lives(process: int) -> bool:
    """Whether a process with this id exists; it may be a different process by now."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def _silent(store: Store, address: ControlAddress) -> RunError:
    got = f"nothing in {_PATIENCE_S:.0f} s from process {address.process}"
    return RunError(store.location, _MUST_ANSWER, got, "Try again.")


def _address(store: Store) -> ControlAddress:
    """The address of a checkpoint's query; raises if this user or this host cannot reach it."""
    path = record_path(store)
    try:
        address = None if path is None else read_record(path, store)
    except PermissionError as error:
        raise _of_another(store.location, os.stat(store.files.root).st_uid) from error
    if address is None:
        raise _not_running(store)
    if not address.is_here:
        raise CheckpointError(
            store.location,
            "must be the checkpoint of a query on this host",
            f"one of process {address.process} on {address.host}",
            f"Run `tidegate ctl` on {address.host}.",
        )
    if address.user != os.geteuid() and os.geteuid() != 0:
        raise _of_another(store.location, address.user)
    return address


def _not_running(store: Store) -> CheckpointError:
    if not store.files.local:
        return CheckpointError(
            store.location,
            _REQUIREMENT,
            "one that no query of this user on this host has",
            "`tidegate ctl` works on the host of the driver, as the user who runs it.",
        )
    if store.meta() is None:
        return CheckpointError(
            store.location,
            "must be a Tidegate checkpoint",
            "a folder without meta.json" if store.files.is_folder() else "no such folder",
            "Give the folder that a run had as --checkpoint.",
        )
    return CheckpointError(store.location, _REQUIREMENT, *_state(store, "has ended"))


def _ended(store: Store, address: ControlAddress) -> CheckpointError:
    """The error for a run that left its address behind: it was killed, or is just ending."""
    said = f"has ended (process {address.process}, without a word)"
    return CheckpointError(store.location, _REQUIREMENT, *_state(store, said))


def _removed(store: Store, address: ControlAddress) -> CheckpointError:
    """The error for a run whose socket is gone although a process with its id exists."""
    return CheckpointError(
        store.location,
        _REQUIREMENT,
        f"one without its socket {address.socket}, and a process {address.process}",
        "If that process is the query, its socket was removed: end it by a signal and start it "
        "again. If it is not, the query has ended.",
    )


def _state(store: Store, ended: str) -> tuple[str, str]:
    """What became of a query that does not run, and what to do about it."""
    try:
        newest = store.latest() if store.files.local else None
    except StateError:  # of no interest here; a restart reports it
        newest = None
    if newest is not None and newest.finished:
        return "one whose query has finished", "There is nothing left to change."
    return f"one whose query {ended}", "Start it again with the same command, which continues it."


def _of_another(location: str, user: int) -> CheckpointError:
    name = _user_name(user)
    return CheckpointError(
        location,
        "must be the checkpoint of a query of this user",
        f"one of user {name}",
        f"Run `tidegate ctl` as {name}.",
    )


def _user_name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)
