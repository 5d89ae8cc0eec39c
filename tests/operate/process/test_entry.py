"""The rows of entries: the names of keys, what is found by them, and what of it still counts."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.batch import MAX_US
from tidegate.operate.layered_state import HIDES
from tidegate.operate.process.entry import ENTRY, HEAD, StateRow, newest, table_of
from tidegate.operate.process.key import entry_of, plain_key, prefix_of, span_of
from tidegate.operate.process.value_json import encode

NOON, DAY = datetime(1990, 1, 1, 12, tzinfo=UTC), timedelta(days=1)
NUMBERS = st.integers(-(2**65), 2**65) | st.floats(allow_nan=False) | st.booleans()


@given(NUMBERS)
def test_numbers_that_are_equal_have_one_plain_key(number: Any) -> None:
    assert plain_key(number) == number
    for kind in (float, Decimal, np.float64, np.int64, np.float32, bool, math.trunc):
        with suppress(OverflowError, ValueError, RuntimeWarning):
            other = kind(number)
            if other == number and hash(other) == hash(number):
                assert same(other, number)
                assert same((other, "a"), (number, np.str_("a")))
                assert same(frozenset({other, b""}), frozenset({np.bytes_(b""), number}))


@given(st.decimals(allow_nan=False, places=4) | st.decimals(allow_nan=False, allow_infinity=True))
def test_decimals_that_are_equal_have_one_plain_key(number: Decimal) -> None:
    assert plain_key(number) == number
    if number.is_finite():
        digits = number.as_tuple()
        longer = Decimal((digits.sign, (*digits.digits, 0), int(digits.exponent) - 1))
        assert longer == number
        assert same(longer, number)
    if float(number) == number:
        assert same(float(number), number)


def same(one: Any, other: Any) -> bool:
    return encode(plain_key(one), "") == encode(plain_key(other), "")


@given(st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1)), st.integers(-1400, 1400))
def test_times_that_are_equal_have_one_plain_key(moment: datetime, minutes: int) -> None:
    aware = moment.replace(tzinfo=UTC)
    assert same(aware, aware.astimezone(timezone(timedelta(minutes=minutes))))
    assert same(moment, moment.replace(fold=1))
    assert not same(moment, aware)


def test_a_plain_key_stands_for_itself() -> None:
    for key in ("a", 1, 2.5, None, b"x", NOON, DAY, NOON.date(), (1, ("b", None)), frozenset("ab")):
        assert plain_key(key) is key
    for key in (1.0, True, (1.0,), frozenset({True}), Decimal("1.50"), np.int64(1)):
        assert plain_key(key) is not key


def test_names_that_are_not_equal_seldom_meet() -> None:
    keys = [k for i in range(5_000) for k in (f"driver-{i}", i, (i, "a"), i + 0.5, NOON + i * DAY)]
    names = [prefix_of("x") + encode(key, "")[0].encode() for key in keys]
    found = {entry_of(name) for name in names}
    assert len(found) > 0.999 * len(keys)
    first, after = span_of(prefix_of("x"))
    assert all(HEAD < first <= e < after < HIDES for e in found)


NOT_EQUAL = [math.nan, Decimal("NaN"), (1, (math.nan,)), frozenset({np.float64("nan")})]
OTHERS = [time(1), Fraction(1, 3), np.datetime64(1, "s"), 1j, object(), len]
OTHERS += [NOON.astimezone(ZoneInfo("Europe/Berlin"))]


@pytest.mark.parametrize("key", [*NOT_EQUAL, *OTHERS], ids=lambda key: type(key).__name__)
def test_other_keys_are_refused(key: Any) -> None:
    with pytest.raises(TypeError, match=r"a key .*must be"):
        plain_key(key)


PRINTED = """
from datetime import date
from tidegate.operate.process.key import entry_of, plain_key, prefix_of
from tidegate.operate.process.value_json import encode

keys = ["a", 1, 2.5, None, (1, "b"), frozenset({"a", "b", "c"}), date(2024, 1, 1)]
names = [prefix_of("x") + encode(plain_key(key), "")[0].encode() for key in keys]
print(names, [entry_of(name) for name in names])
"""


def test_the_numbers_are_the_same_in_every_process() -> None:
    told = [
        subprocess.run(
            [sys.executable, "-c", PRINTED],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert told[0] == told[1]
    assert str(entry_of(b'x:"a"')) in told[0]


def rows_of(*rows: tuple[int, StateRow]) -> pa.Table:
    return pa.concat_tables([table_of([(bucket, [row])]) for bucket, row in rows])


def test_the_newest_row_of_a_name_stays() -> None:
    one, two = StateRow(7, 0, 9, b"one", b"1"), StateRow(7, 1, 9, b"two", b"2")
    head, gone = StateRow.head(5, b"h"), StateRow(7 | HIDES, 0, 9, b"one", b"")
    found = newest(rows_of((1, two), (0, one), (0, head), (0, two), (0, gone), (1, head)))
    assert found["bucket"].to_pylist() == [0, 0, 0, 1, 1]
    assert found["name"].to_pylist() == [b"", b"two", b"one", b"", b"two"]
    assert found[ENTRY].to_pylist() == [HEAD, 7, 7 | HIDES, HEAD, 7]
    again = newest(pa.concat_tables([found, rows_of((0, one._replace(number=9)))]))
    assert again["number"].to_pylist()[:3] == [0, 1, 9]
    assert newest(found.slice(0, 0)).num_rows == 0


histories = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from([b"a", b"b", b"c"]), st.booleans()),
    min_size=1,
    max_size=30,
)


@given(histories, st.integers(0, 30))
def test_merging_in_steps_is_merging_at_once(
    history: list[tuple[int, bytes, bool]], cut: int
) -> None:
    """Also where two names have one number."""
    rows = []
    for number, (bucket, name, gone) in enumerate(history):
        entry = 1 + name[0] % 2
        rows.append((bucket, StateRow(entry | HIDES * gone, number, MAX_US, name, b"")))
    table = rows_of(*rows)
    stepped = newest(pa.concat_tables([newest(table.slice(0, cut)), newest(table.slice(cut))]))
    at_once = newest(table)
    columns = [(name, "ascending") for name in ("bucket", ENTRY, "name")]
    assert stepped.sort_by(columns).equals(at_once.sort_by(columns))
    assert at_once.num_rows == len({(b, r.name) for b, r in rows})
