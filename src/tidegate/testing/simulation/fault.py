"""What can go wrong in one life of a driver, as plain data, and how it is drawn from a seed."""

from __future__ import annotations

import errno
import random
from dataclasses import dataclass

from tidegate.testing.simulation.runner import KINDS, Attempt


@dataclass(frozen=True)
class Kill:
    """The driver is killed at a step of its own; tasks that misbehave live on."""

    step: int


@dataclass(frozen=True)
class PowerLoss:
    """Everything stops at a step of the driver, and what was not synced is lost or torn."""

    step: int


@dataclass(frozen=True)
class Strike:
    """The driver is killed, or the power lost, before the n-th operation of a kind on some path.

    For the few moments between two changes that belong together, which steps drawn at random
    rarely meet. `path` is a part of it.
    """

    operation: str
    path: str
    count: int
    power: bool


@dataclass(frozen=True)
class Torn:
    """The driver is killed inside its n-th write, of which a part has happened."""

    write: int
    part: float


@dataclass(frozen=True)
class Fails:
    """The n-th operation on files below a place fails, once; for want of room only changes do."""

    operation: int
    error: int
    where: str = "/"


@dataclass(frozen=True)
class Full:
    """So many bytes can still be written in this life."""

    room_bytes: int


@dataclass(frozen=True)
class Task:
    """An attempt of a task misbehaves; the driver is killed at a step, where one is given."""

    attempt: Attempt
    step: int | None = None


@dataclass(frozen=True)
class Zombie:
    """The driver stands still at a step, another takes over, and the first goes on.

    That is at a step of the other, or when it has ended; without `locks` on a disk that has none.
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
"""All kinds, as often as they are drawn."""


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
"""Operations on paths that a batch turns on."""


def drawn(chance: random.Random, steps: int, kind: type[Fault] | None = None) -> Fault:
    """A fault in a life of about so many steps; of one kind, or of any."""
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
    """One of about so many; the start and the first batch are met often, however many there are."""
    return chance.randint(1, chance.choice((60, 150, max(steps, 2))))
