"""Computes the frontier: the event time below which every source has shown all of its tuples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tidegate.batch import MAX_US, MIN_US
from tidegate.errors import GateError


@dataclass(frozen=True)
class Progress:
    """What one source has shown: the facts from which its say in the frontier follows."""

    newest_us: int = MIN_US
    """The largest event time read so far; MIN_US while the source has not spoken."""
    promise_us: int = MIN_US
    """The smallest event time it may still bring, where that is known before it speaks."""
    ended: bool = False


@dataclass(frozen=True)
class SourceFeed:
    """Sources that one URI stands for: a single one, or the files of a folder.

    `live` says that more sources may join it (a followed folder); `idle` that it has been silent
    for longer than its stream's IDLE allows, so that it stops holding the frontier back.
    """

    members: tuple[Progress, ...]
    disorder_us: int
    live: bool = False
    idle: bool = False

    def reach(self) -> int:
        """How far the frontier may go for the sake of this feed alone.

        While a member is being read it counts by itself; when all have ended but more may come,
        the newest tuple of all of them counts. Nothing seen yet counts as -inf.
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
    """The next frontier: the smallest reach of all feeds that hold it, never behind the previous.

    Idle feeds do not hold it. Where nothing but idle feeds is left unfinished, the frontier goes
    as far as the newest of them and no further, so that what they bring next is not late.
    """
    holding: list[int] = []
    idle: list[int] = []
    for feed in feeds:
        (idle if feed.idle else holding).append(feed.reach())
    lowest = min(holding, default=MAX_US)
    unfinished = [reach for reach in idle if reach < MAX_US]
    if lowest == MAX_US and unfinished:
        lowest = max(unfinished)
    return max(previous_us, lowest)


def check_promise(where: str, promised_us: int, frontier_us: int) -> None:
    """Refuse a joining source that may bring tuples below the frontier; readers have passed it."""
    if promised_us < frontier_us:
        raise GateError(
            where,
            f"a joining source must promise event times from {frontier_us} us on",
            f"a promise of {promised_us} us",
            "Readers have consumed what lies before; announce it with a later time.",
        )
