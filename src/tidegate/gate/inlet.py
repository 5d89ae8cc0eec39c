"""One URI of one stream at the gate, between its connector and the tracks of its sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from tidegate.batch import MIN_US
from tidegate.errors import SourceError
from tidegate.gate.track import Timed, Track


class Joining(Protocol):
    """What the gate needs of a connector: the sources known now, and whether more may come."""

    def discover(self) -> Sequence[Timed]: ...

    def live(self) -> bool: ...


@runtime_checkable
class Forgetting(Protocol):
    """A connector that delivers each source once and may drop it when it has been consumed."""

    def forget(self, ids: Sequence[str]) -> None: ...


@dataclass
class Inlet:
    """One URI of one stream: its connector and the tracks of its sources, in order.

    Places count from 0 for those a query starts with, and from -1 downwards for those that joined
    later; together with a source's id they name it in manifests.
    """

    place: int
    stream: int
    connector: Joining
    disorder_us: int
    idle_us: int | None
    uri: str | None = None
    tracks: dict[str, Track] = field(default_factory=dict)
    spoke_at: float = 0.0
    forgotten_us: int = MIN_US
    """The newest event time of sources that have left no other trace (see `Intake.forget`)."""

    @property
    def removed(self) -> bool:
        """Whether all its sources have left."""
        return bool(self.tracks) and all(t.removed for t in self.tracks.values())


@dataclass
class Absent:
    """In the place of a source that joined an earlier run and has not been announced again."""

    holds: bool

    def discover(self) -> Sequence[Timed]:
        return ()

    def live(self) -> bool:
        return self.holds


def in_order(inlet: Inlet) -> list[Track]:
    """The tracks of an inlet by their order, so that a restart makes the same cut."""
    return sorted(inlet.tracks.values(), key=lambda t: t.order)


def waits(saved: Mapping[str, Any]) -> bool:
    """Whether tuples of a source wait in the gate and will be read once more."""
    return bool(saved.get("waiting_from", 0) < saved.get("position", 0))


def is_needed(saved: Mapping[str, Any]) -> bool:
    """Whether a source of a manifest has more to give: rows to read, or tuples that wait."""
    return waits(saved) or not (saved["ended"] or saved["removed"])


def check_whole(source: Timed, saved: Mapping[str, Any], live: bool) -> None:
    """Refuse a source that has fewer rows than were read of it; a live one may still get them."""
    needed = waits(saved) or not (live or saved["ended"] or saved["removed"])
    if needed and (there := source.extend(saved["position"])) < saved["position"]:
        raise SourceError(
            source.id,
            f"was read up to row {saved['position']} by this checkpoint and must have as many",
            f"{there} rows",
            "Put it back as it was, or start from an empty checkpoint.",
        )
