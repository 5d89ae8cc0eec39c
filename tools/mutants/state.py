"""Mistakes in stored state and the files of sources."""

from __future__ import annotations

from mutants.mutant import STORE, Mutant

MUTANTS = (
    # Compaction and retention.
    Mutant(
        "compaction takes the newest segments for the oldest",
        "state/segment/compaction.py",
        "    for segment in group:\n        rows = read_segment",
        "    for segment in reversed(group):\n        rows = read_segment",
        "tests/state/test_compaction.py",
    ),
    Mutant(
        "compaction keeps dead rows",
        "state/segment/compaction.py",
        "parts.append(rows.filter(pa.array(live(rows, segment), type=pa.bool_())))",
        "parts.append(rows)",
        "tests/state/test_compaction.py",
    ),
    Mutant(
        "a rewrite of segments that are gone is put in place",
        "driver/compactor.py",
        "            if all(s in current for s in group):\n",
        "            if any(s in current for s in group):\n",
        "tests/driver/test_compactor.py",
    ),
    Mutant(
        "segments side by side are merged as if one followed the other",
        "driver/compactor.py",
        "return all(a.high < b.low for a, b in pairwise(group))",
        "return True",
        "tests/driver/test_compactor.py",
    ),
    Mutant(
        "what the newest manifest lists is retired",
        "state/leftover.py",
        "older.names() - previous.names() - current.names()",
        "older.names() - previous.names()",
        STORE,
    ),
    Mutant(
        "what the manifest before lists is retired",
        "state/leftover.py",
        "older.names() - previous.names() - current.names()",
        "older.names() - current.names()",
        STORE,
    ),
    Mutant(
        "a file of the archive takes with it what later states need",
        "state/archive/archive.py",
        "write_archive(self._store.files, found, needed - later, self._store.owner)",
        "write_archive(self._store.files, found, needed, self._store.owner)",
        "tests/state/test_archive.py",
    ),
    Mutant(
        "a start lets go of what states need that are in no archive yet",
        "state/archive/archive.py",
        "needed |= {manifest_name(manifest.number), *manifest.names()}",
        "needed |= {manifest_name(manifest.number)}",
        "tests/state/test_archive.py",
    ),
    Mutant(
        "temporary files stay for ever",
        "state/leftover.py",
        "spare = entry.name in needed or (lasts and not is_temporary(entry.name))",
        "spare = entry.name in needed or lasts or is_temporary(entry.name)",
        STORE,
    ),
    Mutant(
        "a layer that hides nothing any more is kept from compaction",
        "operate/layered_state.py",
        "return segment.name != self.oldest or segment.high < HIDES",
        "return True",
        "tests/operate/process tests/operate/tuple_window tests/driver/test_bucket_state.py",
    ),
    # Segments and sources.
    Mutant(
        "the checksum of a segment is not looked at",
        "state/segment/segment.py",
        "    _check(buffer, segment, store.files.full(segment.path))\n\n\ndef _slices",
        "\n\ndef _slices",
        "tests/state/test_segment.py tests/state/test_inspect.py",
    ),
    Mutant(
        "buckets beside those wanted are read",
        "state/segment/segment.py",
        "for a, b in zip(edges[::2], edges[1::2], strict=True)",
        "for a, b in [(edges[0], edges[-1])]",
        "tests/state/test_segment.py",
    ),
    Mutant(
        "a line that is not complete is taken from a file that grows",
        "source/text/source.py",
        "self._index.grow(self._size, final, wary)",
        "self._index.grow(self._size, True, wary)",
        "tests/source/test_csv.py tests/source/test_json.py",
    ),
    Mutant(
        "positions in a block are those in the file",
        "source/format.py",
        "low, high = max(start - piece.first, 0), min(stop - piece.first, piece.rows)",
        "low, high = 0, min(stop - piece.first, piece.rows)",
        "tests/source/test_csv.py tests/source/test_json.py",
    ),
    Mutant(
        "zeros in front of a number are cut behind the sample",
        "source/text/csv.py",
        "table.num_rows == rows and not self._codes_among_numbers(data, schema)",
        "table.num_rows == rows",
        "tests/source/test_csv.py",
    ),
    Mutant(
        "a decimal may have more digits than its type",
        "source/text/csv.py",
        "column.validate(full=True)",
        "column.validate()",
        "tests/source/test_delimited.py",
    ),
    Mutant(
        "a file of another encoding is split by its bytes",
        "source/text/encoding.py",
        "if codec not in _WIDE:\n        return split(data, final)",
        "if True:\n        return split(data, final)",
        "tests/source/test_reading.py",
    ),
    Mutant(
        "a compressed file is taken for the same without a look inside",
        "source/text/source.py",
        "return digest_unpacked(self.path, self._facts.packing, length)",
        "return self._index.digest",
        "tests/source/test_reading.py",
    ),
)
