"""A simulated disk on which one folder is of the system: there libraries write logs of tables.

What the package itself does in that folder is a call like others, by the name of the operation.
"""

from __future__ import annotations

import errno
import os
from typing import Any, NoReturn

from tests.simulation.connector.boundary import Boundary
from tidegate.storage.disk import SystemDisk
from tidegate.testing.simulation.disk import SimDisk
from tidegate.testing.simulation.schedule import SimSchedule

OPERATIONS = (
    "status names walk matching open open_arrow map create sync sync_file sync_folder replace link "
    "unlink make_folder remove_folder"
).split()


class DiskWays:
    """Fails as a disk, or a server of files, does."""

    def refused(self) -> NoReturn:
        raise OSError(errno.EIO, "simulated")

    failed = refused

    def lost(self) -> NoReturn:
        raise OSError(errno.ETIMEDOUT, "simulated")


class LakeDisk(SimDisk):
    """What is below `root` is on the disk of the system, and lasts."""

    def __init__(self, schedule: SimSchedule, root: str, boundary: Boundary) -> None:
        super().__init__(schedule)
        self._below = root
        self._boundary = boundary


def _route(name: str) -> Any:
    simulated, real = getattr(SimDisk, name), getattr(SystemDisk(), name)

    def operation(disk: LakeDisk, path: Any, *more: Any) -> Any:
        named = getattr(path, "name", None) or getattr(path, "path", None) or os.fspath(path)
        if not str(named).startswith(disk._below):
            return simulated(disk, path, *more)
        return disk._boundary.call(f"disk {name}", lambda: real(path, *more), DiskWays())

    return operation


for _name in OPERATIONS:
    setattr(LakeDisk, _name, _route(_name))
