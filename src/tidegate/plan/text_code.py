"""Has the texts of tables that an operator groups by come as codes instead of as texts.

A code is the place of a text among the distinct texts of its column, which a table has in order. So
tuples are grouped by integers, and each text is looked at once for each version of the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace

from tidegate.expression.tree import Column, columns_of
from tidegate.operate.kernels.order import CODED
from tidegate.plan.physical import Prefix


def with_codes(prefix: Prefix, grouped: Collection[str]) -> Prefix:
    """A prefix with codes for those `grouped` outputs that are texts of a table, used once."""
    uses = Counter(name for e in prefix.expressions for name in set(columns_of(e)))
    added = {name for lookup in prefix.lookups for name in lookup.adds}
    coded = {
        e.name: CODED[e.type]
        for name, e in prefix.outputs
        if name in grouped and isinstance(e, Column) and e.type in CODED
        if e.name in added and uses[e.name] == 1
    }
    if not coded or prefix.sieve is not None:
        return prefix
    outputs = (
        (name, Column(e.name, coded[e.name]) if isinstance(e, Column) and e.name in coded else e)
        for name, e in prefix.outputs
    )
    lookups = (replace(k, coded=tuple(n for n in k.adds if n in coded)) for k in prefix.lookups)
    return replace(prefix, outputs=tuple(outputs), lookups=tuple(lookups))
