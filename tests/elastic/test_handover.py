"""Which handover a switch takes, and why; and what cannot be."""

from __future__ import annotations

import pytest

from tidegate.elastic.handover import (
    AUTO,
    HANDOVERS,
    MOST_BATCHES,
    SHARED,
    STATE,
    WINDOW,
    HandoverChoice,
    Reaching,
    Site,
    check,
    choose,
    finishing,
    foreseen,
    relieved,
)
from tidegate.errors import OptionError
from tidegate.route.former_owner import Position
from tidegate.route.mapping import even, recorded, restored, switched
from tidegate.route.reach import Reach

HOST = Site()
HOSTS = Site(one_host=False)
REMOTE = Site(local=False)


@pytest.mark.parametrize(
    ("asked", "site", "reach", "moved_bytes", "wait_us", "wanted"),
    [
        (
            AUTO,
            HOST,
            Reach(1),
            10**12,
            1,
            HandoverChoice(SHARED, "all instances share the files of one host"),
        ),
        (
            AUTO,
            HOSTS,
            "it has no windows",
            10,
            0,
            HandoverChoice(STATE, "instances are on several hosts, and it has no windows"),
        ),
        (
            AUTO,
            HOSTS,
            Reach(5_000_000),
            600_000_000,
            5_000_000,
            HandoverChoice(
                WINDOW,
                "open windows end within 5 seconds, and 600,000,000 bytes take about 6.00 s "
                "to load",
            ),
        ),
        (
            AUTO,
            REMOTE,
            Reach(5_000_000),
            400_000_000,
            5_000_000,
            HandoverChoice(
                STATE,
                "400,000,000 bytes take about 4.00 s to load, and open windows end within "
                "5 seconds",
            ),
        ),
        (
            AUTO,
            REMOTE,
            Reach(tuples=2_000),
            400_000_000,
            None,
            HandoverChoice(
                STATE,
                "400,000,000 bytes take about 4.00 s to load, and nobody knows how soon 2,000 "
                "tuples of an input come",
            ),
        ),
        (WINDOW, HOST, Reach(5), 0, 5, HandoverChoice(WINDOW, "asked for")),
        (STATE, HOST, Reach(5), 0, 5, HandoverChoice(STATE, "asked for")),
    ],
)
def test_the_choice(
    asked: str,
    site: Site,
    reach: Reaching,
    moved_bytes: int,
    wait_us: int | None,
    wanted: HandoverChoice,
) -> None:
    assert choose(asked, site, reach, moved_bytes, wait_us) == wanted


@pytest.mark.parametrize(
    ("asked", "site", "message"),
    [
        ("fast", HOST, "--handover: must be one of auto, shared, state, window; got fast"),
        (SHARED, HOSTS, "shared needs instances and checkpoint on one host; got instances are on"),
        (SHARED, REMOTE, "shared needs .* on one host; got the store is remote. Use --handover"),
        (
            WINDOW,
            HOST,
            "window is for joins, and for windows of time or of tuples without groups; "
            "got own: it has no windows.",
        ),
    ],
)
def test_what_cannot_be_is_refused(asked: str, site: Site, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        check(asked, site, {"minutes": Reach(60), "own": "it has no windows"})


def test_what_can_be_is_not_refused() -> None:
    said = [check(asked, HOST, {"minutes": Reach(60)}) for asked in HANDOVERS]
    assert said == [None] * 4


def test_what_is_foreseen() -> None:
    assert foreseen(AUTO, HOSTS, None) == "nothing, it keeps no state"
    assert foreseen(AUTO, HOST, Reach(7)) == "shared (all instances share the files of one host)"
    assert foreseen(WINDOW, HOST, Reach(7)) == "window (asked for)"
    assert foreseen(AUTO, HOSTS, Reach(2_000_000, 5_000)) == (
        "window where 2 seconds of time and 5,000 tuples of an input pass sooner than the state "
        "that moves is loaded at 100 MB/s, else state (instances are on several hosts)"
    )


def test_owners_by_bucket_and_time() -> None:
    """Each time of each bucket has one owner; formers leave when the frontier is at their end."""
    first = even(8, 4)
    second = finishing(first, switched(first, 2), until_us=100, over_us=160)
    third = finishing(second, switched(second, 3), until_us=130, over_us=190)
    assert [f.epoch for f in third.formers] == [0, 1]
    assert (first.running, second.running, third.running) == (4, 4, 4)
    for us, mapping in ((99, first), (100, second), (129, second), (130, third), (999, third)):
        owners = third.owners_at(range(8), [us] * 8)
        assert tuple(owners.tolist()) == mapping.owners
    later = third.lasting(160)
    assert [f.epoch for f in later.formers] == [1]
    assert later.running == 3
    assert third.lasting(159) is third
    assert third.lasting(190).formers == ()
    assert restored(**recorded(third)) == third
    assert third.continues(second)
    assert not third.continues(second.lasting(160))
    assert later.continues(third.lasting(160))
    assert not switched(second, 3).continues(second)


def test_an_epoch_that_has_stored_nothing_has_nothing_to_finish() -> None:
    first = even(4, 2)
    second = finishing(first, switched(first, 1), until_us=100, over_us=160)
    third = finishing(second, switched(second, 3), until_us=100, over_us=160)
    assert third.formers == second.formers
    assert not third.continues(second)


def test_where_windows_count_tuples_former_owners_are_done_by_number() -> None:
    """And what they wait for may never come: then they are relieved."""
    first = even(8, 4)
    ends = {"until_us": 100, "over_us": 160}
    left = Position("left", 50, 57)
    second = finishing(first, switched(first, 2), **ends, positions=(left,), batch=3)
    (former,) = second.formers
    assert (former.until("left"), former.until("right")) == (50, 100)
    assert restored(**recorded(second)) == second
    assert second.lasting(160, {"left": 56}) is second
    assert second.lasting(159, {"left": 57}) is second
    assert second.lasting(160, {"left": 57}).formers == ()
    assert relieved(second, 3 + MOST_BATCHES - 1) is second
    assert relieved(second, 3 + MOST_BATCHES).formers == ()
    timed = finishing(first, switched(first, 2), **ends, batch=3)
    assert relieved(timed, 10**9) is timed
