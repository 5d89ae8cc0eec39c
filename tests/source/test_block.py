from __future__ import annotations

import csv
import io
import zlib
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.oracle import text as twin
from tests.source.check import fresh
from tidegate.errors import SourceError
from tidegate.source.files import FilesConnector
from tidegate.source.piece import PieceIndex
from tidegate.source.text import block
from tidegate.source.text.block import BlockIndex, split_csv, split_lines
from tidegate.source.text.source import TextSource

messy = st.text('a",\n\r', max_size=40).map(str.encode)


def records(data: bytes, final: bool = True) -> list[bytes]:
    found = split_csv(data, final)
    return [data[a:b] for a, b in zip(found.starts, found.stops)]


@given(messy)
@example(b'a,"b\nc",d\n"x""y"\n')
@example(b'"a\nb\nc')
@example(b'x"\ny"\n')
@example(b'"a"b"c\nd"\n')
def test_records_are_those_of_the_twin(data: bytes) -> None:
    assert records(data) == twin.csv_records(data)


@given(messy, st.integers(1, 7))
def test_blocks_of_any_size_hold_the_same_records(folder: Path, data: bytes, size: int) -> None:
    path = fresh(folder, "a.csv")
    path.write_bytes(data)
    index = BlockIndex(str(path), 0, split_csv, size)
    while index.grow(len(data), True):
        pass
    found = []
    for part in index.blocks.all:
        inside = records(data[part.offset : part.offset + part.length])
        assert part.first == len(found)
        assert part.rows == len(inside)
        found += inside
    assert found == twin.csv_records(data)


@given(st.lists(st.lists(st.text('ab",\n ', max_size=5), min_size=2, max_size=2), max_size=20))
def test_regular_csv_has_the_records_of_the_standard_library(rows: list[list[str]]) -> None:
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    found = [twin.csv_fields(r.decode()) for r in records(out.getvalue().encode())]
    assert found == rows


def test_an_incomplete_record_waits_until_the_end() -> None:
    assert records(b'a\n"b\n', final=False) == [b"a"]
    assert records(b"a\nb", final=False) == [b"a"]
    assert records(b"a\nb") == [b"a", b"b"]
    assert records(b'a\n"b\nc\n') == [b"a", b'"b', b"c"]


def test_a_quote_that_never_closes_costs_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block, "RECORD_BYTES", 20)
    data = b'1,a\n2,"b\n' + b"3,c\n" * 20
    assert records(data, final=False)[:3] == [b"1,a", b'2,"b', b"3,c"]
    assert len(records(data)) == 22
    long = b'1,"' + b"x\n" * 20 + b'"\n'
    assert records(long)[:2] == [b'1,"x', b"x"]


def test_lines_are_stripped_and_blank_ones_have_no_position() -> None:
    data = b' {"a":1} \r\n\r\n  \n{"a":2}\n\t{"a":3}'
    found = split_lines(data, True)
    assert [data[a:b] for a, b in zip(found.starts, found.stops)] == [
        b'{"a":1}',
        b'{"a":2}',
        b'{"a":3}',
    ]
    assert len(split_lines(data, False)) == 2


def test_within_finds_the_blocks_of_a_range(tmp_path: object) -> None:
    blocks = [block.Block(0, 8, 0, 3), block.Block(8, 8, 3, 2), block.Block(16, 8, 5, 4)]
    pieces = PieceIndex(blocks)
    firsts = lambda a, b: [x.first for x in pieces.within(a, b)]  # noqa: E731
    assert firsts(0, 9) == [0, 3, 5]
    assert firsts(2, 3) == [0]
    assert firsts(3, 5) == [3]
    assert firsts(4, 6) == [3, 5]
    assert firsts(4, 4) == []


@given(messy, messy, st.integers(1, 40))
@example(b"1,2", b"3\n", 40)
@example(b'1,"2\n', b'3"\n', 40)
@example(b"1,2\r", b"\n3,4", 40)
def test_a_file_that_got_longer_is_read_on_where_its_rows_are_the_same(
    folder: Path, data: bytes, more: bytes, size: int
) -> None:
    """And refused exactly where they are not."""
    path = fresh(folder, "marked.csv")
    path.write_bytes(b"t,s\n0,0\n" + data)
    source = _opened(path, size)
    rows = source.extend(1000)
    mark = source.mark(rows)
    assert mark["digest"] == zlib.crc32(path.read_bytes()[: mark["read_bytes"]])
    path.write_bytes(path.read_bytes() + more)
    again = _opened(path, size)
    before, after = records(b"0,0\n" + data), records(b"0,0\n" + data + more)
    if after[: len(before)] == before:
        again.check(mark, rows, again=True)
        assert again.extend(rows) >= rows
    else:
        with pytest.raises(SourceError, match="more of its last line, which was taken as whole"):
            again.check(mark, rows, again=True)


def _opened(path: Path, size: int) -> TextSource:
    (source,) = FilesConnector(str(path), str(path), None, block_bytes=size).discover()
    assert isinstance(source, TextSource)
    return source
