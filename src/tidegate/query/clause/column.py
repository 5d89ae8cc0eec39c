"""Names of the columns that clauses add to a result."""

from __future__ import annotations

KEPT = "kept"
"""The last column of a shedding aggregate: the share of the group's tuples that were kept."""

EXACT = "exact"
"""The last column of an aggregate with an error bound: whether the whole row is exact."""

FINAL = "final"
"""The last column of an aggregate with EMIT EVERY: whether no later row of its group comes."""

ENDS = ("_low", "_high")
"""The endings of the names of an interval's lower and upper bound."""


def interval_names(name: str) -> tuple[str, str]:
    """The columns after an aggregate; its exact value is between them, with the confidence."""
    low, high = ENDS
    return name + low, name + high
