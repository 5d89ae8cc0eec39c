"""The seam of operators: how wide it is, and what an operator has that says nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tidegate.operate.operator import Operator, OperatorState, Traits
from tidegate.route.mapping import even


@dataclass(frozen=True)
class Silent(Operator):
    """Says nothing of itself but its kind."""

    kind: ClassVar[str] = "silent"


def test_the_seam_stays_narrow() -> None:
    """What is new about operators belongs into a value of it: traits, state, or the work."""
    members = {name for name in (*vars(Operator), *Operator.__annotations__) if name[0] != "_"}
    assert len(members) <= 15, sorted(members)


def test_an_operator_has_defaults() -> None:
    silent = Silent()  # type: ignore[abstract]
    assert silent.traits == Traits()
    assert silent.traits.waits
    assert silent.traits.limit is None
    assert silent.state.keepers == {}
    assert isinstance(silent.state.reach, str)
    assert (silent.details({}), silent.shown_figures) == ([], ())


def test_an_instance_reads_the_buckets_it_owns_where_nothing_else_is_said() -> None:
    mapping = even(8, 3)
    read = [OperatorState().reads("panes", mapping, i).numbers().tolist() for i in range(3)]
    assert sorted(bucket for found in read for bucket in found) == list(range(8))
    assert all(mapping.owners[bucket] == i for i, found in enumerate(read) for bucket in found)
    assert OperatorState().migration(0, {}, {}) is None
