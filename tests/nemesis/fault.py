"""What goes wrong on real machines: each fault strikes a site, and is healed some time later."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Victim:
    """Processes by what they do and where: an executor of a host, the driver, a server."""

    role: str
    place: str


class Site(Protocol):
    """The machines and servers that faults strike."""

    def link(self, host: str, up: bool) -> None:
        """Plug the network cable of a host in, or pull it out."""

    def route(self, one: str, other: str, there: bool) -> None:
        """Let packets go from one host to another, or drop them, in this direction alone."""

    def delay(self, service: str, seconds: float) -> None:
        """Let everything that is said to a server, or by it, take so much longer."""

    def door(self, service: str, is_open: bool) -> None:
        """Let clients connect to a server, or cut all connections and refuse new ones."""

    def signal(self, victim: Victim, number: signal.Signals) -> int:
        """Send a signal; to how many processes it went."""

    def revive(self, victim: Victim) -> None:
        """Start again what nobody else starts again."""

    def shift(self, place: str, seconds: int) -> None:
        """Let the wall clock of a place be so far from the right time."""

    def fill(self, place: str) -> None:
        """Leave no byte free on the disk of a place."""

    def free(self, place: str) -> None:
        """Give the disk of a place its room back."""


class Fault(Protocol):
    """A kind of fault, and where it strikes. Two that touch the same things never overlap."""

    @property
    def touches(self) -> frozenset[str]:
        """The names of what it changes."""

    def strike(self, site: Site) -> int:
        """Begin; on how many things it had an effect, 0 if there was nothing to strike."""

    def heal(self, site: Site) -> None:
        """End, whatever came of it."""


@dataclass(frozen=True)
class LinkDown:
    """A host is cut off from everything."""

    host: str

    @property
    def touches(self) -> frozenset[str]:
        return frozenset({self.host})

    def strike(self, site: Site) -> int:
        site.link(self.host, up=False)
        return 1

    def heal(self, site: Site) -> None:
        site.link(self.host, up=True)


@dataclass(frozen=True)
class Severed:
    """What one host sends to another is lost; everything else is well."""

    one: str
    other: str

    @property
    def touches(self) -> frozenset[str]:
        return frozenset({self.one, self.other})

    def strike(self, site: Site) -> int:
        site.route(self.one, self.other, there=False)
        return 1

    def heal(self, site: Site) -> None:
        site.route(self.one, self.other, there=True)


@dataclass(frozen=True)
class Slow:
    """A server answers late."""

    service: str
    seconds: float

    @property
    def touches(self) -> frozenset[str]:
        return frozenset({self.service})

    def strike(self, site: Site) -> int:
        site.delay(self.service, self.seconds)
        return 1

    def heal(self, site: Site) -> None:
        site.delay(self.service, 0.0)


@dataclass(frozen=True)
class CutOff:
    """A server cannot be reached, and all connections to it break."""

    service: str

    @property
    def touches(self) -> frozenset[str]:
        return frozenset({self.service})

    def strike(self, site: Site) -> int:
        site.door(self.service, is_open=False)
        return 1

    def heal(self, site: Site) -> None:
        site.door(self.service, is_open=True)


@dataclass(frozen=True)
class Stopped:
    """Processes get no time for a while (SIGSTOP), and go on as if nothing had been (SIGCONT)."""

    victim: Victim

    @property
    def touches(self) -> frozenset[str]:
        return frozenset({self.victim.place})

    def strike(self, site: Site) -> int:
        return site.signal(self.victim, signal.SIGSTOP)

    def heal(self, site: Site) -> None:
        site.signal(self.victim, signal.SIGCONT)


@dataclass(frozen=True)
class Killed:
    """Processes end at once (SIGKILL)."""

    victim: Victim

    @property
    def touches(self) -> frozenset[str]:
        return frozenset({self.victim.place})

    def strike(self, site: Site) -> int:
        return site.signal(self.victim, signal.SIGKILL)

    def heal(self, site: Site) -> None:
        site.revive(self.victim)


@dataclass(frozen=True)
class ClockJump:
    """The wall clock of a place jumps, and jumps back later."""

    place: str
    seconds: int

    @property
    def touches(self) -> frozenset[str]:
        return frozenset({f"clock of {self.place}"})

    def strike(self, site: Site) -> int:
        site.shift(self.place, self.seconds)
        return 1

    def heal(self, site: Site) -> None:
        site.shift(self.place, 0)


@dataclass(frozen=True)
class DiskFull:
    """Nothing more can be written to the disk of a place."""

    place: str

    @property
    def touches(self) -> frozenset[str]:
        return frozenset({f"disk of {self.place}"})

    def strike(self, site: Site) -> int:
        site.fill(self.place)
        return 1

    def heal(self, site: Site) -> None:
        site.free(self.place)
