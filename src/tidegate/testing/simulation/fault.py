"""The faults of one life of a driver, as plain data, and how they are drawn from a seed."""

from __future__ import annotations

import errno
import random
from dataclasses import dataclass

from tidegate.testing.simulation.runner import KINDS, Attempt


@dataclass(frozen=True)
class Kill:
    """The driver is killed at one of its steps; misbehaving tasks live on."""

    step: int


@dataclass(frozen=True)
class PowerLoss:
    """All processes stop at a step of the driver, and what was not synced is lost or torn."""

    step: int


@dataclass(frozen=True)
class Strike:
    """The driver is killed, or the power fails, before the n-th operation of a kind on some path.

    It meets the moments between two changes that belong together, which random steps rarely meet.
    `path` is a part of the path.
    """

    operation: str
    path: str
    count: int
    power: bool


@dataclass(frozen=True)
class Torn:
    """The driver is killed inside its n-th write, of which a `part` reaches the file."""

    write: int
    part: float


@dataclass(frozen=True)
class Fails:
    """The n-th operation on files below a place fails, once. Only EIO strikes reads too."""

    operation: int
    error: int
    where: str = "/"


@dataclass(frozen=True)
class Full:
    """The disk is full after so many bytes of this life."""

    room_bytes: int


@dataclass(frozen=True)
class Task:
    """An attempt of a task misbehaves; the driver is killed at `step`, if one is given."""

    attempt: Attempt
    step: int | None = None


@dataclass(frozen=True)
class Zombie:
    """The driver is paused at a step, another takes over, and the first wakes up.

    It wakes at step `resumed` of the other, or when that one has ended. Without `locks` the disk
    has no locks.
    """

    step: int
    locks: bool
    resumed: int


Fault = Kill | PowerLoss | Strike | Torn | Fails | Full | Task | Zombie

FAULTS: tuple[type[Fault], ...] = (
    *[Kill] * 3,
    *[PowerLoss] * 4,
    *[Strike] * 3,
    *[Torn] * 2,
    *[Fails] * 3,
    *[Full] * 2,
    *[Task] * 4,
    *[Zombie] * 3,
)
"""All kinds of faults; a kind is drawn as often as it is listed."""


MOMENTS = (
    ("link", "/manifest/"),
    ("replace", "/manifest/"),
    ("unlink", "/manifest/"),
    ("sync_folder", "/manifest"),
    ("replace", "/batch="),
    ("sync_folder", "/out/"),
    ("link", "/owner/"),
    ("create", "/segment/"),
)
"""Operations and paths that decide whether a batch counts."""


def drawn(chance: random.Random, steps: int, kind: type[Fault] | None = None) -> Fault:
    """A random fault for a life of about so many steps, of one kind or of any."""
    kind = kind or chance.choice(FAULTS)
    step = some_step(chance, steps)
    if kind is Kill or kind is PowerLoss:
        return kind(step)
    if kind is Strike:
        operation, path = chance.choice(MOMENTS)
        return Strike(operation, path, chance.randint(1, 4), chance.random() < 0.5)
    if kind is Torn:
        return Torn(max(1, step // 8), chance.random())
    if kind is Fails:
        error = chance.choice((errno.EIO, errno.ENOSPC, errno.EACCES))
        where = chance.choice(("/", "/", "/out", "/checkpoint"))
        return Fails(max(1, step // (2 if where == "/" else 4)), error, where)
    if kind is Full:
        return Full(step * chance.choice((4, 40, 400)))
    if kind is Task:
        of = chance.choice(("", "merge_task"))
        attempt = Attempt(
            task=chance.randint(1, 4 if of else max(2, step // 20)),
            kind=chance.choice(KINDS),
            step=chance.randint(1, 12 if of else 30),
            pause=chance.choice((5, 50, 200, 500)),
            of=of,
        )
        return Task(attempt, chance.choice((None, step)))
    return Zombie(step, chance.random() < 0.3, some_step(chance, steps))


def some_step(chance: random.Random, steps: int) -> int:
    """A random step of about so many; steps of the start and the first batch are drawn often."""
    return chance.randint(1, chance.choice((60, 150, max(steps, 2))))
