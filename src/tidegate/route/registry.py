"""The table of partitioners that a user may name for an aggregate."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from tidegate.errors import OptionError, near
from tidegate.named_parameters import parameters_of
from tidegate.route.auto import Auto
from tidegate.route.hash import Hash
from tidegate.route.load_aware import (
    AffinityByKeys,
    AffinityByTuples,
    FewestKeys,
    Hybrid,
    PartialKey,
    Shuffle,
)
from tidegate.route.partitioner import Partitioner
from tidegate.route.standby import Standby

PARTITIONERS: dict[str, type[Partitioner]] = {
    Hash.name: Hash,
    Shuffle.name: Shuffle,
    PartialKey.name: PartialKey,
    FewestKeys.name: FewestKeys,
    AffinityByKeys.name: AffinityByKeys,
    AffinityByTuples.name: AffinityByTuples,
    Hybrid.name: Hybrid,
    Auto.name: Auto,
    Standby.name: Standby,
}

DEFAULT = Hash.name


def partitioner_of(text: str, where: str = "--partitioner") -> Partitioner:
    """The partitioner of a name, or of a name with parameters; OptionError where there is none.

    The text `lm?d=3&p=0.2` is `Hybrid(d=3, p=0.2)`.
    """
    name = text.partition("?")[0] if isinstance(text, str) else repr(text)
    if name not in PARTITIONERS:
        got = name or "no name"
        raise OptionError(where, "must be a known word", got, near(name, [*PARTITIONERS]))
    make = PARTITIONERS[name]
    known = {field.name: str(field.type) for field in fields(make)}  # type: ignore[arg-type]
    found: dict[str, Any] = {}
    for key, value in parameters_of(text, where):
        if key not in known:
            raise OptionError(where, f"{name} has no parameter of this name", key, near(key, known))
        found[key] = _value(value, known[key], f"{where} {name}?{key}")
    try:
        return make(**found)
    except OptionError as error:
        raise OptionError(
            f"{where} {name}?{error.where}", error.requirement, error.got, error.remedy
        ) from None


def _value(text: str, kind: str, where: str) -> Any:
    if kind == "str":
        return text
    try:
        return int(text) if kind == "int" else float(text)
    except ValueError:
        what = "a whole number" if kind == "int" else "a number"
        raise OptionError(where, f"must be {what}", text) from None
