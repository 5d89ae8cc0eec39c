"""Computes the frontier: the event time below which every source has shown all of its tuples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tidegate.batch import MAX_US, MIN_US
from tidegate.errors import GateError


@dataclass(frozen=True)
class Progress:
    """What one source has shown so far, as far as the frontier depends on it."""

    newest_us: int = MIN_US
    """The largest event time read so far; MIN_US while the source has not spoken."""
    promise_us: int = MIN_US
    """The smallest event time it may still bring, where that is known before it speaks."""
    ended: bool = False


@dataclass(frozen=True)
class SourceFeed:
    """The sources of one URI: a single one, or the files of a folder.

    `live` says that more sources may join it (a followed folder). `idle` says that it has been
    silent for longer than its stream's IDLE allows, and does not hold the frontier back.
    """

    members: tuple[Progress, ...]
    disorder_us: int
    live: bool = False
    idle: bool = False

    def reach(self) -> int:
        """How far the frontier may go as far as this feed is concerned.

        A member that is being read counts by itself. When all have ended but more may come, the
        newest tuple of all of them counts. -inf before anything was seen.
        """
        unfinished = [self._member_reach(m) for m in self.members if not m.ended]
        if unfinished:
            return min(unfinished)
        if not self.live:
            return MAX_US
        return max((lowered(m.newest_us, self.disorder_us) for m in self.members), default=MIN_US)

    def _member_reach(self, member: Progress) -> int:
        return max(lowered(member.newest_us, self.disorder_us), member.promise_us)


def lowered(time_us: int, by_us: int) -> int:
    """Subtract a duration without leaving the range of 64 bits; infinities stay."""
    if time_us in (MIN_US, MAX_US):
        return time_us
    return max(time_us - by_us, MIN_US)


def frontier(previous_us: int, feeds: Iterable[SourceFeed]) -> int:
    """The next frontier: the smallest reach of all feeds that hold it, never below the previous.

    Idle feeds do not hold it. If only idle feeds are unfinished, the frontier goes as far as the
    newest of them and no further, so that what this one brings next is not late.
    """
    holding: list[int] = []
    idle: list[int] = []
    for feed in feeds:
        (idle if feed.idle else holding).append(feed.reach())
    lowest = min(holding, default=MAX_US)
    unfinished = [reach for reach in idle if reach < MAX_US]
    if lowest == MAX_US and unfinished:
        lowest = max(unfinished)
    # A source that joins or wakes up may have a smaller reach: readers have passed that already,
    # and its tuples below count as late.
    return max(previous_us, lowest)


def check_promise(where: str, promised_us: int, frontier_us: int) -> None:
    """Refuse a joining source that may bring tuples below the frontier, which readers have seen."""
    if promised_us < frontier_us:
        raise GateError(
            where,
            f"a joining source must promise event times from {frontier_us} us on",
            f"a promise of {promised_us} us",
            "Readers have consumed what lies before; announce it with a later time.",
        )
