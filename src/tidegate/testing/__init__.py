"""Test doubles for users: a manual clock, processes that die or fail on cue, a witness to calls.

Also checks of a user's own code: of aggregates (`check_aggregate`), of mergeable processes
(`check_process`), of sinks, sources and process classes through simulated crashes (`simulate`), and
of policies over a load (`drive`) or a join at given rates (`drive_join`). And a switch:
`sampled_means` makes WITH ERROR estimate means, although their exact values are known.
"""

from tidegate.elastic.dry_run import DrivenBatch, drive, switches
from tidegate.plan.aggregate.bound import sampled_means
from tidegate.testing.aggregate import check_aggregate
from tidegate.testing.clock import ManualClock
from tidegate.testing.fault import (
    PHASES,
    STEPS,
    VICTIMS,
    FailAtChange,
    FullAtByte,
    KillAt,
    KillAtChange,
    KillInOperate,
    kill,
)
from tidegate.testing.join_trace import drive_join
from tidegate.testing.mergeable import check_process
from tidegate.testing.process import Visit, Watched, disorder, visits
from tidegate.testing.simulation.simulate import SimulationError, simulate
from tidegate.testing.tap import CHANGES, DiskChange, TappedDisk

__all__ = [
    "CHANGES",
    "PHASES",
    "STEPS",
    "VICTIMS",
    "DiskChange",
    "DrivenBatch",
    "FailAtChange",
    "FullAtByte",
    "KillAt",
    "KillAtChange",
    "KillInOperate",
    "ManualClock",
    "SimulationError",
    "TappedDisk",
    "Visit",
    "Watched",
    "check_aggregate",
    "check_process",
    "disorder",
    "drive",
    "drive_join",
    "kill",
    "sampled_means",
    "simulate",
    "switches",
    "visits",
]
