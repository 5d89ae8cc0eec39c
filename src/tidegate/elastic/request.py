"""What can be asked of a running query: another mapping of one subquery, or of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from unicodedata import category

from tidegate.batch import EpochId
from tidegate.elastic.owners import NOBODY, buckets_text
from tidegate.errors import OptionError
from tidegate.route.balance import balanced
from tidegate.route.mapping import Mapping, switched

MOST_WHY = 500
"""Characters of a reason."""

_NOT_OF_A_LINE = ("Cc", "Cs", "Zl", "Zp")
"""Control characters, halves of surrogate pairs, and ends of lines."""


class MappingChange(Protocol):
    """One kind of change; it depends on the mapping that is there and on loads alone.

    As a text it is what `tidegate ctl` calls it.
    """

    def after(self, current: Mapping, loads: Sequence[float]) -> Mapping:
        """The mapping of the next epoch, or the current one where nothing is to change.

        `loads` are those of the buckets in recent batches. What cannot be is an OptionError.
        """


@dataclass(frozen=True)
class Scale:
    """Another number of instances, with the fewest moves that leave them even."""

    instances: int

    def __str__(self) -> str:
        return f"scale {self.instances}"

    def after(self, current: Mapping, loads: Sequence[float]) -> Mapping:
        if self.instances < 1:
            raise OptionError("scale", "needs at least one instance", str(self.instances))
        if self.instances > current.buckets:
            raise OptionError(
                "scale",
                f"instances must not outnumber the {current.buckets} buckets",
                str(self.instances),
                "Ask for fewer instances, or start a new checkpoint with more --buckets.",
            )
        return current if self.instances == current.instances else switched(current, self.instances)


@dataclass(frozen=True)
class ScaleEvenly:
    """Another number of instances, with loads that are as even as buckets allow.

    `paces` are as in `Rebalance`.
    """

    instances: int
    paces: tuple[float, ...] = ()

    def __str__(self) -> str:
        return f"scale {self.instances} evenly"

    def after(self, current: Mapping, loads: Sequence[float]) -> Mapping:
        Scale(self.instances).after(current, loads)  # refuses what cannot be
        return balanced(current, loads, self.instances, paces=self.paces)


@dataclass(frozen=True)
class Rebalance:
    """The same instances with evener loads.

    `paces` says how many times as long each instance takes for its work. A slow one gets less.
    """

    paces: tuple[float, ...] = ()

    def __str__(self) -> str:
        return "rebalance"

    def after(self, current: Mapping, loads: Sequence[float]) -> Mapping:
        return balanced(current, loads, paces=self.paces)


@dataclass(frozen=True)
class Move:
    """Give some buckets to one instance, which is there."""

    buckets: tuple[int, ...]
    instance: int

    def __str__(self) -> str:
        return f"move {buckets_text(self.buckets)} {self.instance}"

    def after(self, current: Mapping, loads: Sequence[float]) -> Mapping:
        if not 0 <= self.instance < current.instances:
            raise OptionError(
                "move",
                f"must name an instance that is there, {_numbers(current.instances)}",
                str(self.instance),
                "`scale` changes how many there are.",
            )
        owners = list(current.owners)
        for bucket in self.buckets:
            if not 0 <= bucket < current.buckets:
                raise OptionError(
                    "move", f"buckets must be from 0 to {current.buckets - 1}", str(bucket)
                )
            owners[bucket] = self.instance
        return Switch(tuple(owners), current.instances).after(current, loads)


@dataclass(frozen=True)
class Switch:
    """The owners of all buckets, given one by one, of so many instances."""

    owners: tuple[int, ...]
    instances: int

    def __str__(self) -> str:
        return f"switch to {self.instances} instance{'' if self.instances == 1 else 's'}"

    def after(self, current: Mapping, loads: Sequence[float]) -> Mapping:
        self._check(current.buckets)
        if (self.owners, self.instances) == (current.owners, current.instances):
            return current
        return Mapping(EpochId(current.epoch + 1), self.instances, self.owners)

    def _check(self, buckets: int) -> None:
        requirement = f"a mapping must give an owner to each of the {buckets} buckets"
        given = [b for b, owner in enumerate(self.owners) if owner != NOBODY]
        if given and given[-1] >= buckets:
            remedy = f"Buckets are from 0 to {buckets - 1}."
            raise OptionError("switch", requirement, f"one for bucket {given[-1]}", remedy)
        missing = sorted(set(range(buckets)) - set(given))
        if missing:
            got = f"none for {_buckets(missing)}" if given else "none at all"
            raise OptionError("switch", requirement, got, "Add what is missing; nothing changed.")
        if not 1 <= self.instances <= buckets:
            raise OptionError(
                "switch",
                f"a mapping must have from 1 to {buckets} instances, as many as buckets at most",
                str(self.instances),
            )
        wrong = [o for o in self.owners if not 0 <= o < self.instances]
        if wrong:
            raise OptionError(
                "switch",
                f"owners must be instances, {_numbers(self.instances)}",
                str(wrong[0]),
            )


@dataclass(frozen=True)
class Request:
    """A change that somebody asks for, and why; `subquery` is a name, None for all of them.

    `why` is kept in every manifest while the epoch is among the newest: what is no line of text, or
    has more than MOST_WHY characters, is an OptionError.
    """

    change: MappingChange
    subquery: str | None = None
    by: str = "user"
    why: str = ""

    def __post_init__(self) -> None:
        where = str(self.change).partition(" ")[0]
        if self.subquery is not None:
            text_of(self.subquery, where, "subquery")
        check_why(self.why, where)


def check_why(why: object, where: str) -> None:
    """Refuse a reason that is no line of text, or too long a one for a manifest."""
    text = text_of(why, where, "why")
    if len(text) > MOST_WHY:
        got = f"{len(text):,}"
        raise OptionError(where, f"why must have at most {MOST_WHY} characters", got)
    if any(category(char) in _NOT_OF_A_LINE for char in text):
        raise OptionError(where, "why must be one line of plain text", repr(text))


def text_of(given: object, where: str, name: str) -> str:
    """A text that was given by name; an OptionError for anything else."""
    if not isinstance(given, str):
        raise OptionError(where, f"{name} must be a text", repr(given))
    return given


def _numbers(instances: int) -> str:
    return "0" if instances == 1 else f"0 to {instances - 1}"


def _buckets(numbers: Sequence[int]) -> str:
    return f"bucket{'' if len(numbers) == 1 else 's'} {buckets_text(numbers)}"
