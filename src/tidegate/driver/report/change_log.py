"""Keeps the newest changes that tasks of a subquery made on their own, for status and summary."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Any

from tidegate.execute.job import Outcome
from tidegate.operate.change import OperatorChange

KEPT_CHANGES = 32
"""How many of a subquery are kept: the newest. All are in the log of the program."""

_log = logging.getLogger(__name__)


class ChangeLog:
    """The newest changes of one subquery; calls may come from several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._newest: deque[tuple[int, OperatorChange]] = deque(maxlen=KEPT_CHANGES)

    def add(self, name: str, batch: int, outcomes: Iterable[Outcome]) -> None:
        """Those of a batch that was committed; `name` is the subquery's."""
        changes = [change for outcome in outcomes for change in outcome.changes]
        for change in changes:
            _log.info("batch %d, %s: %s", batch, name, change.text)
        with self._lock:
            self._newest.extend((batch, change) for change in changes)

    def newest(self) -> list[tuple[int, OperatorChange]]:
        """With the batches that made them, oldest first."""
        with self._lock:
            return list(self._newest)


Changes = Mapping[str, list[tuple[int, OperatorChange]]]
"""The changes of subqueries by their names."""


def as_dicts(changes: Changes) -> list[dict[str, Any]]:
    """The form of summary and status."""
    return [
        {"subquery": name, "batch": batch, **change.facts}
        for name, newest in changes.items()
        for batch, change in newest
    ]


def lines_of(changes: Changes, most: int = KEPT_CHANGES) -> list[str]:
    """The newest of each subquery for people."""
    return [
        f"batch {batch}, {name}: {change.text}"
        for name, newest in changes.items()
        for batch, change in newest[-most:]
    ]
