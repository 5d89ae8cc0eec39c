"""Mistakes with tables of Delta Lake and Iceberg."""

from __future__ import annotations

from mutants.mutant import Mutant

_SINK = "tests/sink/lake/test_lake_sink.py"
_SOURCE = "tests/source/lake/test_lake_source.py"

MUTANTS = (
    Mutant(
        "a lakehouse table is not told which batch it gets",
        "sink/lake/delta.py",
        "said = [(self.writer, batch), (self._owner_id, owner)]",
        "said = [(self._owner_id, owner)]",
        _SINK,
    ),
    Mutant(
        "a lakehouse commit is put after one that nobody has looked at",
        "sink/lake/iceberg.py",
        'table.metadata.properties[_RETRIES] = "0"',
        'table.metadata.properties[_RETRIES] = "4"',
        _SINK,
    ),
    Mutant(
        "an earlier owner goes on adding to a lakehouse table",
        "sink/lake/sink.py",
        "        if state.owner > self._owner:\n",
        "        if state.owner > self._owner + 1_000:\n",
        _SINK,
    ),
    Mutant(
        "files of a lakehouse table whose rows wait are forgotten",
        "source/lake/connector.py",
        "            self._again = tuple(unread)\n",
        "            self._again = ()\n",
        _SOURCE,
    ),
    Mutant(
        "rows of a lakehouse table that were rewritten are read again",
        "source/lake/delta.py",
        'if "add" in a and a["add"]["dataChange"]]',
        'if "add" in a]',
        _SOURCE,
    ),
)
