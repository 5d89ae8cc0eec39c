"""The rule by which WITH SHED UP TO chooses its share: a threshold of the backlog, and a forecast.

A pure decision over what was seen after each batch. Behind by more than `BEHIND_S` seconds of work
it halves what is kept, and again while that does not help. When the backlog has stayed below
`CAUGHT_UP_S` for `CALM_S` it keeps as much as there is capacity for: what a row costs was measured
while rows waited, with everything kept and with the share at hand, and what arrives is known. So
the share settles while an overload lasts; to try with more each time the backlog is gone would
bring it back each time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

BEHIND_S = 2.0
"""From so many seconds of work on, a backlog is worth shedding for."""

CAUGHT_UP_S = 0.5
"""Below so many, it is gone."""

CALM_S = 2.0
"""For so many seconds it must be gone before more is kept again."""

PATIENCE = 2
"""After so many batches a change has had its effect, if it has any."""

BUSY = 0.9
"""So much of the time may be work, with what is kept."""

FADES_S = 60.0
"""In so many seconds without a backlog the cost of a row that was measured counts half: the machine
may have more to give than it had."""

_HALF, _LEAST_STEP = 0.5, 1.1
_SMOOTHED_S = 1.0


@dataclass(frozen=True)
class BacklogSeen:
    """One batch: its rows, the seconds of work for it, and the rows that wait after it.

    `period_s` is the time since the end of the batch before, with what it was idle.
    """

    rows: int
    seconds: float
    waiting_rows: int
    period_s: float


@dataclass(frozen=True)
class ShedMemory:
    """What the rule remembers of earlier batches.

    Rows a second that are processed and that arrive; how many batches ago the share was changed;
    for how many seconds there was no backlog; the rows that waited after the batch before, None at
    first. What a row costs, in seconds, was measured while rows waited: with everything kept, and
    with what is kept now; 0 where it was not.
    """

    rows_per_s: float = 0.0
    arriving_per_s: float = 0.0
    since: int = PATIENCE
    calm_s: float = 0.0
    waiting_rows: int | None = None
    whole_cost_s: float = 0.0
    cost_s: float = 0.0

    @property
    def behind_s(self) -> float:
        """How much work waits."""
        return (self.waiting_rows or 0) / self.rows_per_s if self.rows_per_s > 0 else 0.0

    def after(self, kept: float, seen: BacklogSeen) -> ShedMemory:
        """With one batch more, of which so much was kept."""
        weight = 1 - _HALF ** (seen.period_s / _SMOOTHED_S)
        more = 0 if self.waiting_rows is None else seen.waiting_rows - self.waiting_rows
        arrived = max(seen.rows + more, 0)
        speed = seen.rows / seen.seconds if seen.seconds > 0 else self.rows_per_s
        noted = replace(
            self,
            rows_per_s=_smoothed(self.rows_per_s, speed, weight),
            arriving_per_s=_smoothed(
                self.arriving_per_s, arrived / max(seen.period_s, 1e-9), weight
            ),
            since=self.since + 1,
            waiting_rows=seen.waiting_rows,
        )
        calm_s = self.calm_s + seen.period_s if noted.behind_s < CAUGHT_UP_S else 0.0
        noted = replace(noted, calm_s=calm_s)
        if self.behind_s < CAUGHT_UP_S or not seen.rows:
            # Small batches cost more a row, and that says nothing of larger ones.
            faded = self.whole_cost_s * _HALF ** (seen.period_s / FADES_S)
            return replace(noted, whole_cost_s=faded)
        cost = _smoothed(self.cost_s, seen.seconds / seen.rows, 0.5)
        return replace(noted, cost_s=cost, whole_cost_s=cost if kept == 1.0 else self.whole_cost_s)

    def affordable(self, kept: float) -> float:
        """How much can be kept of what arrives, at least what is kept now.

        What a row costs is taken to grow linearly with the share that is kept.
        """
        whole = self.whole_cost_s
        if not whole:  # after a restart
            return min(kept / _HALF, 1.0)
        if whole * self.arriving_per_s <= BUSY:
            return 1.0
        allowed = BUSY / self.arriving_per_s
        # Without a backlog a row costs at most what there is time for, and what small batches take.
        cost = self.cost_s or 1 / max(self.arriving_per_s, self.rows_per_s)
        if cost >= min(allowed, whole):
            return kept
        wanted = kept + (1 - kept) * (allowed - cost) / (whole - cost)
        return wanted if wanted >= _LEAST_STEP * kept else kept


def decide(
    kept: float, least: float, seen: BacklogSeen, memory: ShedMemory
) -> tuple[float, ShedMemory]:
    """The rate to keep after a batch, at least `least`, and what is remembered of it."""
    after = memory.after(kept, seen)
    if after.since < PATIENCE:
        return kept, after
    wanted = kept
    grows = memory.waiting_rows is None or seen.waiting_rows >= memory.waiting_rows
    if after.behind_s > BEHIND_S and (kept == 1.0 or grows):
        wanted = max(kept * _HALF, least)
        if not after.whole_cost_s:  # at most, as if all work grew with what is kept
            after = replace(after, whole_cost_s=after.cost_s / kept)
    elif after.calm_s >= CALM_S and kept < 1.0:
        wanted = round(after.affordable(kept), 4)
    return wanted, after if wanted == kept else replace(after, since=0, calm_s=0.0, cost_s=0.0)


def _smoothed(before: float, now: float, weight: float) -> float:
    return before + weight * (now - before) if before > 0 else now
