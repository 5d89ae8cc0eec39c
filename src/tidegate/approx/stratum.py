"""What is kept of a stream by concept, in one pass: between tuples with priorities and operators.

A **stratum** is a group in a pane. Of each, the tuples with a priority below a limit are kept, and
where these are fewer than a few, the few of lowest priority: the sample of `approx.sample`. How
many tuples it has comes with them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidegate.approx.array import Ints, Words


@dataclass(frozen=True)
class Strata:
    """What is kept: positions, ascending, the priorities there, and how many tuples each stands
    for. One tuple of a stratum has the number of all that it has, the others have 0."""

    rows: Ints
    priority: Words
    tuples: Ints


def strata(
    codes: Ints, groups: int, panes: tuple[Ints, int], priority: Words, fewest: int, limit: int
) -> Strata:
    """Choose among tuples of groups in [0, groups); `panes` are their times and the panes' length.

    O(tuples + groups) in a compiled loop, most of it one comparison for a tuple. Memory for the
    groups, not the strata. Fastest where times ascend; else tuples are put in order of panes first.
    """
    if len(codes) == 0:
        none = np.empty(0, np.int64)
        return Strata(none, np.empty(0, np.uint64), none)
    times, length = panes
    rows, words, tuples, in_order = _chosen(codes, groups, times, length, priority, fewest, limit)
    if in_order:
        return Strata(rows, words, tuples)
    order = np.argsort(times // length, kind="stable")
    columns = codes[order], groups, times[order], length, priority[order]
    rows, words, tuples, _ = _chosen(*columns, fewest, limit)
    ascending = np.argsort(order[rows])
    return Strata(order[rows][ascending], words[ascending], tuples[ascending])


def _chosen(
    codes: Ints, groups: int, times: Ints, length: int, priority: Words, fewest: int, limit: int
) -> tuple[Ints, Words, Ints, bool]:
    from tidegate.approx.stratum_loop import strata_loop

    found: tuple[Ints, Words, Ints, bool] = strata_loop()(
        np.ascontiguousarray(codes, np.int64),
        groups,
        np.ascontiguousarray(times, np.int64),
        length,
        np.ascontiguousarray(priority, np.uint64),
        fewest,
        np.uint64(limit),
    )
    return found


def lowest_lacking(codes: Ints, priority: Words, lacking: Ints) -> tuple[Ints, Ints]:
    """Of each group as many tuples of lowest priority as it lacks: positions, and how many it has.

    Those of a group stand together, by ascending priority. `codes` are the groups of tuples, in
    [0, len(lacking)). O(tuples + groups) in a compiled loop, as long as groups lack few.
    """
    if len(codes) == 0:
        return np.empty(0, np.int64), np.zeros(len(lacking), np.int64)
    from tidegate.approx.stratum_loop import lacking_loop

    found: tuple[Ints, Ints] = lacking_loop()(
        np.ascontiguousarray(codes, np.int64),
        np.ascontiguousarray(priority, np.uint64),
        np.ascontiguousarray(lacking, np.int64),
    )
    return found
