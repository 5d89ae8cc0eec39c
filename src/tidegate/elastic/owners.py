"""Reads buckets and mappings as a person writes them in a command or a call."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import Any

from tidegate.errors import OptionError

MOST = 65_536
"""No query has more buckets: a text like 0-999999999999 is a mistake."""

_MOST_DIGITS = 1_000
"""Python refuses to read numbers of many more."""

NOBODY = -1
"""The owner of a bucket that a mapping does not speak of."""

_SHAPES = (
    "Write the owner of each bucket, as [0, 0, 1, 1], or the buckets of each instance, as "
    '{"0": "0-31", "1": "32-63"}.'
)


def buckets_of(given: object, where: str = "move") -> tuple[int, ...]:
    """Buckets from a number, several of them, or a text such as `3,4,10-12`; ascending."""
    if isinstance(given, str):
        stretches = [_stretch(part, given, where) for part in given.split(",")]
        _check_count(sum(map(len, stretches)), where)
        found = [bucket for stretch in stretches for bucket in stretch]
    elif isinstance(given, Iterable):
        found = [whole(b, where, "buckets must be whole numbers") for b in given]
    else:
        found = [whole(given, where, "buckets must be whole numbers")]
    if not found:
        raise OptionError(where, "needs at least one bucket", "none")
    return tuple(sorted(set(found)))


def buckets_text(buckets: Sequence[int]) -> str:
    """Ascending buckets in few words: 3,4,10-12."""
    stretches: list[list[int]] = []
    for bucket in buckets:
        if stretches and stretches[-1][1] == bucket - 1:
            stretches[-1][1] = bucket
        else:
            stretches.append([bucket, bucket])
    return ",".join(_stretch_text(*stretch) for stretch in stretches)


def owners_of(given: object) -> tuple[tuple[int, ...], int]:
    """The owner of each bucket, and how many instances there are, of a mapping.

    A list has the owner of each bucket, a dictionary the buckets of each instance; a text is
    JSON of one of them. Buckets that a dictionary leaves out have NOBODY.
    """
    if isinstance(given, str):
        given = _parsed(given)
    if isinstance(given, Mapping):
        return _by_instance(given)
    if isinstance(given, Iterable):
        owners = tuple(whole(o, "switch", "owners must be whole numbers") for o in given)
        return owners, max(owners, default=-1) + 1
    raise OptionError("switch", "needs a mapping", repr(given), _SHAPES)


def whole(given: object, where: str, requirement: str = "must be a whole number") -> int:
    """A whole number of any type that is one; not True, and no text."""
    if isinstance(given, bool):
        raise OptionError(where, requirement, repr(given))
    try:
        found = index(given)  # type: ignore[arg-type]
    except TypeError:
        raise OptionError(where, requirement, repr(given)) from None
    if abs(found) >= 2**63:
        raise OptionError(where, requirement, "one of more than 64 bits")
    return found


def _by_instance(given: Mapping[Any, Any]) -> tuple[tuple[int, ...], int]:
    owner: dict[int, int] = {}
    instances = count = 0
    for name, buckets in given.items():
        instance = _instance(name)
        instances = max(instances, instance + 1)
        named = buckets_of(buckets, "switch") if not _is_empty(buckets) else ()
        count += len(named)
        _check_count(count, "switch")
        for bucket in named:
            if bucket < 0:
                raise OptionError("switch", "buckets must not be negative", str(bucket))
            if owner.setdefault(bucket, instance) != instance:
                raise OptionError(
                    "switch",
                    "a bucket must have one owner",
                    f"{owner[bucket]} and {instance} for bucket {bucket}",
                )
    owners = (owner.get(bucket, NOBODY) for bucket in range(max(owner, default=-1) + 1))
    return tuple(owners), instances


def _check_count(count: int, where: str) -> None:
    """Refuse what would take memory and time for nothing, as 0-65535 a thousand times."""
    if count > MOST:
        raise OptionError(where, f"may name {MOST:,} buckets at most", f"{count:,}")


def _is_empty(buckets: object) -> bool:
    return isinstance(buckets, Sequence) and len(buckets) == 0


def _instance(name: object) -> int:
    number = _decimal(name) if isinstance(name, str) else None
    found = whole(
        name if number is None else number, "switch", "instances must be numbers, from 0 on"
    )
    if not 0 <= found < MOST:
        raise OptionError("switch", "instances must be numbers, from 0 on", str(found))
    return found


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        got = f"{text.strip() or 'nothing'} ({error})"
        raise OptionError("switch", "a mapping must be JSON", got, _SHAPES) from None


def _decimal(text: str) -> int | None:
    """A number in digits, MOST where it is larger; None for another text."""
    digits = text.strip()
    if not digits.isdecimal():
        return None
    return min(int(digits), MOST) if len(digits) <= _MOST_DIGITS else MOST


def _stretch(part: str, given: str, where: str) -> range:
    first, sign, last = part.partition("-")
    begin, end = _decimal(first), _decimal(last if sign else first)
    if begin is None or end is None:
        raise OptionError(where, "buckets must look like 3,4,10-12", given or "nothing")
    if end < begin or end >= MOST:
        requirement = f"buckets must be ranges such as 10-12, below {MOST:,}"
        raise OptionError(where, requirement, part.strip())
    return range(begin, end + 1)


def _stretch_text(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"
