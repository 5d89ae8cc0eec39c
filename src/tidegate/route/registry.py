"""The partitioners that a user may name for a keyed aggregate, between options and plans."""

from __future__ import annotations

from tidegate.errors import OptionError, UnavailableError
from tidegate.route.hash import Hash
from tidegate.route.partitioner import Partitioner

PARTITIONERS: dict[str, type[Partitioner]] = {
    Hash.name: Hash,
}

LATER = ("shuffle", "pk", "cm", "am", "cam", "lm", "auto")
"""Names that are known and not available yet."""

DEFAULT = Hash.name


def known_names() -> list[str]:
    """The names that options know, also those of later versions."""
    return [*PARTITIONERS, *(name for name in LATER if name not in PARTITIONERS)]


def partitioner_of(name: str, where: str = "--partitioner") -> Partitioner:
    """The partitioner of a name; OptionError where there is none."""
    if name in PARTITIONERS:
        return PARTITIONERS[name]()
    if name in LATER:
        raise UnavailableError(
            where,
            f"only {' or '.join(PARTITIONERS)} can be used",
            name,
            "The others are not available yet.",
        )
    raise OptionError(where, f"must be one of {', '.join(known_names())}", name)
