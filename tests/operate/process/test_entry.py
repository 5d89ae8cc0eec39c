"""The rows of entries: numbers by which keys are found, and the newest row of a name."""

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

from tidegate.operate.layered_state import HIDES
from tidegate.operate.process.entry import ENTRY, HEAD, EntryNames, StateRow, newest, table_of

NAMES = EntryNames("x")
NOON, DAY = datetime(1990, 1, 1, 12, tzinfo=UTC), timedelta(days=1)
NUMBERS = st.integers(-(2**65), 2**65) | st.floats(allow_nan=False) | st.booleans()


@given(NUMBERS)
def test_numbers_that_are_equal_are_found_alike(number: Any) -> None:
    for kind in (float, complex, Decimal, np.float64, np.int64, np.float32, bool, math.trunc):
        with suppress(OverflowError, ValueError, RuntimeWarning):
            other = kind(number)
            if other == number and hash(other) == hash(number):
                assert NAMES.entry(other) == NAMES.entry(number)
                assert NAMES.entry((other, "a")) == NAMES.entry((number, np.str_("a")))
                pair = frozenset({other, b""})
                assert NAMES.entry(pair) == NAMES.entry(frozenset({np.bytes_(b""), number}))


@given(st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1)), st.integers(-1400, 1400))
def test_times_that_are_equal_are_found_alike(moment: datetime, minutes: int) -> None:
    aware = moment.replace(tzinfo=UTC)
    other = aware.astimezone(timezone(timedelta(minutes=minutes)))
    berlin = aware.astimezone(ZoneInfo("Europe/Berlin"))
    for one in (aware, other, berlin):
        for two in (aware, other, berlin, berlin.replace(fold=1 - berlin.fold)):
            if one == two:
                assert NAMES.entry(one) == NAMES.entry(two)
    assert NAMES.entry(moment) == NAMES.entry(moment.replace(fold=1))


def test_keys_that_are_not_equal_seldom_meet() -> None:
    keys = [k for i in range(5_000) for k in (f"driver-{i}", i, (i, "a"), i + 0.5, NOON + i * DAY)]
    found = {NAMES.entry(key) for key in keys}
    assert len(found) > 0.999 * len(keys)
    assert all(e is not None and HEAD < e < HIDES for e in found)


NOT_EQUAL = [math.nan, Decimal("NaN"), complex(1, math.nan), (1, (math.nan,))]
OTHERS = [time(1), Fraction(1, 3), np.datetime64(1, "s"), np.complex64(1), object(), len]


@pytest.mark.parametrize("key", [*NOT_EQUAL, *OTHERS], ids=lambda key: type(key).__name__)
def test_of_other_keys_nothing_is_promised(key: Any) -> None:
    assert NAMES.entry(key) is None


PRINTED = """
from datetime import date
from tidegate.operate.process.entry import EntryNames

keys = ["a", 1, 2.5, None, (1, "b"), frozenset({"a", "b", "c"}), date(2024, 1, 1)]
print([EntryNames("x").entry(key) for key in keys])
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
    assert f"[{NAMES.entry('a')}, {NAMES.entry(1.0)}, {NAMES.entry(2.5)}, " in told[0]


def test_attributes_do_not_share_names() -> None:
    one, other = EntryNames("a"), EntryNames('a":')
    assert not other.prefix.startswith(one.prefix)
    assert one.key(one.name(b"1")) == b"1"
    assert one.entry(1) != other.entry(1)


def rows_of(*rows: tuple[int, StateRow]) -> pa.Table:
    return pa.concat_tables([table_of([(bucket, [row])]) for bucket, row in rows])


def test_the_newest_row_of_a_name_stays() -> None:
    one, two = StateRow.of(7, 0, b"one", b"1"), StateRow.of(7, 1, b"two", b"2")
    head = StateRow.head(5, b"h")
    found = newest(
        rows_of((1, two), (0, one), (0, head), (0, two), (0, StateRow.gone(7, b"one")), (1, head))
    )
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
        row = StateRow.gone(entry, name) if gone else StateRow.of(entry, number, name, b"")
        rows.append((bucket, row))
    table = rows_of(*rows)
    stepped = newest(pa.concat_tables([newest(table.slice(0, cut)), newest(table.slice(cut))]))
    at_once = newest(table)
    columns = [(name, "ascending") for name in ("bucket", ENTRY, "name")]
    assert stepped.sort_by(columns).equals(at_once.sort_by(columns))
    assert at_once.num_rows == len({(b, r.name) for b, r in rows})
