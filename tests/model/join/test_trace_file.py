"""Traces from CSV files: what is read of them, and what is said of those that are wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tidegate.errors import SourceError
from tidegate.model.join.trace_file import read_trace

GOOD = "t,r,s\n0,1,2\n1,3,4\n2,5,6\n"
COLUMNS = "t, r and s, or t, r1, r2, ..., s1, s2, ..."


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def wrote(text: str | bytes) -> str:
    Path("t.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    return "t.csv"


def test_times_and_rates() -> None:
    trace = read_trace(wrote(GOOD))
    assert trace.times.tolist() == [0, 1, 2]
    assert trace.r.tolist() == [[1], [3], [5]]
    assert trace.s.tolist() == [[2], [4], [6]]
    assert trace.step_s == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "\ufefft,r,s\r\n0,1,2\r\n1,3,4\r\n2,5,6\r\n",  # as spreadsheets write it
        " t , s,r \n0, 2,1\n\n1,4,3\n2,6,5",
        '"t","r","s"\n"0","1","2"\n1,3.0,4e0\n2,5,6\n',
    ],
)
def test_other_ways_to_write_the_same(text: str) -> None:
    trace = read_trace(wrote(text))
    assert (trace.times.tolist(), trace.r.tolist(), trace.s.tolist()) == (
        [0, 1, 2],
        [[1], [3], [5]],
        [[2], [4], [6]],
    )


def test_several_sources_in_the_order_of_their_numbers() -> None:
    trace = read_trace(wrote("t,r2,r1,s1,s2,s3\n7,20,10,1,2,3\n8,21,11,4,5,6\n"))
    assert trace.times.tolist() == [7, 8]
    assert trace.r.tolist() == [[10, 20], [11, 21]]
    assert trace.s.tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize(
    ("times", "rates", "seconds"),
    [
        ([0, 3], [6, 9], [6, 6, 6, 9, 9, 9]),
        ([0, 0.5, 1, 1.5], [2, 4, 6, 8], [3, 7]),
        ([0, 1.5], [2, 8], [2, 5, 8]),
        ([0, 0.4, 0.8], [5, 10, 20], [10, 20]),  # a last second that is only begun
        ([12.25], [3], [3]),
    ],
)
def test_one_record_a_second_whatever_the_step(
    times: list[float], rates: list[float], seconds: list[float]
) -> None:
    lines = [f"{t},{rate},{rate}" for t, rate in zip(times, rates, strict=True)]
    trace = read_trace(wrote("\n".join(["t,r,s", *lines])))
    assert trace.step_s == 1.0
    assert trace.times.tolist() == [times[0] + i for i in range(len(seconds))]
    assert trace.r[:, 0].tolist() == pytest.approx(seconds)
    assert np.array_equal(trace.r, trace.s)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", f"t.csv: a trace must have the columns {COLUMNS}; got an empty file."),
        ("\n \n", f"t.csv: a trace must have the columns {COLUMNS}; got an empty file."),
        (
            "t,r,s\n",
            "t.csv: a trace must have rates; got no line after the names of the columns.",
        ),
        (
            "0,140,140\n1,140,140\n",
            f"t.csv: the first line must name the columns {COLUMNS}; got 0,140,140. Write for "
            "example t,r,s as the first line.",
        ),
        (
            "t,r,rate\n0,1,2\n",
            "t.csv: no column of a trace has this name; got rate. There are: t, r, s, r1, r2, "
            "s1, s2.",
        ),
        (
            "T,r,s\n0,1,2\n",
            "t.csv: no column of a trace has this name; got T. Did you mean t? There are: t, r, "
            "s, r1, r2, s1, s2.",
        ),
        ("t,r,r\n0,1,2\n", "t.csv: a column can be there once; got r twice."),
        (
            "t,r\n0,1\n",
            f"t.csv: a trace must have the columns {COLUMNS}; got t, r without s.",
        ),
        (
            "r1,r2\n0,1\n",
            f"t.csv: a trace must have the columns {COLUMNS}; got r1, r2 without t and s.",
        ),
        (
            "t,r,r1,s\n0,1,2,3\n",
            "t.csv: the sources of r must be one column r, or r1, r2 and so on; got r, r1.",
        ),
        (
            "t,r1,r3,s\n0,1,2,3\n",
            "t.csv: the sources of r must be one column r, or r1, r2 and so on; got r1, r3.",
        ),
        ("t,r,s\n0,1,2\n1,3\n", "t.csv line 3: must have 3 values: t, r, s; got 2."),
        ("t,r,s\n0,1,2\n1,many,4\n", "t.csv line 3: r must be a number; got 'many'."),
        ("t,r,s\n0,1,2\n1,,4\n", "t.csv line 3: r must be a number; got nothing."),
        ("t,r,s\n0,1,nan\n", "t.csv line 2: s must be a finite number; got nan."),
        ("t,r,s\n0,1,-inf\n", "t.csv line 2: s must be a finite number; got -inf."),
        (
            "t,r,s\n0,1,-5\n",
            "t.csv line 2: s is a rate and must not be negative; got -5.",
        ),
        (
            "t,r,s\n0,1,2\n2,1,2\n1,1,2\n",
            "t.csv line 4: times must be in order; got 1 after 2. Sort the lines by t.",
        ),
        (
            "t,r,s\n0,1,2\n1,1,2\n1,1,2\n",
            "t.csv line 4: a time can be there once; got t = 1 again.",
        ),
        (
            "t,r,s\n0,1,2\n1,1,2\n2,1,1\n5,1,2\n",
            "t.csv line 5: times must be evenly apart, here by 1 s; got 5 after 2. Write a line "
            "for every time; a rate may be 0.",
        ),
        (
            "t,r,s\n0,1,2\n1,1,2\n5,1,2\n",
            "t.csv line 4: times must be evenly apart, here by 1 s; got 5 after 1. Write a line "
            "for every time; a rate may be 0.",
        ),
        (
            b"t,r,s\n0,1,\xff\n",
            "t.csv: a trace must be UTF-8 text; got the byte 0xff at position 10. Save it as "
            "UTF-8.",
        ),
    ],
)
def test_what_is_wrong_is_said(text: str | bytes, message: str) -> None:
    with pytest.raises(SourceError) as error:
        read_trace(wrote(text))
    assert str(error.value) == message


def test_a_file_that_is_not_there() -> None:
    wrote(GOOD)
    for path, message in {
        "u.csv": "u.csv: a trace must be a CSV file; got no such file. Did you mean t.csv?",
        "no/rates.csv": (
            "no/rates.csv: a trace must be a CSV file; got no such file. Check the path."
        ),
        ".": ".: a trace must be a CSV file; got a folder. Name a file in it.",
    }.items():
        with pytest.raises(SourceError) as error:
            read_trace(path)
        assert str(error.value) == message
