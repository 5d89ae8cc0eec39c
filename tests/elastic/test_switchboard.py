"""Requests that wait: the newest counts, whole or not at all, and a batch keeps what it took."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.elastic.request import MappingChange, Move, Rebalance, Request, Scale, Switch
from tidegate.elastic.switchboard import Switchboard, WaitingRequest
from tidegate.errors import OptionError
from tidegate.route.mapping import Mapping, even

BUCKETS = 8
NAMES = ("join", "aggregate", "most")


def loads(name: str) -> Sequence[float]:
    """Uneven, and different for each."""
    return [float((NAMES.index(name) + b * b) % 7) for b in range(BUCKETS)]


def asked(change: MappingChange, by: str = "user") -> WaitingRequest:
    return WaitingRequest(Request(change, by=by), 0.0, "now")


def board_of(*instances: int) -> tuple[Switchboard, dict[str, Mapping]]:
    standing = {name: even(BUCKETS, n) for name, n in zip(NAMES, instances)}
    board = Switchboard()
    board.enter(standing)
    return board, standing


@dataclass(frozen=True)
class Ask:
    """Somebody asks for one subquery or for all."""

    change: MappingChange
    names: tuple[str, ...]


@dataclass(frozen=True)
class Batch:
    """The next batch begins, perhaps with something that an option asks for."""

    scheduled: int | None = None


@dataclass(frozen=True)
class Again:
    """The batch did not fit into memory, and is tried again."""


CHANGES = st.one_of(
    st.builds(Scale, st.integers(0, BUCKETS + 1)),
    st.just(Rebalance()),
    st.builds(Move, st.tuples(st.integers(0, BUCKETS)), st.integers(0, 4)),
    st.builds(
        Switch, st.lists(st.integers(-1, 3), min_size=7, max_size=9).map(tuple), st.integers(1, 4)
    ),
)
EVENTS = st.one_of(
    st.builds(Ask, CHANGES, st.sampled_from([NAMES, *((n,) for n in NAMES)])),
    st.builds(Ask, CHANGES, st.sampled_from([NAMES, *((n,) for n in NAMES)])),
    st.builds(Batch, st.none() | st.integers(1, BUCKETS)),
    st.just(Again()),
)


@given(st.lists(EVENTS, max_size=30), st.tuples(*[st.integers(1, BUCKETS)] * 3))
def test_any_course_is_that_of_the_plain_rules(
    events: list[Ask | Batch | Again], instances: tuple[int, int, int]
) -> None:
    board, standing = board_of(*instances)
    waits: dict[str, MappingChange] = {}
    batch = 0
    board.begin(batch, standing, {}, loads)
    for event in events:
        if isinstance(event, Ask):
            try:
                expected = {n: event.change.after(standing[n], loads(n)) for n in event.names}
            except OptionError as error:
                with pytest.raises(OptionError, match=f"^{re.escape(str(error))}$"):
                    board.ask(asked(event.change), event.names, loads)
            else:
                made = board.ask(asked(event.change), event.names, loads)
                assert {n: of.mapping for n, of in made.items()} == expected
                waits |= dict.fromkeys(event.names, event.change)
        elif isinstance(event, Batch):
            batch += 1
            due = {} if event.scheduled is None else {"join": asked(Scale(event.scheduled), "--x")}
            taken = board.begin(batch, standing, due, loads)
            wanted = {n: a.request.change for n, a in due.items()} | waits
            before, waits = standing, {}
            standing = {
                n: wanted[n].after(m, loads(n)) if n in wanted else m for n, m in before.items()
            }
            assert {n: of.mapping for n, of in taken.items()} == standing
            assert {n: of.before for n, of in taken.items()} == before
            assert not board.refused
        else:
            taken = board.begin(batch, standing, {}, loads)
            assert {n: of.mapping for n, of in taken.items()} == standing
        assert {n: a.request.change for n, a in board.waiting().items()} == waits


def test_a_request_for_all_waits_for_none_where_it_cannot_be_for_one() -> None:
    board, standing = board_of(4, 2, 4)
    board.ask(asked(Scale(3)), ["aggregate"], loads)
    with pytest.raises(OptionError, match="must name an instance that is there, 0 to 1; got 3"):
        board.ask(asked(Move((1,), 3)), NAMES, loads)
    assert {n: str(a.request.change) for n, a in board.waiting().items()} == {
        "aggregate": "scale 3"
    }
    taken = board.begin(1, standing, {}, loads)
    assert [taken[n].mapping.instances for n in NAMES] == [4, 3, 4]


def test_a_request_that_finds_another_mapping_is_refused_for_all() -> None:
    """As when a batch that ran again had another one than the state before it."""
    board, standing = board_of(4, 4, 4)
    board.ask(asked(Move((1,), 3)), NAMES, loads)
    fewer = {**standing, "most": even(BUCKETS, 2)}
    taken = board.begin(1, fewer, {}, loads)
    assert {n: of.mapping for n, of in taken.items()} == fewer
    [(refused, error)] = board.refused
    assert (str(refused.request.change), error.got) == ("move 1 3", "3")


def test_a_batch_that_runs_again_has_its_mappings_and_what_waits_goes_on_waiting() -> None:
    board, standing = board_of(4, 4, 4)
    board.ask(asked(Scale(2)), NAMES, loads)
    taken = board.repeat(7, standing)
    assert {n: of.mapping for n, of in taken.items()} == standing
    assert set(board.waiting()) == set(NAMES)
    assert {of.mapping.instances for of in board.begin(8, standing, {}, loads).values()} == {2}
