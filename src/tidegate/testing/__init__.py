"""Shipped test doubles: a clock that moves by hand, and processes that die on cue."""

from tidegate.testing.clock import ManualClock
from tidegate.testing.fault import PHASES, STEPS, KillAt, KillAtChange, KillInOperate, kill

__all__ = [
    "PHASES",
    "STEPS",
    "KillAt",
    "KillAtChange",
    "KillInOperate",
    "ManualClock",
    "kill",
]
