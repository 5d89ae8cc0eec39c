"""Runs a job again whose rows were lost between its tasks, as when a worker dies that held some."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from tidegate.execute.job import Job

T = TypeVar("T")

_TRIES = 3

_log = logging.getLogger(__name__)


def retried(job: Job, attempt: Callable[[], T], lost: Callable[[Exception], str | None]) -> T:
    """What an attempt at a job gives; `lost` says what an error lost, None where it is another.

    The last of a few attempts raises what it raises.
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
