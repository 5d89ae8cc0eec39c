"""Task events of a compute cluster, like those of the Google cluster trace."""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np
import pyarrow as pa

from tidegate.connector import Int64s
from tidegate.source.generate.draw import Words, below, field, mixed, shares
from tidegate.source.generate.flow import Keys, read_flow
from tidegate.source.generate.label import Labels, digits, scattered
from tidegate.source.generate.span import Column, TimedSpan, column
from tidegate.source.generate.workload import SpanGenerator
from tidegate.source.parameter import Parameters

_JOB, _EVENT = range(1, 3)
_USERS = 900
_MACHINES = 12_500
_FIRST_JOB = 3_418_309
_TASK_BITS = 9

_EVENT_SHARES = (0.335, 0.33, 0.04, 0.095, 0.125, 0.07, 0.0005, 0.0005, 0.004)
"""Submit, schedule, evict, fail, finish, kill, lost, update pending, update running."""
_CLASS_SHARES = (0.53, 0.22, 0.19, 0.06)
_PRIORITY_SHARES = (0.2, 0.12, 0.08, 0.01, 0.35, 0.01, 0.08, 0.01, 0.07, 0.05, 0.01, 0.01)
_CPU = (125, 250, 312, 625, 625, 625, 1_250, 2_500)
"""Ten-thousandths of the largest machine that a job's tasks ask for, all as likely."""
_MEMORY = (8, 16, 32, 64, 120, 159, 318, 636)
_DISK = (2, 4, 8, 15)


def tasks(parameters: Parameters) -> SpanGenerator:
    """Events of tasks; a job's tasks share its user, class, priority and about its requests."""
    jobs = Keys("jobs", 600_000, 0.9)
    return SpanGenerator(TaskSpan, read_flow(parameters, 50.0, "2011-05-01T00:00:00Z", jobs))


class TaskSpan(TimedSpan):
    """The columns of a range of events; resources are shares of the largest machine."""

    FAMILY = 2

    @column(pa.int64())
    def job_id(self) -> Column:
        return _FIRST_JOB + self._jobs

    @column(pa.int32())
    def task_index(self) -> Column:
        """Low ones more often: the smaller of two draws."""
        low = np.minimum(field(self._event, 0, _TASK_BITS), field(self._event, 9, _TASK_BITS))
        return low

    @column(pa.int64())
    def machine_id(self) -> Column:
        return 1 + below(self._event, 18, 20, _MACHINES)

    @column(pa.int32())
    def event_type(self) -> Column:
        return _table(12, _EVENT_SHARES)[field(self._event, 38, 12)]

    @column(pa.string())
    def user(self) -> pa.Array:
        return _users(self.flow.seed).take(below(self._traits, 0, 16, _USERS))

    @column(pa.int32())
    def scheduling_class(self) -> Column:
        return _table(10, _CLASS_SHARES)[field(self._traits, 16, 10)]

    @column(pa.int32())
    def priority(self) -> Column:
        return _table(10, _PRIORITY_SHARES)[field(self._traits, 26, 10)]

    @column(pa.float64())
    def cpu(self) -> Column:
        """Requests of one job vary by a few percent."""
        request = np.array(_CPU)[field(self._traits, 36, 3)]
        return request * (96 + field(self._event, 50, 3)) / 1_000_000

    @column(pa.float64())
    def memory(self) -> Column:
        request = np.array(_MEMORY)[field(self._traits, 39, 3)]
        return request * (96 + field(self._event, 53, 3)) / 1_000_000

    @column(pa.float64())
    def disk(self) -> Column:
        return np.array(_DISK)[field(self._traits, 42, 2)] / 10_000

    @cached_property
    def _jobs(self) -> Int64s:
        return self.ranked(_JOB)

    @cached_property
    def _traits(self) -> Words:
        return mixed(self._jobs, self.flow.seed)

    @cached_property
    def _event(self) -> Words:
        return self.words(_EVENT)


@lru_cache(maxsize=8)
def _table(bits: int, of: tuple[float, ...]) -> Int64s:
    return shares(bits, of)


@lru_cache(maxsize=4)
def _users(seed: int) -> Labels:
    text = digits(scattered(_USERS, 26**6, seed), 6, base=26, zero="a")
    return Labels.of(text)
