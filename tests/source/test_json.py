from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracle import text as twin
from tests.source.check import all_rows, check_times, fresh, read_range
from tests.source.test_csv import opened, times
from tidegate.errors import SourceError
from tidegate.schema import TIME
from tidegate.source.text.depth import DEEPEST, has_deep, is_deep

values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.integers(-9, 9),
    st.integers(-9, 9),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text('ab"é\\', max_size=4),
)
objects = st.fixed_dictionaries({}, optional={"t": times, "a": values, "b": values, "c": values})
line = st.one_of(
    objects.map(json.dumps),
    objects.map(json.dumps),
    objects.map(lambda o: f"  {json.dumps(o, ensure_ascii=False)} "),
    st.sampled_from(
        ["", "  ", "5", "[1]", '{"a":', "}", '{"a":1} {"a":2}', '{"a":1}}', "{", "null"]
    ),
)


@settings(max_examples=max(50, settings().max_examples))
@given(st.data(), st.lists(line, max_size=12), st.booleans(), st.integers(1, 200))
def test_any_range_equals_the_rows_read_one_at_a_time(
    folder: Path,
    data: st.DataObject,
    lines: list[str],
    closed: bool,
    block_bytes: int,
) -> None:
    lines = ['{"t":"2024-01-01T00:00:00","a":1,"b":"x"}'] * (len(lines) + 1) + lines
    text = ("\n".join(lines) + ("\n" if closed else "")).encode()
    path = fresh(folder, "a.jsonl")
    source = opened(path, text, block_bytes=block_bytes)
    expected = twin.json_rows(text, source.schema)
    assert all_rows(source) == len(expected)
    assert source.ended()
    assert read_range(source, 0, len(expected)) == expected
    start = data.draw(st.integers(0, len(expected)))
    stop = data.draw(st.integers(start, len(expected)))
    assert read_range(source, start, stop) == expected[start:stop]
    check_times(source, "t", expected, start, stop)


def test_types_and_nested_values(tmp_path: Path) -> None:
    data = (
        b'{"t":"2024-01-01T00:00:00Z","i":1,"x":1,"b":true,"g":{"p":1},"l":[1,2],"n":null}\n'
        b'{"t":"2024-01-01T00:00:01Z","i":2,"x":1.5,"b":false,"g":{"p":2,"q":"z"},"l":[]}\n'
    )
    source = opened(tmp_path / "a.ndjson", data)
    assert source.schema == pa.schema(
        [
            ("t", TIME),
            ("i", pa.int64()),
            ("x", pa.float64()),
            ("b", pa.bool_()),
            ("g", pa.struct([("p", pa.int64()), ("q", pa.string())])),
            ("l", pa.list_(pa.int64())),
            ("n", pa.string()),
        ]
    )
    assert source.extend(5) == 2
    rows = source.reader(0, 2).read(["g", "l"]).table.to_pylist()
    assert rows == [
        {"g": {"p": 1, "q": None}, "l": [1, 2]},
        {"g": {"p": 2, "q": "z"}, "l": []},
    ]


def test_times_in_fractions_and_zones_are_times(tmp_path: Path) -> None:
    data = b'{"t":"2024-01-01 00:00:00.25","u":"2024-01-01T02:00:00+02:00","v":"x"}\n'
    source = opened(tmp_path / "a.json", data)
    assert [str(f.type == TIME) for f in source.schema] == ["True", "True", "False"]
    source.extend(1)
    assert source.times(0, 1)[0].tolist() == [1704067200_250000]


