"""Exchanges parcels by files on one host: map tasks write them, instances map them into memory.

Every task may read every file; each reads only its own parcels, and no row is copied. The files
live for one batch. They are never synced, because recovery does not need them: after a crash the
batch runs again.

Parcels hold Arrow tables. A file that the driver leaves for tasks (`LeftFile`) may hold pickled
code. A task therefore opens it only if its digest matches, and the digest travels with the task,
not in a file.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import IO, Any

import pyarrow as pa

from tidegate import schedule
from tidegate.batch import write_table
from tidegate.errors import StateError
from tidegate.execute.job import Job, Outcome, Parcel, rows_name
from tidegate.execute.remote_rows import LEAST_BYTES, RemoteRows
from tidegate.route.partitioner import EVERY_INSTANCE
from tidegate.state.files import OWNER_ONLY, reason
from tidegate.state.store import Store
from tidegate.storage import disk
from tidegate.storage.whole_file import whole_file

FOLDER = "exchange"
ALIGNMENT = 64
INLINE_BYTES = 65_536
"""Rows of an outcome below this size travel inside the answer to the driver, not in a file."""


@dataclass(frozen=True)
class Shipment:
    """One file with the parcels of a map task.

    Each entry of `parcels` is instance, split, kind, label, offset and length. `door` is the host
    and port at which workers on other hosts fetch the file; None if all share it.
    """

    path: str
    parcels: tuple[tuple[int, int, int, str, int, int], ...]
    spans_ms: dict[str, float] = field(default_factory=dict)
    door: tuple[str, int] | None = None

    @staticmethod
    def of(fields: dict[str, Any]) -> Shipment:
        """The inverse of `asdict` after a trip through JSON, which turns tuples into lists."""
        door = fields["door"]
        return Shipment(**fields | {"door": None if door is None else tuple(door)})

    def for_instance(self, instance: int) -> list[tuple[int, int, int, str, int, int]]:
        """The parcels of one instance, and those that go to every instance."""
        return [p for p in self.parcels if p[0] in (instance, EVERY_INSTANCE)]


@dataclass(frozen=True)
class LeftFile:
    """Bytes that the driver left for the tasks of a batch: their path and their digest.

    Its text form is short; tasks get it as a property of their Spark job.
    """

    path: str
    digest: str

    def __str__(self) -> str:
        return f"{self.digest}:{self.path}"

    @staticmethod
    def of(text: str) -> LeftFile:
        digest, _, path = text.partition(":")
        return LeftFile(path, digest)

    def open(self) -> pa.Buffer:
        """Map the bytes; a StateError if they are not those that the driver wrote."""
        data = disk.current().map(self.path)
        if _digest(data) != self.digest:
            raise StateError(
                self.path,
                "must be as the driver left it",
                "other bytes",
                "See who else can write there, and restart.",
            )
        return data


def ship(job: Job, task: str, parcels: Sequence[Parcel]) -> Shipment:
    """Write a task's parcels into one file. Each try of the task writes a file of its own."""
    # Spark may run two tries of a task at once. Their bytes differ (they report their own times),
    # so a shared name would let one try's index point into the other's file.
    return write_parcels(_path(job, f"{task}-{schedule.current().token()}"), parcels)


def write_parcels(path: str, parcels: Sequence[Parcel]) -> Shipment:
    """Write parcels into a file, aligned so that Arrow can use them where they are mapped."""
    index, offset = [], 0
    with _file(path) as file:
        for parcel in parcels:
            size = len(parcel.data)
            head = (parcel.instance, parcel.split, parcel.kind, parcel.label)
            index.append((*head, offset, size))
            file.write(parcel.data)
            gap = -size % ALIGNMENT
            file.write(b"\0" * gap)
            offset += size + gap
    return Shipment(path, tuple(index))


def receive(shipments: Iterable[Shipment], instance: int) -> list[Parcel]:
    """The parcels of one instance, as views of the mapped files; nothing is copied."""
    parcels = []
    for shipment in shipments:
        mine = shipment.for_instance(instance)
        if not mine:
            continue
        whole = disk.current().map(shipment.path) if any(p[5] for p in mine) else pa.py_buffer(b"")
        for owner, split, kind, label, offset, size in mine:
            parcels.append(Parcel(owner, split, kind, whole.slice(offset, size), label))
    return parcels


