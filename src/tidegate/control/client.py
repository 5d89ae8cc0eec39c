"""Asking a query that runs in another process, between `tidegate ctl` and its control socket."""

from __future__ import annotations

import os
import pwd
import socket
from collections.abc import Mapping
from typing import Any

from tidegate.control.address import Address, read_record, record_path
from tidegate.control.message import receive, send
from tidegate.errors import CheckpointError, RunError, StateError, TidegateError
from tidegate.state.store import Store

_PATIENCE_S = 60.0
"""How long an answer may take: a batch that runs does not hold it up, a machine that swaps may."""

_REQUIREMENT = "must be the checkpoint of a query that runs"


def ask(location: str, question: Mapping[str, Any]) -> Any:
    """The answer of the query that runs on a checkpoint; what it refuses is raised here.

    A CheckpointError where none runs, or none that this user can reach from this host.
    """
    store = Store.open(location)
    address = _address(store)
    try:
        with _connected(address) as connection:
            send(connection, question)
            answer = receive(connection)
    except TimeoutError as error:
        got = f"nothing in {_PATIENCE_S:.0f} s from process {address.process}"
        raise RunError(store.location, "the query must answer", got, "Try again.") from error
    except PermissionError as error:
        raise _of_another(store.location, address.user) from error
    except (OSError, RunError) as error:
        raise _ended(store, address) from error
    if "error" in answer:
        raise TidegateError.from_dict(answer["error"])
    return answer.get("done")


def _connected(address: Address) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(_PATIENCE_S)
        connection.connect(address.socket)
    except BaseException:
        connection.close()
        raise
    return connection


def _address(store: Store) -> Address:
    """Where the query of a checkpoint listens, as far as this user may know."""
    path = record_path(store)
    try:
        address = None if path is None else read_record(path)
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


def _ended(store: Store, address: Address) -> CheckpointError:
    """A run that has left its address behind: it was killed, or is ending just now."""
    said = f"has ended (process {address.process}, without a word)"
    return CheckpointError(store.location, _REQUIREMENT, *_state(store, said))


def _state(store: Store, ended: str) -> tuple[str, str]:
    """What has become of a query that does not run, and what to do."""
    try:
        newest = store.latest() if store.files.local else None
    except StateError:  # of no interest here; a restart tells
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
