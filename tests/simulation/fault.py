"""What goes wrong in a simulated course beside what can go wrong in every life of a driver."""

from __future__ import annotations

import random
from dataclasses import dataclass

from tidegate.testing.simulation import fault
from tidegate.testing.simulation.fault import FAULTS, some_step


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


Fault = fault.Fault | Damage | Replaced

DAMAGES = ("flip", "cut", "zero", "remove")
REPLACEMENTS = ("values", "longer", "rotated")


def drawn(chance: random.Random, steps: int) -> Fault:
    """A fault in a life of about so many steps."""
    kind = chance.choice((*FAULTS, *[Damage] * 3, *[Replaced] * 3))
    if kind is Damage:
        step, kinds = some_step(chance, steps), DAMAGES
        return Damage(step, chance.choice(kinds), chance.random(), chance.random() < 0.4)
    if kind is Replaced:
        return Replaced(
            chance.randint(1, max(2, steps)), chance.choice(REPLACEMENTS), chance.random()
        )
    return fault.drawn(chance, steps, kind)
