"""What the machine remembers between intervals: plain values of bounded size, for a manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from tidegate.elastic.auto.evidence import Evidence
from tidegate.elastic.auto.forecast import Setting
from tidegate.model.observation import BatchCadence

HOLD_S = 24.0
"""So long instances stay that have come, and so far back goes the work that fewer must do."""

MOST_HOLD_S = 40.0

CALM_S = 4.0
"""For so long there must have been little enough work before nothing is shed any more."""

CALMING_S = 300.0
"""After so long half of what was learnt from a mistake is forgotten."""

APART_S = 1.0
"""Two changes are at least so far apart."""

MOST_RECORDS = 16
"""How many of the newest decisions are kept."""

_SLOT_S = 2.0
"""Of so many seconds together the most work is remembered."""

MOST_CAUTION = 3.0

OTHER_WORK = 0.25
"""From so much more or less work on, what was learnt from a mistake says nothing."""

LONG_AGO = -1e9


@dataclass(frozen=True)
class PendingOutcome:
    """A change whose outcome is not known yet: what it was, what was expected, what was before.

    `load` is what was needed of the time before it, as far as that was measured.
    """

    at_s: float
    kind: str
    before: Setting
    after: Setting
    high_s: float
    latency_s: float
    work: float
    load: float = 0.0


@dataclass(frozen=True)
class Distrust:
    """When a remedy made it worse, and with how much work; with other work it may be of use."""

    at_s: float
    work: float

    def lasts(self, seen: Evidence) -> bool:
        alike = abs(sum(seen.unshed) - self.work) <= OTHER_WORK * self.work
        return alike and seen.at_s - self.at_s < CALMING_S


@dataclass(frozen=True)
class MachineMemory:
    """What the machine keeps for the next interval; its size is bounded whatever happens.

    `works` has rows of a time slot and the most work of each subquery in it. `changed_s` is when
    the machine last changed something, `grown_s` when that was more instances or what counts like
    them, and `shrunk_s` when it gave some back. It sheds since `shed_s`; keys were split last at
    `split_s`, and tuples are late since `late_s`. With `surplus` there are more instances than the
    work needs, for a backlog. `moving` is 1 while it waits because the load still rises.

    `hold_s` and `caution` grow with mistakes, and fade; `distrusted` has the kinds of remedies that
    made it worse, when, and with how much work. `stuck` says why the target cannot be held, where
    it cannot, and `behind` how late tuples are. `wanted` are the instances that a query with a
    budget would have without it; `raised_s` is when they last became more, and `lacking_s` since
    when the budget's do not suffice.
    """

    works: tuple[tuple[float, ...], ...] = ()
    last: tuple[float, ...] = ()
    changed_s: float = LONG_AGO
    grown_s: float = LONG_AGO
    shrunk_s: float = LONG_AGO
    shed_s: float = LONG_AGO
    late_s: float = LONG_AGO
    split_s: float = LONG_AGO
    moving: int = 0
    surplus: bool = False
    hold_s: float = HOLD_S
    caution: float = 1.0
    faded_s: float = 0.0
    distrusted: Mapping[str, Distrust] = field(default_factory=dict)
    pending: PendingOutcome | None = None
    records: tuple[Mapping[str, Any], ...] = ()
    stuck: str = ""
    behind: str = ""
    wanted: tuple[int, ...] = ()
    raised_s: float = LONG_AGO
    lacking_s: float = LONG_AGO

    def noted(self, at_s: float, work: tuple[float, ...]) -> tuple[tuple[float, ...], ...]:
        """The works with those of one more interval."""
        slot = at_s // _SLOT_S * _SLOT_S
        kept = [row for row in self.works if row[0] > at_s - self.hold_s - _SLOT_S]
        if kept and kept[-1][0] == slot and len(kept[-1]) == len(work) + 1:
            work = tuple(map(max, kept.pop()[1:], work))
        return (*kept, (slot, *(round(one, 6) for one in work)))

    def highest(self, since_s: float) -> tuple[float, ...]:
        """The most work of each subquery since a time; asked only after `noted`."""
        rows = [row[1:] for row in self.works if row[0] + _SLOT_S > since_s]
        return tuple(map(max, *rows)) if len(rows) > 1 else tuple(rows[0])

    def recorded(self) -> dict[str, Any]:
        """As a manifest has it; the records are the same, and are not changed."""
        found = {f.name: getattr(self, f.name) for f in fields(self)}
        found["distrusted"] = {kind: asdict(of) for kind, of in self.distrusted.items()}
        return {**found, "pending": None if self.pending is None else asdict(self.pending)}

    @staticmethod
    def restored(recorded: Mapping[str, Any]) -> MachineMemory:
        """What `recorded` gave."""
        if not recorded:
            return MachineMemory()
        known = {f.name: recorded[f.name] for f in fields(MachineMemory) if f.name in recorded}
        known["works"] = tuple(map(tuple, known["works"]))
        known["last"] = tuple(known["last"])
        known["records"] = tuple(known["records"])
        # Of an earlier version it was a time alone.
        distrusted = known.get("distrusted", {}).items()
        known["distrusted"] = {k: Distrust(**of) for k, of in distrusted if isinstance(of, dict)}
        known["wanted"] = tuple(known.get("wanted", ()))
        if known["pending"] is not None:
            pending = dict(known["pending"])
            for name in ("before", "after"):
                of = dict(pending[name])
                cadence = of.pop("cadence")
                of |= {
                    "counts": tuple(of["counts"]),
                    "cadence": cadence and BatchCadence(**cadence),
                }
                pending[name] = Setting(**of)
            known["pending"] = PendingOutcome(**pending)
        return MachineMemory(**known)
