"""How buckets come to the instances that own them now: three ways, and which one a switch takes.

- **shared**: all instances read the same files of one host, so that nothing moves;
- **state recreation** (StreamCloud, Synefo): the new owner loads what is stored of its buckets from
  the checkpoint, and nothing else;
- **window recreation** (StreamCloud, UniMiCo): the former owner finishes the windows that began
  before the migration timestamp, the new one begins with the next. No state moves, but the switch
  is over only when the last of those windows is.

Deciding is pure. What does it are mappings with `formers`, and instances that read what is theirs.
"""

from __future__ import annotations

from collections.abc import Mapping as Named
from dataclasses import dataclass, replace

from tidegate.calendar.duration import duration_text
from tidegate.errors import OptionError
from tidegate.route.former_owner import Former, Position
from tidegate.route.mapping import Mapping
from tidegate.route.reach import Reach

AUTO, SHARED, STATE, WINDOW = "auto", "shared", "state", "window"
NONE = "none"
HANDOVERS = (AUTO, SHARED, STATE, WINDOW)

BYTES_PER_S = 100_000_000
"""How fast state is taken to come from a store that hosts share: some gigabit per second."""

MOST_FORMERS = 8
"""With more epochs that still finish something, instances keep more accounts than windows."""


MOST_BATCHES = 1_000
"""So long former owners wait for tuples that end their windows; then what is left goes by state."""

Reaching = Reach | str
"""How far back the windows of an operator reach, or why new owners need its state."""


@dataclass(frozen=True)
class Site:
    """Where instances and their state are."""

    one_host: bool = True
    local: bool = True

    @property
    def shares(self) -> bool:
        """Whether all instances read the same files of one host."""
        return self.one_host and self.local

    @property
    def apart(self) -> str:
        """Why they do not."""
        return "instances are on several hosts" if not self.one_host else "the store is remote"


@dataclass(frozen=True)
class HandoverChoice:
    """The handover of a switch, and the reason in words."""

    handover: str
    why: str


def check(asked: str, site: Site, reaches: Named[str, Reaching]) -> None:
    """Refuse a handover that cannot be, before anything starts.

    `reaches` has the operators with state, by the names of their subqueries.
    """
    if asked not in HANDOVERS:
        raise OptionError("--handover", f"must be one of {', '.join(HANDOVERS)}", str(asked))
    if asked == SHARED and not site.shares:
        raise OptionError(
            "--handover",
            "shared needs instances and checkpoint on one host",
            site.apart,
            "Use --handover auto, state or window.",
        )
    for name, reach in reaches.items():
        if asked == WINDOW and isinstance(reach, str):
            raise OptionError(
                "--handover",
                "window is for joins, and for windows of time or of tuples without groups",
                f"{name}: {reach}",
                "Use --handover auto, which hands its buckets over by their state.",
            )


def choose(
    asked: str, site: Site, reach: Reaching, moved_bytes: int, wait_us: int | None
) -> HandoverChoice:
    """The handover of one switch.

    `moved_bytes` is about what is stored of the buckets that move; `wait_us` is how long it takes,
    in event time, until the last window that began before the switch has ended; None where nobody
    knows, because it counts tuples of an input that has brought none lately.
    """
    if asked != AUTO:
        return HandoverChoice(asked, "asked for")
    if site.shares:
        return HandoverChoice(SHARED, "all instances share the files of one host")
    if isinstance(reach, str):
        return HandoverChoice(STATE, f"{site.apart}, and {reach}")
    seconds = moved_bytes / BYTES_PER_S
    size = f"{moved_bytes:,} bytes take about {seconds:.2f} s to load"
    if wait_us is None:
        return HandoverChoice(STATE, f"{size}, and nobody knows how soon {reach.text} come")
    window = f"open windows end within {duration_text(max(wait_us, 0))}"
    if wait_us <= seconds * 1e6:
        return HandoverChoice(WINDOW, f"{window}, and {size}")
    return HandoverChoice(STATE, f"{size}, and {window}")


def foreseen(asked: str, site: Site, reach: Reaching | None) -> str:
    """What `explain` says of a subquery before anything is known of its state."""
    if reach is None:
        return "nothing, it keeps no state"
    if asked != AUTO or site.shares or isinstance(reach, str):
        choice = choose(asked, site, reach, 0, 1)
        return f"{choice.handover} ({choice.why})"
    return (
        f"window where {reach.text} pass sooner than the state that moves is loaded "
        f"at {BYTES_PER_S // 1_000_000} MB/s, else state ({site.apart})"
    )


def finishing(
    before: Mapping,
    after: Mapping,
    *,
    until_us: int,
    over_us: int,
    positions: tuple[Position, ...] = (),
    batch: int = 0,
) -> Mapping:
    """The mapping after a switch by window recreation at a migration timestamp.

    The owners before it keep what is stored of times below `until_us`; where that is nothing which
    the formers before them do not have, there is nothing for them to finish. `batch` is the first
    with the mapping.
    """
    formers = before.formers
    if not formers or formers[-1].until_us < until_us:
        own = Former(
            before.epoch,
            before.instances,
            before.owners,
            until_us,
            over_us,
            positions,
            batch + MOST_BATCHES if positions else None,
        )
        formers = (*formers, own)
    return replace(after, formers=formers)


def relieved(mapping: Mapping, batch: int) -> Mapping:
    """The mapping of a batch, without formers where one of them has waited for too long.

    All owners then load what is stored of their buckets, as with state recreation.
    """
    overdue = any(f.relieved is not None and f.relieved <= batch for f in mapping.formers)
    return replace(mapping, formers=()) if overdue else mapping
