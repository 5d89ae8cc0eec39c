"""Parcels as files on one host: map tasks write them, instances map them, nothing is copied.

This is the shared exchange (virtual shared-nothing: every task may read all, each reads its own).
Files live for one batch, are not forced to disk, and do not count for recovery.

What instances get are Arrow tables. What the driver leaves (`LeftFile`) may hold code: it is opened
only as the bytes that it wrote: their digest comes with the task, not by way of a file.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import IO, Any

import pyarrow as pa

from tidegate import disk, schedule
from tidegate.batch import write_table
from tidegate.errors import StateError
from tidegate.execute.job import Job, Outcome, Parcel, rows_name
from tidegate.execute.remote_rows import LEAST_BYTES, RemoteRows
from tidegate.route.partitioner import EVERY_INSTANCE
from tidegate.state.files import OWNER_ONLY, reason
from tidegate.state.store import Store
from tidegate.whole_file import whole_file

FOLDER = "exchange"
ALIGNMENT = 64
INLINE_BYTES = 65_536
"""Fewer of an outcome's rows come to the driver with it."""


@dataclass(frozen=True)
class Shipment:
    """One file of parcels: for each its instance, split, kind, label, offset and length.

    `door` is the host and the port where workers on other hosts get it.
    """

    path: str
    parcels: tuple[tuple[int, int, int, str, int, int], ...]
    spans_ms: dict[str, float] = field(default_factory=dict)
    door: tuple[str, int] | None = None

    @staticmethod
    def of(fields: dict[str, Any]) -> Shipment:
        """What `asdict` gave, by way of JSON."""
        door = fields["door"]
        return Shipment(**fields | {"door": None if door is None else tuple(door)})

    def for_instance(self, instance: int) -> list[tuple[int, int, int, str, int, int]]:
        """The parcels of one instance, and those of all."""
        return [p for p in self.parcels if p[0] in (instance, EVERY_INSTANCE)]


@dataclass(frozen=True)
class LeftFile:
    """Bytes that the driver left for the tasks of a batch: where, and their digest.

    Its text is small: it goes to tasks as a property of their job.
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
        """The bytes; others than the driver wrote are a StateError."""
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
    """Write a task's parcels into one file, another one in each try of the task.

    Two tries do not write the same bytes, because what they tell of their times differs.
    """
    return write_parcels(_path(job, f"{task}-{schedule.current().token()}"), parcels)


def write_parcels(path: str, parcels: Sequence[Parcel]) -> Shipment:
    """Write parcels into a file, each at a place where Arrow can take it from a map of the file."""
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
    """The parcels of one instance, as views into the mapped files."""
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
    """Leave an outcome's rows in files where they are many, so that they need no pickling."""
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
    """Leave an outcome's rows where they are many, for tasks and a driver on other hosts.

    They are in the checkpoint, which all share: in files, or in objects where it is remote. Of
    files the driver gets as much in all, however many instances there are.
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
    """Leave bytes for the tasks of a batch."""
    path = _path(job, name)
    with _file(path) as file:
        file.write(data)
    return LeftFile(path, _digest(data))


def begin(job: Job) -> None:
    """Make the folder of a job, empty."""
    _remove(_folder(job))
    make(job)


def make(job: Job) -> None:
    """Make the folder of a job, where it is not there."""
    make_folder(_folder(job))


def make_folder(folder: str) -> None:
    """Make a folder for this user alone, where it is not there."""
    try:
        disk.make_folders(folder, OWNER_ONLY)
    except OSError as error:
        raise unwritten(folder, error) from error


def clear(job: Job, spared: Collection[str] = ()) -> None:
    """Remove what all jobs left, of this batch and of others before a crash.

    But nothing of a run that has taken the checkpoint over since, nor of the jobs of this one that
    are `spared`, by their names. What is mapped stays readable until it is let go.
    """
    _clear(job.store.open(), job.owner, spared)


def clear_all(store: Store, alone: bool = False) -> None:
    """Remove what the jobs of this run and of those before it left; on a remote store is nothing.

    Who is `alone` removes all there is: what bears a greater number is of a run that never counted.
    """
    _clear(store, None if alone else store.owner)


def _clear(store: Store, owner: int | None, spared: Collection[str] = ()) -> None:
    """Remove what runs up to an owner have left, or all; but not the jobs of it that are spared."""
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
    """A file that appears when it is complete, also where two tries of a task write it at once."""
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
