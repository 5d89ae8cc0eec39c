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
        "an interval is found for a tuple of another key",
        "operate/table_join/candidate.py",
        "(keys != NO_KEY) & (self._ends[place] >= values)",
        "(self._ends[place] >= values)",
        _INDEX,
    ),
    Mutant(
        "the version of a key is the oldest one",
        "operate/table_join/candidate.py",
        "return np.where(last > first, last - 1, NO_ROW)",
        "return np.where(last > first, first, NO_ROW)",
        _INDEX,
    ),
    Mutant(
        "rows that one tuple becomes have one place",
        "operate/table_join/join.py",
        "most, placed = int(number.max()), placed + number",
        "most = int(number.max())",
        "tests/property/test_table_join.py",
    ),
    Mutant(
        "a text of a table is grouped by codes that no order has",
        "operate/kernels/order.py",
        "codes.take(encoded.indices), encoded.dictionary.take(order), ordered=True",
        "encoded.indices, encoded.dictionary, ordered=True",
        "tests/operate/kernels/test_group.py",
    ),
    Mutant(
        "the rows of a key of a large table come in another order",
        "operate/table_join/deal.py",
        "np.lexsort((rows.places, rows.hashes))",
        "np.lexsort((-rows.places, rows.hashes))",
        _INDEX,
    ),
    Mutant(
        "a part of a large table ends before its last key",
        "operate/table_join/table_parts.py",
        "np.append(np.searchsorted(hashes, starts), len(hashes))",
        "np.append(np.searchsorted(hashes, starts), len(hashes) - 1)",
        _INDEX,
    ),
    Mutant(
        "a large table is dealt although a join compares no column with =",
        "plan/table/use.py",
        "            use.check_by_key(table, left, [name",
        "            list([name",
        "tests/driver/test_tables_by_key.py",
    ),
    Mutant(
        "a restart reads a table anew",
        "driver/tables.py",
        "            if table.name not in manifest.tables:",
        "            if True:",
        _DRIVER,
    ),
    Mutant(
        "each table has the whole limit to itself",
        "plan/table/use.py",
        "max(most - others, 0)",
        "max(most, 0)",
        "tests/driver/test_tables_by_key.py",
    ),
    Mutant(
        "a table that is read again counts only with the next start",
        "driver/pipeline.py",
        "            self.tables.refresh(batch, cut.previous_us)\n",
        "            pass\n",
        _DRIVER,
    ),
)
