"""Schedules are drawn from a seed, fair to all kinds, and leave a site as they found it."""

from __future__ import annotations

import signal
from collections import Counter
from itertools import combinations

import pytest

from tests.nemesis.fault import Killed, Stopped, Victim
from tests.nemesis.schedule import ALONE, CLUSTER, HOSTS, SETTINGS, Blow, Setting, drawn
from tests.seed import seeds

LENGTH_S = 600.0


class Ground:
    """A site that is nothing but what is wrong with it."""

    def __init__(self) -> None:
        self.wrong: Counter[tuple[str, ...]] = Counter()
        self.revived: list[Victim] = []

    def link(self, host: str, up: bool) -> None:
        self.wrong["link", host] += -1 if up else 1

    def route(self, one: str, other: str, there: bool) -> None:
        self.wrong["route", one, other] += -1 if there else 1

    def delay(self, service: str, seconds: float) -> None:
        self.wrong["delay", service] += 1 if seconds else -1

    def door(self, service: str, is_open: bool) -> None:
        self.wrong["door", service] += -1 if is_open else 1

    def signal(self, victim: Victim, number: signal.Signals) -> int:
        if number is not signal.SIGKILL:
            self.wrong["stopped", *vars(victim).values()] += 1 if number == signal.SIGSTOP else -1
        return 1

    def revive(self, victim: Victim) -> None:
        self.revived.append(victim)

    def shift(self, place: str, seconds: int) -> None:
        self.wrong["clock", place] += 1 if seconds else -1

    def fill(self, place: str) -> None:
        self.wrong["disk", place] += 1

    def free(self, place: str) -> None:
        self.wrong["disk", place] -= 1


def kind(blow: Blow) -> str:
    fault = blow.fault
    role = fault.victim.role if isinstance(fault, Killed | Stopped) else ""
    return f"{type(fault).__name__} {role}"


@pytest.fixture(params=sorted(SETTINGS))
def setting(request: pytest.FixtureRequest) -> Setting:
    return SETTINGS[request.param]


def test_a_seed_gives_one_schedule(setting: Setting) -> None:
    assert drawn(3, LENGTH_S, setting) == drawn(3, LENGTH_S, setting)
    assert drawn(3, LENGTH_S, setting) != drawn(4, LENGTH_S, setting)


@pytest.mark.parametrize("seed", seeds(20))
def test_what_is_struck_is_struck_by_one_blow_at_a_time(seed: int, setting: Setting) -> None:
    blows = drawn(seed, LENGTH_S, setting)
    assert len(blows) > 60
    assert all(0 < blow.at_s < blow.healed_s <= LENGTH_S for blow in blows)
    for one, other in combinations(blows, 2):
        apart = one.healed_s <= other.at_s or other.healed_s <= one.at_s
        assert apart or not one.fault.touches & other.fault.touches


@pytest.mark.parametrize("seed", seeds(5))
def test_everything_is_healed(seed: int, setting: Setting) -> None:
    blows, ground = drawn(seed, LENGTH_S, setting), Ground()
    for blow in blows:
        assert blow.fault.strike(ground) == 1
    struck = [blow for blow in blows if not isinstance(blow.fault, Killed)]
    assert sum(ground.wrong.values()) == len(struck)
    for blow in blows:
        blow.fault.heal(ground)
    assert not any(ground.wrong.values())
    assert len(ground.revived) == len(blows) - len(struck)


def test_every_kind_is_dealt_as_often() -> None:
    dealt = [blow.fault for blow in drawn(0, LENGTH_S, CLUSTER)]
    kinds = Counter(type(fault).__name__ for fault in dealt)
    assert set(kinds) == {
        *("LinkDown", "Severed", "Slow", "CutOff", "Stopped", "Killed", "ClockJump", "DiskFull")
    }
    roles = {fault.victim.role for fault in dealt if isinstance(fault, Killed)}
    assert roles == {"driver", "jvm", "executor", "python", "worker", "kafka", "postgres", "s3"}
    assert (
        len(dealt) // len(CLUSTER.deck) <= kinds["LinkDown"] <= len(dealt) // len(CLUSTER.deck) + 1
    )
    assert {fault.host for fault in dealt if type(fault).__name__ == "LinkDown"} <= set(HOSTS)


def test_a_driver_alone_is_mostly_killed() -> None:
    kinds = Counter(map(kind, drawn(0, LENGTH_S, ALONE)))
    assert kinds["Killed driver"] > 0.6 * kinds.total()
