"""The digest of rows beside a plain one that takes a row at a time."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.sink.digest.digest import Digest, row_hashes

_BASE, _PRIME = 0x0B4E0F9A3C6D1E57, 2**61 - 1

_TYPES = {
    "n": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "x": (pa.float64(), st.floats()),
    "s": (pa.string(), st.text(max_size=20)),
    "b": (pa.bool_(), st.booleans()),
    "d": (pa.decimal128(10, 2), st.decimals(-999, 999, places=2)),
    "l": (pa.list_(pa.int64()), st.lists(st.integers(0, 9), max_size=3)),
    "o": (pa.struct([("p", pa.string())]), st.fixed_dictionaries({"p": st.text(max_size=3)})),
}
_ROWS = st.lists(
    st.fixed_dictionaries({name: st.none() | of for name, (_, of) in _TYPES.items()}), max_size=12
)
_SCHEMA = pa.schema([(name, type_) for name, (type_, _) in _TYPES.items()])


def _plain(table: pa.Table) -> int:
    """Row by row, with Python's integers; each row is hashed alone."""
    found = 0
    for at in range(table.num_rows):
        (row,) = row_hashes(table.slice(at, 1).combine_chunks().to_batches()[0]).tolist()
        found = (found * _BASE + (row >> 3) + 1) % _PRIME
    return found


@given(_ROWS, st.data())
def test_any_cut_has_the_digest_of_rows_one_by_one(
    rows: list[dict[str, object]], data: st.DataObject
) -> None:
    table = pa.Table.from_pylist(rows, _SCHEMA)
    cut = data.draw(st.integers(0, len(rows)))
    parts = Digest.of(table.slice(0, cut)).then(Digest.of(table.slice(cut)))
    assert parts == Digest.of(table) == Digest(len(rows), _plain(table))


@settings(max_examples=10)
@given(_ROWS)
def test_loops_and_operations_on_arrays_agree(rows: list[dict[str, object]]) -> None:
    table = pa.Table.from_pylist(rows, _SCHEMA)
    many = pa.concat_tables([table] * (2_048 // max(len(rows), 1) + 1))
    twice = Digest()
    for start in range(0, many.num_rows, 1_000):
        twice = twice.then(Digest.of(many.slice(start, 1_000)))
    assert Digest.of(many) == twice


def test_a_long_text_has_one_digest_whatever_is_beside_it() -> None:
    texts = pa.table({"s": ["x" * 2_000, "short", None]})
    rows = [Digest.of(texts.slice(at, 1)) for at in range(3)]
    assert Digest.of(texts) == rows[0].then(rows[1]).then(rows[2])


def test_different_rows_have_different_digests() -> None:
    cells = [[0.0], [-0.0], [float("nan")], [None], [], [0.0, 0.0], [1.0, 2.0], [2.0, 1.0]]
    found = {Digest.of(pa.table({"x": pa.array(c, pa.float64())})).value for c in cells}
    named = Digest.of(pa.table({"y": pa.array([0.0])})).value
    lists = [[[1], [2]], [[1, 2], []], [None, [1, 2]], [[2, 1], []]]
    nested = {Digest.of(pa.table({"l": pa.array(c, pa.list_(pa.int64()))})).value for c in lists}
    assert len(found | {named} | nested) == len(cells) + 1 + len(lists)


def test_a_saved_digest_comes_back() -> None:
    digest = Digest.of(pa.table({"x": [1, 2, 3]}))
    assert Digest.from_dict(digest.to_dict()) == digest
