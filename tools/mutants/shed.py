"""Mistakes in shedding: tuples kept by where they are cut, groups that are lost, wrong scales."""

from __future__ import annotations

from mutants.mutant import Mutant

_TESTS = "tests/property/test_shedding.py"

MUTANTS = (
    Mutant(
        "a group with too few kept tuples is answered without its spare ones",
        "operate/aggregate/represented.py",
        "        if int(sizes.sum()):",
        "        if int(sizes.sum()) and kept.all():",
        _TESTS,
    ),
    Mutant(
        "the spare tuples of a group are the first ones and not the lowest",
        "operate/aggregate/represented.py",
        "        order = lowest(codes, len(kept), words, self.rule.fewest)\n",
        "        order = np.argsort(codes, kind='stable')\n",
        _TESTS,
    ),
    Mutant(
        "a split counts the tuples that it keeps in place of those of the group",
        "operate/sieve.py",
        "        sizes = np.bincount(packed.codes, minlength=packed.size)\n",
        "        sizes = np.bincount(packed.codes[rows], minlength=packed.size)\n",
        _TESTS,
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
        "plan/shed.py",
        "if function.definition.scales else value",
        "if False else value",
        _TESTS,
    ),
)
