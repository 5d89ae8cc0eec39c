"""Faults on cue: a process that kills itself the hard way at a named step of a batch."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass

STEPS = (
    "before gate",
    "after gate",
    "after operate",
    "before commit",
    "after commit",
    "after publish",
)
"""The steps of a batch, in order, as an observer of the loop is told of them."""


@dataclass(frozen=True)
class KillAt:
    """An observer that ends this process with SIGKILL at one step of one batch."""

    step: str
    batch: int

    def __call__(self, step: str, batch: int) -> None:
        if (step, batch) == (self.step, self.batch):
            os.kill(os.getpid(), signal.SIGKILL)