def store_rows(job: Job, outcome: Outcome, least_bytes: int = INLINE_BYTES) -> Outcome:
    """Move the rows of an outcome to files if they are many, so that they need no pickling."""
    pieces = []
    for number, piece in enumerate(outcome.pieces):
        if piece.path is None and (rows := piece.load()).nbytes >= least_bytes:
            make(job)
            path = _path(job, f"outcome-{outcome.instance}-{number}")
            with _file(path) as file:
                write_table(rows, file)
            piece = replace(piece, table=None, path=path, data=None)
        pieces.append(piece)
    return replace(outcome, pieces=tuple(pieces))


def store_apart(job: Job, outcome: Outcome) -> Outcome:
    """Move the rows of an outcome to the checkpoint if they are many; for several hosts.

    All hosts share the checkpoint. A local one gets files, a remote one objects. The limit for
    files falls with the number of instances, so that what the driver receives in all stays bounded.
    """
    if job.store.open().files.local:
        return store_rows(job, outcome, max(INLINE_BYTES, LEAST_BYTES // job.mapping.running))
    pieces = []
    ports = job.subquery.ports
    for number, (port, piece) in enumerate(zip(ports, outcome.pieces, strict=True)):
        if (rows := piece.load()).nbytes >= LEAST_BYTES:
            name = rows_name(job, outcome.instance, number)
            remote = RemoteRows.leave(job.store, name, rows, port.time)
            piece = replace(piece, table=None, data=None, remote=remote)
        pieces.append(piece)
    return replace(outcome, pieces=tuple(pieces))


def leave(job: Job, name: str, data: bytes) -> LeftFile:
    """Write bytes into a file for the tasks of a batch."""
    path = _path(job, name)
    with _file(path) as file:
        file.write(data)
    return LeftFile(path, _digest(data))


def begin(job: Job) -> None:
    """Make an empty folder for a job; removes what an earlier try of the batch left."""
    _remove(_folder(job))
    make(job)


def make(job: Job) -> None:
    """Make the folder of a job if it is missing."""
    make_folder(_folder(job))


def make_folder(folder: str) -> None:
    """Make a folder, readable by this user only, if it is missing."""
    try:
        disk.make_folders(folder, OWNER_ONLY)
    except OSError as error:
        raise unwritten(folder, error) from error


def clear(job: Job, spared: Collection[str] = ()) -> None:
    """Remove the files of all jobs of this run and of earlier runs.

    Spares the jobs named in `spared`, and everything of a run that took the checkpoint over since.
    Mapped files stay readable until they are unmapped.
    """
    _clear(job.store.open(), job.owner, spared)


def clear_all(store: Store, alone: bool = False) -> None:
    """Remove the files of this run and of earlier runs; a remote store has none.

    With `alone` (no other run can exist) remove everything: a greater owner number then belongs to
    a run that never committed.
    """
    _clear(store, None if alone else store.owner)


def _clear(store: Store, owner: int | None, spared: Collection[str] = ()) -> None:
    """Remove the files of owners up to `owner`, or all; not the spared jobs of `owner` itself."""
    if not store.files.local:
        return
    place = store.files.full(FOLDER)
    with suppress(OSError):  # where nothing was left
        for name in disk.current().names(place):
            path = os.path.join(place, name)
            if spared and name == str(owner):
                for job in disk.current().names(path):
                    if job not in spared:
                        _remove(os.path.join(path, job))
            elif owner is None or not name.isdecimal() or int(name) <= owner:
                _remove(path)
        if not spared:
            disk.current().remove_folder(place)


@contextmanager
def _file(path: str) -> Iterator[IO[bytes]]:
    """A file that appears under its name only when it is complete, even if two tries write it."""
    try:
        with whole_file(path, sync="nothing") as file:
            yield file
    except OSError as error:
        raise unwritten(path, error) from error


def _remove(folder: str) -> None:
    with suppress(OSError):  # a task that outlives its batch may write there still
        disk.remove_tree(folder)


def unwritten(path: str, error: OSError) -> StateError:
    """The error for a file or folder of the exchange that cannot be written."""
    return StateError(
        path,
        "must be writable",
        reason(error),
        "Make room or give access, and restart: the run continues after its last committed batch.",
    )


def _digest(data: bytes | pa.Buffer) -> str:
    return hashlib.sha256(data).hexdigest()


def _folder(job: Job) -> str:
    return job.store.open().files.full(f"{FOLDER}/{job.owner}/{job.name}")


def _path(job: Job, name: str) -> str:
    return os.path.join(_folder(job), name)
