"""Mistakes in balancing by trimming groups."""

from __future__ import annotations

from mutants.mutant import Mutant

_BALANCED = "operate/aggregate/balanced"
_TESTS = "tests/property/test_balance.py"

MUTANTS = (
    Mutant(
        "what was counted of bins is known to the instance that writes it alone",
        f"{_BALANCED}/batch.py",
        "return [Share.for_all(found, SURVEY)]",
        "return [Share(work.mapping.owners[0], found, SURVEY)]",
        _TESTS,
    ),
    Mutant(
        "what was counted of bins is not stored",
        f"{_BALANCED}/batch.py",
        "return self._kept.written(self._work, self._arrived)",
        "return {SURVEY: ()}",
        _TESTS,
    ),
    Mutant(
        "a merged group is trimmed only where all of its parts are to be",
        "operate/aggregate/functions/held_tuples.py",
        "trimmed = np.bincount(groups.codes[flags], minlength=groups.n) > 0",
        "trimmed = np.bincount(groups.codes[flags], minlength=groups.n) > groups.n",
        _TESTS,
    ),
    Mutant(
        "a bucket is trimmed where it is above its own floor",
        "approx/trim.py",
        "return Trim(hot & (load > floor.max())[place], saving, False)",
        "return Trim(hot & (load > floor)[place], saving, False)",
        "tests/approx/test_trim.py",
    ),
    Mutant(
        "a sample is as large as if there were no end of tuples",
        "approx/trim.py",
        "size = size / (1 + size / np.maximum(tuples, 1))",
        "size = size / 1.0",
        "tests/approx/test_trim.py",
    ),
    Mutant(
        "cold groups of a trimmed bucket are trimmed too",
        "approx/trim.py",
        "return Trim(hot & (load > floor.max())[place], saving, False)",
        "return Trim((load > floor.max())[place], saving, False)",
        "tests/approx/test_trim.py",
    ),
)
