"""What strikes when, drawn from a seed: nothing here knows of processes or clocks."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.nemesis.fault import (
    ClockJump,
    CutOff,
    DiskFull,
    Fault,
    Killed,
    LinkDown,
    Severed,
    Slow,
    Stopped,
    Victim,
)

HOSTS = ("one", "two", "three")
SERVICES = ("kafka", "postgres", "s3")
DRIVER = Victim("driver", "driver")
JVM = Victim("jvm", "driver")
ON_HOSTS = ("executor", "python", "worker")

DELAYS_S = (0.05, 0.3, 1.5)
JUMPS_S = (-600, -45, -2, 3, 90, 600)
"""Less than the quarter of an hour after which an S3 server refuses what was signed."""

Draw = Callable[[random.Random], Fault]


@dataclass(frozen=True)
class Blow:
    """A fault, when it strikes, and for how long."""

    at_s: float
    fault: Fault
    lasts_s: float

    @property
    def healed_s(self) -> float:
        return self.at_s + self.lasts_s


@dataclass(frozen=True)
class Pace:
    """How faults follow each other, as bounds in seconds: from one to the next, and how long."""

    gap_s: tuple[float, float]
    lasts_s: tuple[float, float]


@dataclass(frozen=True)
class Setting:
    """The hosts of a campaign, the faults that are dealt there, and their pace."""

    hosts: Sequence[str]
    deck: Sequence[Draw]
    pace: Pace


def _host(chance: random.Random) -> str:
    return chance.choice(HOSTS)


def _service(chance: random.Random) -> str:
    return chance.choice(SERVICES)


def _process_of_host(chance: random.Random) -> Victim:
    return Victim(chance.choice(ON_HOSTS), _host(chance))


def _server(chance: random.Random) -> Victim:
    service = _service(chance)
    return Victim(service, service)


def _severed(chance: random.Random) -> Fault:
    one, other = chance.sample(HOSTS, 2)
    return Severed(one, other)


SERVERS: tuple[Draw, ...] = (
    lambda chance: Slow(_service(chance), chance.choice(DELAYS_S)),
    lambda chance: CutOff(_service(chance)),
    lambda chance: Stopped(_server(chance)),
    lambda chance: Killed(_server(chance)),
    lambda chance: DiskFull("s3"),
    lambda chance: ClockJump("driver", chance.choice(JUMPS_S)),
    lambda chance: Stopped(DRIVER),
)

CLUSTER = Setting(
    HOSTS,
    (
        *SERVERS,
        lambda chance: LinkDown(_host(chance)),
        _severed,
        lambda chance: Stopped(_process_of_host(chance)),
        lambda chance: Killed(Victim("executor", _host(chance))),
        lambda chance: Killed(Victim("python", _host(chance))),
        lambda chance: Killed(Victim("worker", _host(chance))),
        lambda chance: ClockJump(_host(chance), chance.choice(JUMPS_S)),
        lambda chance: DiskFull(_host(chance)),
        lambda chance: Killed(DRIVER),
        lambda chance: Killed(JVM),
    ),
    Pace((0.5, 4.0), (1.0, 7.0)),
)
"""Three executors, each on a host of its own."""

KILLS_AMONG = 24
"""Of so many blows against a driver alone, all but those in SERVERS kill it."""

ALONE = Setting(
    (),
    (*SERVERS, *[lambda chance: Killed(DRIVER)] * (KILLS_AMONG - len(SERVERS))),
    Pace((0.3, 2.4), (0.1, 1.0)),
)
"""A driver without Spark, which is back at once: it is killed again and again."""


SETTINGS = {"cluster": CLUSTER, "alone": ALONE}


def drawn(seed: int, length_s: float, setting: Setting, number: int = 0) -> tuple[Blow, ...]:
    """The blows of a round, by its number, as they strike; all are healed when the time is over.

    The deck is dealt to its end before it is shuffled again, so that each kind comes equally often.
    Where a fault would touch what another one has struck, the next one of the deck comes first.
    """
    chance = random.Random(f"nemesis {seed} {number}")
    blows: list[Blow] = []
    busy_until: dict[str, float] = {}
    hand: list[Fault] = []
    now = 0.0
    while True:
        if not hand:
            hand = [draw(chance) for draw in chance.sample(setting.deck, len(setting.deck))]
        now += chance.uniform(*setting.pace.gap_s)
        waits = [max([now, *(busy_until.get(t, 0.0) for t in fault.touches)]) for fault in hand]
        now = min(waits)
        blow = Blow(now, hand.pop(waits.index(now)), chance.uniform(*setting.pace.lasts_s))
        if blow.healed_s > length_s:
            return tuple(blows)
        blows.append(blow)
        busy_until |= dict.fromkeys(blow.fault.touches, blow.healed_s)
