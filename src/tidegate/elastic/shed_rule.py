"""The rule by which WITH SHED UP TO chooses its share: a threshold of the backlog, and patience.

A pure decision over what was seen after each batch. Behind by more than `BEHIND_S` seconds of work
it halves what is kept, and again while that does not help; when the backlog has stayed below
`CAUGHT_UP_S` for some batches it doubles what is kept. So there are two thresholds, and a change is
given time to act before the next: tuples that were read before it are kept as they were.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

BEHIND_S = 2.0
"""From so many seconds of work on, a backlog is worth shedding for."""

CAUGHT_UP_S = 0.5
"""Below so many, it is gone."""

PATIENCE = 2
"""After so many batches a change has had its effect, if it has any."""

CALM = 4
"""For so many batches the backlog must be gone before more is kept again."""

_HALF = 0.5
_SMOOTHED = 0.3


@dataclass(frozen=True)
class BacklogSeen:
    """One batch: its rows, the seconds from the one before to its end, and the rows that wait."""

    rows: int
    seconds: float
    waiting_rows: int


@dataclass(frozen=True)
class ShedMemory:
    """What the rule remembers: rows a second, and batches since the change and since the backlog.

    `waiting_rows` are those after the batch before.
    """

    rows_per_s: float = 0.0
    since: int = PATIENCE
    calm: int = 0
    waiting_rows: int = 0


def decide(
    kept: float, least: float, seen: BacklogSeen, memory: ShedMemory
) -> tuple[float, ShedMemory]:
    """The rate to keep after a batch, at least `least`, and what is remembered of it."""
    rate = seen.rows / seen.seconds if seen.seconds > 0 else memory.rows_per_s
    speed = (
        rate
        if not memory.rows_per_s
        else memory.rows_per_s + _SMOOTHED * (rate - memory.rows_per_s)
    )
    behind_s = seen.waiting_rows / speed if speed > 0 else 0.0
    calm = memory.calm + 1 if behind_s < CAUGHT_UP_S else 0
    after = ShedMemory(speed, memory.since + 1, calm, seen.waiting_rows)
    if after.since < PATIENCE:
        return kept, after
    wanted = kept
    if behind_s > BEHIND_S and (kept == 1.0 or seen.waiting_rows >= memory.waiting_rows):
        wanted = max(kept * _HALF, least)
    elif calm >= CALM:
        wanted = min(kept / _HALF, 1.0)
    return wanted, after if wanted == kept else replace(after, since=0, calm=0)
