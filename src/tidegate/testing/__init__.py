"""Shipped test doubles: a clock that moves by hand, and processes that die on cue."""

from tidegate.testing.clock import ManualClock
from tidegate.testing.fault import STEPS, KillAt

__all__ = ["STEPS", "KillAt", "ManualClock"]
