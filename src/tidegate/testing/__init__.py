"""Shipped test doubles: a clock that moves by hand, and processes that die or fail on cue."""

from tidegate.testing.clock import ManualClock
from tidegate.testing.fault import (
    PHASES,
    STEPS,
    VICTIMS,
    FailAtChange,
    KillAt,
    KillAtChange,
    KillInOperate,
    kill,
)

__all__ = [
    "PHASES",
    "STEPS",
    "VICTIMS",
    "FailAtChange",
    "KillAt",
    "KillAtChange",
    "KillInOperate",
    "ManualClock",
    "kill",
]
