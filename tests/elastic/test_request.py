"""What a user writes to change a mapping, and what is said of what cannot be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.elastic.owners import buckets_of, buckets_text, owners_of, whole
from tidegate.elastic.request import MappingChange, Move, Rebalance, Scale, Switch
from tidegate.errors import OptionError
from tidegate.route.mapping import even

EVEN = even(8, 2)
ONES = [1.0] * 8


@given(st.sets(st.integers(0, 200), min_size=1))
def test_buckets_are_read_as_they_are_told(buckets: set[int]) -> None:
    assert buckets_of(buckets_text(sorted(buckets))) == tuple(sorted(buckets))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("3,4,10-12", (3, 4, 10, 11, 12)),
        (" 7 , 3 - 4 ", (3, 4, 7)),
        (5, (5,)),
        (np.int64(5), (5,)),
        ([2, 1, 2], (1, 2)),
        (range(3), (0, 1, 2)),
    ],
)
def test_buckets_in_many_forms(given: Any, expected: tuple[int, ...]) -> None:
    assert buckets_of(given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([0, 1, 0, 2], ((0, 1, 0, 2), 3)),
        (np.array([0, 1]), ((0, 1), 2)),
        ("[0, 1]", ((0, 1), 2)),
        ({0: "0-1,3", 1: [2]}, ((0, 0, 1, 0), 2)),
        ('{"0": "0-1", "2": "2", "1": ""}', ((0, 0, 2), 3)),
        ({0: "0,2"}, ((0, -1, 0), 1)),
    ],
)
def test_mappings_in_many_forms(given: Any, expected: tuple[tuple[int, ...], int]) -> None:
    assert owners_of(given) == expected


MISTAKES: dict[str, tuple[Any, str]] = {
    "no text of buckets": (
        lambda: buckets_of("3-"),
        "move: buckets must look like 3,4,10-12; got 3-.",
    ),
    "backwards": (
        lambda: buckets_of("5-3"),
        "move: buckets must be ranges such as 10-12, below 65,536; got 5-3.",
    ),
    "no bucket": (lambda: buckets_of([]), "move: needs at least one bucket; got none."),
    "no whole bucket": (
        lambda: buckets_of([1.5]),
        "move: buckets must be whole numbers; got 1.5.",
    ),
    "no whole number": (lambda: whole("4", "scale"), "scale: must be a whole number; got '4'."),
    "true": (lambda: whole(True, "scale"), "scale: must be a whole number; got True."),
    "no JSON": (
        lambda: owners_of("[0, 1"),
        "switch: a mapping must be JSON; got [0, 1 (Expecting ',' delimiter: line 1 column 6 "
        "(char 5)). Write the owner of each bucket, as [0, 0, 1, 1], or the buckets of each "
        'instance, as {"0": "0-31", "1": "32-63"}.',
    ),
    "no mapping": (
        lambda: owners_of(4),
        "switch: needs a mapping; got 4. Write the owner of each bucket, as [0, 0, 1, 1], or the "
        'buckets of each instance, as {"0": "0-31", "1": "32-63"}.',
    ),
    "two owners": (
        lambda: owners_of({0: "0-4", 1: "4-7"}),
        "switch: a bucket must have one owner; got 0 and 1 for bucket 4.",
    ),
    "an instance by a name": (
        lambda: owners_of({"a": "0-7"}),
        "switch: instances must be numbers, from 0 on; got 'a'.",
    ),
}


@pytest.mark.parametrize(("wrong", "message"), MISTAKES.values(), ids=MISTAKES)
def test_what_is_written_wrongly(wrong: Any, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        wrong()
    assert str(caught.value) == message


CANNOT_BE: dict[str, tuple[MappingChange, str]] = {
    "none": (Scale(0), "scale: needs at least one instance; got 0."),
    "more than buckets": (
        Scale(9),
        "scale: instances must not outnumber the 8 buckets; got 9. Ask for fewer instances, or "
        "start a new checkpoint with more --buckets.",
    ),
    "no such bucket": (Move((3, 8), 1), "move: buckets must be from 0 to 7; got 8."),
    "no such instance": (
        Move((3,), 2),
        "move: must name an instance that is there, 0 to 1; got 2. `scale` changes how many there "
        "are.",
    ),
    "a bucket is missing": (
        Switch(*owners_of({0: "0-2", 1: "5,7"})),
        "switch: a mapping must give an owner to each of the 8 buckets; got none for buckets "
        "3,4,6. Add what is missing; nothing changed.",
    ),
    "the last are missing": (
        Switch((0, 1, 0, 1, 0, 1, 0), 2),
        "switch: a mapping must give an owner to each of the 8 buckets; got none for bucket 7. "
        "Add what is missing; nothing changed.",
    ),
    "too many": (
        Switch((0,) * 9, 1),
        "switch: a mapping must give an owner to each of the 8 buckets; got one for bucket 8. "
        "Buckets are from 0 to 7.",
    ),
    "an owner that is not there": (
        Switch((0, 1, 2, 3, 0, 1, 2, 3), 3),
        "switch: owners must be instances, 0 to 2; got 3.",
    ),
    "more instances than buckets": (
        Switch((0, 1, 2, 3, 0, 1, 2, 90), 91),
        "switch: a mapping must have from 1 to 8 instances, as many as buckets at most; got 91.",
    ),
}


@pytest.mark.parametrize(("change", "message"), CANNOT_BE.values(), ids=CANNOT_BE)
def test_what_cannot_be(change: MappingChange, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        change.after(EVEN, ONES)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "change", [Scale(2), Rebalance(), Move((1, 3), 1), Switch(EVEN.owners, 2)], ids=str
)
def test_what_is_so_already_is_no_change(change: MappingChange) -> None:
    assert change.after(EVEN, ONES) is EVEN


def test_changes_and_what_they_are_called() -> None:
    moved = Move((0, 2), 1).after(EVEN, ONES)
    assert (moved.epoch, moved.owners) == (1, (1, 1, 1, 1, 0, 1, 0, 1))
    assert Rebalance().after(moved, ONES).owners.count(0) == 4
    assert Switch((0,) * 8, 3).after(EVEN, ONES).instances == 3
    changes = [Scale(4), Rebalance(), Move((3, 4, 10, 11, 12), 1), Switch((0, 1), 2)]
    said = ["scale 4", "rebalance", "move 3,4,10-12 1", "switch to 2 instances"]
    assert [str(c) for c in changes] == said