def test_the_usual_kind_counts_and_the_others_are_rejected(tmp_path: Path) -> None:
    data = b"".join(
        [
            b'{"t":"2024-01-01T00:00:00","fare":"free"}\n',
            b'{"t":"2024-01-01T00:00:01","fare":2.5}\n',
            b"not json\n",
            b'{"t":"2024-01-01T00:00:02","fare":3}\n',
            b'{"t":"2024-01-01T00:00:02","fare":1,"fare":2}\n',
            b'{"t":"when?","fare":1}\n',
            b'{"t":"2024-01-01T00:00:03","fare":1,"note":"\xff"}\n',
            b'["t"]\n',
        ]
    )
    source = opened(tmp_path / "a.jsonl", data)
    assert source.schema.field("fare").type == pa.float64()
    assert source.extend(99) == 8
    rows = source.reader(0, 8).read(["fare"])
    assert rows.seq.tolist() == [1, 3]
    reasons = {r.seq: r.reason for r in rows.rejects}
    assert reasons[0] == 'line 1, column fare: "free" is not a double'
    assert reasons[2].startswith("line 3: not JSON: ")
    assert reasons[4] == "line 5: Column(/fare) was specified twice"
    assert reasons[5] == "line 6, column t: 'when?' is not a timestamp"
    assert reasons[6] == "line 7: not UTF-8 at byte 44 of the line"
    assert reasons[7] == "line 8: a line must be one JSON object"
    assert {r.seq: r.raw for r in rows.rejects}[2] == "not json"


def test_later_blocks_of_another_kind_are_rejected_not_fatal(tmp_path: Path) -> None:
    first = b'{"t":"2024-01-01T00:00:00","a":1}\n' * 3
    later = b'{"t":"2024-01-01T00:00:00","a":1.5}\n' * 50 + b'{"t":"2024-01-01T00:00:00","a":2}\n'
    source = opened(tmp_path / "a.jsonl", first + later, block_bytes=len(first))
    assert all_rows(source) == 54
    rows = source.reader(0, 54).read(["a"])
    assert rows.seq.tolist() == [0, 1, 2, 53]
    assert rows.rejects[0].reason == "line 4, column a: 1.5 is not a bigint"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'[{"t":"2024-01-01"}]\n', "one JSON object; got a JSON array"),
        (b"hello\n", "one JSON object; got 'hello'"),
        (b"\n", "a row must be there"),
        (b'{"t":5}\n', "time column t must be a timestamp or a date; got bigint"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        opened(tmp_path / "a.json", data)


def nested(levels: int, opening: str, closing: str) -> str:
    """A line with as many levels, itself included; the string has brackets that do not count."""
    inside = opening * (levels - 1) + "1" + closing * (levels - 1)
    return f'{{"t":"2024-01-01","s":"{"[" * 80}\\"{"{" * 80}","a":{inside}}}'


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
@pytest.mark.parametrize("levels", [51, 200, 3_000, 200_000])
@pytest.mark.parametrize("block_bytes", [16, 10**7])
def test_a_line_that_is_nested_too_deep_is_rejected_and_the_others_are_read(
    tmp_path: Path, opening: str, closing: str, levels: int, block_bytes: int
) -> None:
    near = nested(50, opening, closing)
    data = "\n".join([near, nested(levels, opening, closing), near]).encode()
    source = opened(tmp_path / "a.json", data, block_bytes=block_bytes)
    assert all_rows(source) == 3
    rows = source.reader(0, 3).read(["a"])
    assert rows.seq.tolist() == [0, 2]
    assert [r.reason for r in rows.rejects] == ["line 2: nested deeper than 50 levels"]


def test_a_file_whose_only_line_is_nested_too_deep_is_refused(tmp_path: Path) -> None:
    line = nested(3_000, "[", "]").encode()
    with pytest.raises(SourceError, match="one JSON object; got one that is nested deeper than 50"):
        opened(tmp_path / "a.json", line)


@given(st.lists(st.text('[]{}"\\a', max_size=120), min_size=1, max_size=4))
def test_depth_is_counted_as_one_would_by_hand(texts: list[str]) -> None:
    lines = ["{" + text for text in texts]
    deep = [by_hand(line) > DEEPEST for line in lines]
    assert [is_deep(line.encode()) for line in lines] == deep
    assert has_deep("\n".join(lines).encode(), len(lines)) == any(deep)


def by_hand(line: str) -> int:
    """The most brackets open at once outside of strings that are closed."""
    depth, deepest, at = 0, 0, 0
    while at < len(line):
        closing = string_end(line, at) if line[at] == '"' else None
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(line[at], 0)
        deepest = max(deepest, depth)
        at = at + 1 if closing is None else closing
    return deepest


def string_end(line: str, at: int) -> int | None:
    at += 1
    while at < len(line) and line[at] != '"':
        at += 2 if line[at] == "\\" else 1
    return at + 1 if at < len(line) else None
