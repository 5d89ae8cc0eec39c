"""What goes wrong in a simulated course: one thing in each life of a driver."""

from __future__ import annotations

import errno
import random
from dataclasses import dataclass

from tidegate.testing.simulation.executor import KINDS, Attempt


@dataclass(frozen=True)
class Kill:
    """The driver is killed at a step of its own; its tasks that misbehave live on."""

    step: int


@dataclass(frozen=True)
class PowerLoss:
    """Everything stops at a step of the driver, and what was not synced is lost or torn."""

    step: int


@dataclass(frozen=True)
class Torn:
    """The driver is killed inside its n-th write, of which a part has happened."""

    write: int
    part: float


@dataclass(frozen=True)
class Fails:
    """The n-th operation of the disk fails, once; only changes count, or only of the output."""

    operation: int
    error: int
    where: str = "/"


@dataclass(frozen=True)
class Full:
    """So many bytes can still be written in this life."""

    room_bytes: int


@dataclass(frozen=True)
class Task:
    """An attempt of a task misbehaves; the driver is killed at a step where there is one."""

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


@dataclass(frozen=True)
class Damage:
    """The driver is killed, and then a file of the checkpoint or of staging is damaged."""

    step: int
    kind: str
    choice: float
    staged: bool


@dataclass(frozen=True)
class Replaced:
    """The driver is killed, and then an input file that it has begun is another one."""

    step: int
    kind: str
    choice: float


Fault = Kill | PowerLoss | Torn | Fails | Full | Task | Zombie | Damage | Replaced

DAMAGES = ("flip", "cut", "zero", "remove")
REPLACEMENTS = ("values", "longer", "rotated")


def drawn(chance: random.Random, steps: int) -> Fault:
    """A fault in a life of about so many steps."""
    step = _step(chance, steps)
    kind = chance.choice(_KINDS)
    if kind is Kill or kind is PowerLoss:
        return kind(step)
    if kind is Torn:
        return Torn(max(1, step // 8), chance.random())
    if kind is Fails:
        error = chance.choice((errno.EIO, errno.ENOSPC, errno.EACCES))
        where = chance.choice(("/", "/", "/out", "/checkpoint"))
        return Fails(max(1, step // (2 if where == "/" else 4)), error, where)
    if kind is Full:
        return Full(step * chance.choice((4, 40, 400)))
    if kind is Task:
        name = chance.choice(KINDS)
        attempt = Attempt(
            chance.randint(1, max(2, step // 20)),
            name,
            chance.randint(1, 30),
            chance.choice((5, 50, 500)),
        )
        return Task(attempt, chance.choice((None, step)))
    if kind is Zombie:
        return Zombie(step, chance.random() < 0.3, _step(chance, steps))
    if kind is Damage:
        return Damage(step, chance.choice(DAMAGES), chance.random(), chance.random() < 0.4)
    return Replaced(step, chance.choice(REPLACEMENTS), chance.random())


def _step(chance: random.Random, steps: int) -> int:
    """Also the start and the first batch are met often, however long the life."""
    return chance.randint(1, chance.choice((60, 150, max(steps, 2))))


_KINDS = (
    *[Kill] * 3,
    *[PowerLoss] * 4,
    *[Torn] * 2,
    *[Fails] * 3,
    *[Full] * 2,
    *[Task] * 4,
    *[Zombie] * 3,
    *[Damage] * 3,
    *[Replaced] * 2,
)
