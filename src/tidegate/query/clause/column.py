"""Names of the columns that clauses add to a result."""

from __future__ import annotations

KEPT = "kept"
"""The last column of an aggregate that sheds: the share of the group's tuples that were kept."""

EXACT = "exact"
"""The last column of an aggregate within an error: whether all of a row is exact."""

FINAL = "final"
"""The last column of an aggregate with EMIT EVERY: whether no other row comes of its group."""

ENDS = ("_low", "_high")
"""What is added to the name of an aggregate for the ends of its interval."""


def interval_names(name: str) -> tuple[str, str]:
    """The columns after an aggregate: where its exact value is, with the confidence asked for."""
    low, high = ENDS
    return name + low, name + high
