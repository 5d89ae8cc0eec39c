"""What two windows have in common, in parts that several instances can add up.

The drift of concepts (`approx.concept`) between two windows, where each instance has some of their
groups. Overlap is that of the groups, as there. Distance is Hellinger's, the root of one less the
sum of sqrt(p q) over the groups, where p and q are their shares of the tuples of either window: of
sqrt(p q) instances can add up their parts without knowing how many tuples the windows have.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt

import numpy as np

from tidegate.approx.concept import Drift, GroupConcept

_GROUPS, _BEFORE, _COMMON = "concept_groups", "concept_groups_before", "concept_groups_common"
_TUPLES, _TUPLES_BEFORE = "concept_tuples", "concept_tuples_before"
_AFFINITY = "concept_affinity"


def drift_parts(before: GroupConcept, after: GroupConcept) -> dict[str, float]:
    """What one instance can say of the groups that it has, to be added up by name."""
    here, there = before.common(after)
    common = np.sqrt(before.tuples[here].astype(np.float64) * after.tuples[there])
    return {
        _GROUPS: len(after.groups),
        _BEFORE: len(before.groups),
        _COMMON: len(here),
        _TUPLES: int(after.tuples.sum()),
        _TUPLES_BEFORE: int(before.tuples.sum()),
        _AFFINITY: float(common.sum()),
    }


def drift_of(parts: Mapping[str, float]) -> Drift | None:
    """The drift, from the sums of what all instances said; None where none had a window before."""
    if not parts.get(_TUPLES) or not parts.get(_TUPLES_BEFORE):
        return None
    either = parts[_GROUPS] + parts[_BEFORE] - parts[_COMMON]
    affinity = parts[_AFFINITY] / sqrt(parts[_TUPLES] * parts[_TUPLES_BEFORE])
    return Drift(parts[_COMMON] / either, sqrt(max(1.0 - affinity, 0.0)))
