"""Runs a job again if its rows were lost between its tasks, for example with a dead worker."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from tidegate.execute.job import Job

T = TypeVar("T")

_TRIES = 3

_log = logging.getLogger(__name__)


def retried(job: Job, attempt: Callable[[], T], lost: Callable[[Exception], str | None]) -> T:
    """The result of `attempt`; tried up to `_TRIES` times while errors say that rows were lost.

    `lost` returns what an error lost, or None for an error of another kind, which is raised.
    """
    for left in reversed(range(_TRIES)):
        try:
            return attempt()
        except Exception as error:
            said = lost(error)
            if said is None or not left:
                raise
            _log.warning("batch %d runs again: %s", job.batch, said)
    raise AssertionError("unreachable")
