"""Mistakes in joins of streams to tables."""

from __future__ import annotations

from mutants.mutant import Mutant

_INDEX = "tests/operate/table_join"
_DRIVER = "tests/driver/test_tables.py"

MUTANTS = (
    Mutant(
        "the rows of a range are not in the order of the table",
        "operate/table_join/index.py",
        "if not self._in_order and bool((p[1:] == p[:-1]).any()):",
        "if False:",
        _INDEX,
    ),
    Mutant(
        "an interval that ends before a value is taken for one that holds it",
        "operate/table_join/candidate.py",
        "found = known & (first >= 0) & (highs[first] >= values)",
        "found = known & (first >= 0)",
        _INDEX,
    ),
    Mutant(
        "the version of a key is the oldest one",
        "operate/table_join/candidate.py",
        "return np.maximum(last - 1, first), last",
        "return first, np.minimum(first + 1, last)",
        _INDEX,
    ),
    Mutant(
        "rows that one tuple becomes have one place",
        "operate/table_join/join.py",
        "pa.array((seq << PART_BITS) + number)",
        "pa.array(seq << PART_BITS)",
        "tests/property/test_table_join.py",
    ),
    Mutant(
        "a restart reads a table anew",
        "driver/tables.py",
        "            if recorded is None:",
        "            if True:",
        _DRIVER,
    ),
    Mutant(
        "a table that is read again counts only with the next start",
        "driver/pipeline.py",
        "            self.tables.refresh(batch, cut.previous_us)\n",
        "            pass\n",
        _DRIVER,
    ),
)
