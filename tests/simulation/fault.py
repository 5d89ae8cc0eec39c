"""What goes wrong in a simulated course beside what can go wrong in every life of a driver."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.testing.simulation import fault
from tidegate.testing.simulation.fault import FAULTS, some_step


@dataclass(frozen=True)
class Damage:
    """The driver is killed, and then a file of the checkpoint is damaged, or one that is staged.

    For that it is killed just before a batch is published, or put together.
    """

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


@dataclass(frozen=True)
class Rotated:
    """A file that a driver follows is written anew from its beginning, while it is followed.

    That is after so many pieces of the input; what is written then is longer than it was.
    """

    piece: int
    choice: float


@dataclass(frozen=True)
class Refuses:
    """The function that results are given to fails, in one of its calls."""

    call: int


@dataclass(frozen=True)
class Astray:
    """The driver is told to write results to an object store, which no sink can do."""


Fault = fault.Fault | Damage | Replaced | Rotated | Refuses | Astray

DAMAGES = ("flip", "cut", "zero", "remove")
REPLACEMENTS = ("values", "longer", "rotated", "another", "gone")


KINDS: tuple[type[Fault], ...] = (*FAULTS, *[Damage] * 3, *[Replaced] * 3, Rotated, Refuses, Astray)
"""All kinds, as often as they are drawn."""


def drawn(chance: random.Random, steps: int, kinds: Sequence[type[Fault]] = KINDS) -> Fault:
    """A fault in a life of about so many steps, of one of these kinds."""
    kind = chance.choice(kinds)
    if kind is Damage:
        step, choice = some_step(chance, steps), chance.random()
        return Damage(step, chance.choice(DAMAGES), choice, chance.random() < 0.4)
    if kind is Rotated:
        return Rotated(chance.randint(0, 3), chance.random())
    if kind is Refuses:
        return Refuses(chance.randint(0, 6))
    if kind is Astray:
        return Astray()
    if kind is Replaced:
        return Replaced(
            chance.randint(1, max(2, steps)), chance.choice(REPLACEMENTS), chance.random()
        )
    return fault.drawn(chance, steps, kind)
