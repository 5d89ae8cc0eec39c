"""Finds the names that a checkpoint has for the state that a query keeps now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidegate.plan.compatibility.query_record import RecordedSubquery


def stored_names(
    wanted: Mapping[str, str], kept: RecordedSubquery | None, letter: str, reuse: bool = False
) -> dict[str, str]:
    """By name in a new plan, the name that the checkpoint has for a column of the same meaning.

    `wanted` has the meanings. What the checkpoint does not have gets a name that is not taken in
    it, so that nothing else is read for it. With `reuse` several may share one column.
    """
    if kept is None:
        return {name: name for name in wanted}
    there = {n: m for n, m in kept.record.columns.items() if n[:1] == letter}
    number = max(kept.record.used, next_number(there))
    chosen: dict[str, str] = {}
    for name, meaning in wanted.items():
        alike = [n for n, m in there.items() if m == meaning]
        free = [n for n in alike if n not in chosen.values()] or (alike if reuse else [])
        if free:
            chosen[name] = free[0]
        else:
            chosen[name] = f"{letter}{number}"
            number += 1
    return chosen


def next_number(names: Iterable[str]) -> int:
    """The first number that none of the names has after its letter; answers have others too."""
    return 1 + max((int(name[1:]) for name in names if name[1:].isdigit()), default=-1)
