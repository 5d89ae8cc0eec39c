"""Mistakes in shedding: tuples kept by where they are cut, groups that are lost, wrong scales."""

from __future__ import annotations

from mutants.mutant import Mutant

_TESTS = "tests/property/test_shedding.py"
_STRATA = "tests/approx/test_stratum.py"

MUTANTS = (
    Mutant(
        "a group with too few kept tuples is answered without its spare ones",
        "operate/aggregate/shed/concept_aggregate.py",
        "    if len(extra.present):\n",
        "    if len(extra.present) and has.all():\n",
        _TESTS,
    ),
    Mutant(
        "the spare tuples of a group are the first ones and not the lowest",
        "approx/stratum_loop.py",
        "        elif word < priority[lowest[at - 1]]:\n",
        "        elif False:\n",
        _STRATA,
    ),
    Mutant(
        "a split counts the tuples that it keeps in place of those of the group",
        "approx/stratum_loop.py",
        "            known[at] += _ONE\n",
        "            known[at] += _ONE if word <= known[at + 1] else _NONE\n",
        _STRATA,
    ),
    Mutant(
        "a group that has enough below the rate keeps spare tuples",
        "approx/stratum_loop.py",
        "known[at + 1 + k - below[g]] if below[g] < k else _NONE",
        "known[at + k]",
        _STRATA,
    ),
    Mutant(
        "rows of another subquery are numbered in their batch",
        "execute/task.py",
        "        if prefix.numbered:\n",
        "        if False:\n",
        _TESTS,
    ),
    Mutant(
        "what grows with the tuples is not scaled",
        "plan/aggregate/shed.py",
        "if not function.definition.scales:",
        "if True:",
        _TESTS,
    ),
)
