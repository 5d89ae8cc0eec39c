"""Keeps the parcels of a worker's map tasks until instances have fetched them.

Workers that share a local checkpoint on one host use its folder (`execute.exchange`). Any other
worker has a depot: a folder of its own, and between hosts a socket (its door) through which other
workers fetch parcels. Nothing here counts for recovery: if parcels are lost, the map tasks of the
batch run again.
"""

from __future__ import annotations

import errno
import hashlib
import os
import socket
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from tidegate import schedule
from tidegate.errors import LostParcelsError, OptionError
from tidegate.execute.exchange import Shipment, make_folder, receive, write_parcels
from tidegate.execute.job import Job, Parcel
from tidegate.execute.resident.channel import door_on
from tidegate.execute.resident.parcel_door import ParcelDoor
from tidegate.execute.resident.parcel_fetch import Door, ParcelFetch
from tidegate.state.segment.nearby import executor_folder
from tidegate.storage import disk

PORT = "spark.tidegate.executor.port"
"""Spark's property for the port at which workers give parcels to each other."""

_FOLDER = "tidegate-parcels"
_LOCAL_IP = "SPARK_LOCAL_IP"
"""The environment variable that says to which of a host's addresses Spark binds."""


@dataclass(frozen=True)
class DepotPlan:
    """The settings of the depots of a crew's workers.

    `distant` workers listen at `port`, or at one of the `more` ports after it; 0 means any free
    port. With `shares_disk` a worker reads files of other workers on its own host directly.
    """

    distant: bool = False
    port: int = 0
    more: int = 0
    shares_disk: bool = True


_ANY_ADDRESS = ("0.0.0.0", "::")


class Depot:
    """The parcels of one worker; grows with those of unfinished batches.

    `host` is the address at which other workers reach this one. The thread that serves requests
    and the threads of the door use it.
    """

    def __init__(self, plan: DepotPlan, secret: bytes, number: int, host: str) -> None:
        self._shares_disk = plan.shares_disk or not plan.distant
        self._shipped: dict[str, str] = {}
        """The path of each file, by the name under which others ask for it."""
        self._door: ParcelDoor | None = None
        self.address: tuple[str, int] | None = None
        if plan.distant:
            opened = _opened(os.environ.get(_LOCAL_IP) or host, plan)
            self._door = ParcelDoor(opened, secret, self._shipped.get)
            at, port = self._door.address
            # A socket that listens on all addresses says 0.0.0.0, where nobody can reach it.
            self.address = (host if at in _ANY_ADDRESS else at, port)
        self._folder = _own_folder(secret, number)
        self._fetch = ParcelFetch(secret, self._folder)

    def ship(self, job: Job, task: str, parcels: Sequence[Parcel]) -> Shipment:
        """Write a task's parcels into a file, and return where it is."""
        folder = os.path.join(self._folder, job.name)
        make_folder(folder)
        name = f"{task}-{schedule.current().token()}"
        shipment = write_parcels(os.path.join(folder, name), parcels)
        self._shipped[name] = shipment.path
        return replace(shipment, door=self.address)

    def receive(self, shipments: Sequence[Shipment], instance: int) -> list[Parcel]:
        """The parcels of an instance: files on this host are mapped, others are fetched.

        Raises a LostParcelsError if they are gone; the map tasks then have to run again.
        """
        far: defaultdict[Door, list[Shipment]] = defaultdict(list)
        near = []
        for shipment in shipments:
            door = shipment.door
            if door is None or door == self.address or self._on_disk(shipment):
                near.append(shipment)
            else:
                far[door].append(shipment)
        try:
            found = receive(near, instance)
        except FileNotFoundError as error:
            raise LostParcelsError("parcels", "must be on this host", "none there") from error
        if not far:
            return found
        # Each worker begins with the door after its own, in a circle. Otherwise all workers would
        # ask the first door at once, then all the second, and so on.
        after = sorted(far, key=lambda door: (door <= (self.address or door), door))
        return found + self._fetch.fetch({door: far[door] for door in after}, instance)

    def drop(self, jobs: Sequence[str]) -> None:
        """Delete the parcels of finished jobs; mapped files stay readable until unmapped."""
        for job in jobs:
            folder = os.path.join(self._folder, job)
            for name, path in list(self._shipped.items()):
                if os.path.dirname(path) == folder:
                    del self._shipped[name]
            with suppress(FileNotFoundError):  # where the job had no map task here
                disk.remove_tree(folder)

    def close(self) -> None:
        if self._door is not None:
            self._door.close()
        self._fetch.close()
        with suppress(OSError):
            disk.remove_tree(self._folder)

    def _on_disk(self, shipment: Shipment) -> bool:
        """Whether another worker's file is readable here; its name is unique across hosts."""
        return self._shares_disk and disk.exists(shipment.path)


_installed: list[Depot] = []
"""The depot of this process, if it has one."""


def current() -> Depot | None:
    """The depot of this process; None if its tasks share the folder of the checkpoint."""
    return _installed[-1] if _installed else None


@contextmanager
def using(depot: Depot) -> Iterator[None]:
    """Install a depot for the tasks of this process; closes it when the block ends."""
    _installed.append(depot)
    try:
        yield
    finally:
        _installed.remove(depot)
        depot.close()


def _own_folder(secret: bytes, number: int) -> str:
    """A folder for one worker on its executor's disk; deletes what its predecessors left."""
    above = os.path.join(executor_folder() or tempfile.gettempdir(), _FOLDER)
    mine = f"{hashlib.sha256(secret).hexdigest()[:16]}-{number}-"
    make_folder(above)
    for name in disk.current().names(above):
        if name.startswith(mine):
            with suppress(OSError):  # the ending worker may delete the same folder
                disk.remove_tree(os.path.join(above, name))
    folder = os.path.join(above, f"{mine}{os.getpid()}")
    make_folder(folder)
    return folder


def _opened(host: str, plan: DepotPlan) -> socket.socket:
    """A listening socket at the first free port of the plan."""
    for port in range(plan.port, plan.port + (plan.more if plan.port else 0) + 1):
        try:
            return door_on(host, port)
        except (OSError, OverflowError) as error:
            taken = getattr(error, "errno", None) == errno.EADDRINUSE
            if taken and port < plan.port + plan.more:
                continue
            raise OptionError(
                "--conf",
                f"{PORT} must be a port that executors can open",
                f"{port} on {host} ({getattr(error, 'strerror', None) or error})",
                "Choose another, or raise spark.port.maxRetries; 0 is any that is free.",
            ) from error
    raise AssertionError("unreachable")
