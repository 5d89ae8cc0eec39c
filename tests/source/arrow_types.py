"""A small column of every Arrow type, with what its values are in a query; or None: refused."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import pyarrow as pa

ROWS = 4
WHOLE = [1, 2, 1, None]
WORDS = ["a", "b", "a", None]
BYTES = [b"a", b"b", b"a", None]
PAIRS = [[1, 2], [3, 4], [1, 2], None]
MONEY = [Decimal("1.50"), Decimal("2.25"), Decimal("1.50"), None]
SECOND_US = 1_000_000


class Example(NamedTuple):
    """`values` are None where the engine has no such type; `key` says whether it can be a key."""

    column: pa.Array
    values: list[Any] | None
    key: bool = True


def _storage(type_: Any, rows: list[Any]) -> pa.Array:
    return pa.ExtensionArray.from_storage(type_, pa.array(rows, type_.storage_type))


def _same(type_: pa.DataType, rows: list[Any], key: bool = True) -> Example:
    return Example(pa.array(rows, type_), rows, key)


def _counted(type_: pa.DataType, one: Any) -> Example:
    """Times of one and two units, where one unit is `one`."""
    whole = pa.int32() if type_.bit_width == 32 else pa.int64()
    zero = datetime(1970, 1, 1, tzinfo=UTC) if pa.types.is_timestamp(type_) else 0 * one
    values = [None if n is None else zero + n * one for n in WHOLE]
    return Example(pa.array(WHOLE, whole).cast(type_), values)


def _units() -> dict[str, Example]:
    found = {}
    units = {"s": (SECOND_US, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}
    for unit, (us, many) in units.items():
        numbers = [None if n is None else n * many for n in WHOLE]
        values = [None if n is None else timedelta(microseconds=n * us) for n in WHOLE]
        zero = datetime(1970, 1, 1, tzinfo=UTC)
        times = [None if v is None else zero + v for v in values]
        for zone in (None, "UTC", "America/New_York", "+05:30"):
            column = pa.array(numbers, pa.int64()).cast(pa.timestamp(unit, tz=zone))
            found[f"timestamp {unit} {zone}"] = Example(column, times)
        duration = pa.array(numbers, pa.int64()).cast(pa.duration(unit))
        found[f"duration {unit}"] = Example(duration, values)
        narrow = unit in ("s", "ms")
        clock = pa.array(numbers, pa.int32() if narrow else pa.int64())
        clock = clock.cast(pa.time32(unit) if narrow else pa.time64(unit))
        of_day = [None if t is None else t.time() for t in times]
        found[f"time {unit}"] = Example(clock, of_day)
    return found


def _encoded() -> dict[str, Example]:
    indices = pa.array([0, 1, 0, None], pa.int8())
    views = pa.DictionaryArray.from_arrays(indices, pa.array(["a", "b"], pa.string_view()))
    wide = pa.DictionaryArray.from_arrays(indices, pa.array([1, 2]).cast(pa.decimal256(50, 0)))
    ends = pa.array([1, 2, 3, 4], pa.int32())
    runs = pa.RunEndEncodedArray.from_arrays(ends, pa.array(WORDS, pa.string_view()))
    longer = pa.RunEndEncodedArray.from_arrays(pa.array([2, 6], pa.int32()), pa.array([7, 8]))
    return {
        "dictionary": Example(pa.array(WORDS).dictionary_encode(), WORDS),
        "dictionary of views": Example(views, WORDS),
        "dictionary of wide decimals": Example(wide, None),
        "run ends": Example(runs, WORDS),
        "run ends from within": Example(longer[1:5], [7, 8, 8, 8]),
    }


def _nested() -> dict[str, Example]:
    entries = [[("a", "x")], [("b", None)], [], None]
    struct = [{"x": 1, "y": "a", "z": [1]}, {"x": 2, "y": "b", "z": None}, None, None]
    odd = pa.struct([("x", pa.uint16()), ("y", pa.string_view()), ("z", pa.large_list(pa.uint8()))])
    wide = [{"w": Decimal(1)}, None, None, None]
    nanos = pa.array([[1000], [2000, None], None, []], pa.list_(pa.int64()))
    zero = datetime(1970, 1, 1, tzinfo=UTC)
    micro = timedelta(microseconds=1)
    times = [[zero + micro], [zero + 2 * micro, None], None, []]
    tags, offsets = pa.array([0, 1, 0, 0], pa.int8()), pa.array([0, 0, 1, 2], pa.int32())
    parts = [pa.array([1, 2, 3]), pa.array(["a"])]
    full = [pa.array([1, 2, 3, 4]), pa.array(["a", "b", "c", "d"])]
    dense = pa.UnionArray.from_dense(tags, offsets, parts)
    sparse = pa.UnionArray.from_sparse(tags, full)
    lists = {
        "list": pa.list_(pa.int64()),
        "large list": pa.large_list(pa.int64()),
        "fixed size list": pa.list_(pa.int64(), 2),
        "list view": pa.list_view(pa.int64()),
        "large list view": pa.large_list_view(pa.int64()),
    }
    return {
        **{name: _same(type_, PAIRS, key=False) for name, type_ in lists.items()},
        "list of views": _same(pa.list_(pa.string_view()), [["a"], [], None, ["b"]], key=False),
        "list of times": Example(nanos.cast(pa.list_(pa.timestamp("ns"))), times, False),
        "map": _same(pa.map_(pa.string(), pa.string()), entries, key=False),
        "map of views": _same(pa.map_(pa.string_view(), pa.large_string()), entries, key=False),
        "struct": _same(
            pa.struct([("x", pa.int64()), ("y", pa.string())]), [{"x": 1, "y": "a"}] * 4, key=False
        ),
        "struct of odd parts": _same(odd, struct, key=False),
        "struct of wide decimals": Example(
            pa.array(wide, pa.struct([("w", pa.decimal256(50, 0))])), None
        ),
        "struct of nothing": Example(pa.array([{}, {}, None, {}], pa.struct([])), None),
        "list of wide decimals": Example(
            pa.array([[1], [], None, [2]]).cast(pa.list_(pa.decimal256(50, 0))), None
        ),
        "dense union": Example(dense, None),
        "sparse union": Example(sparse, None),
        "list of unions": Example(pa.ListArray.from_arrays([0, 1, 2, 3, 4], dense), None),
    }


def _extensions() -> dict[str, Example]:
    ids = [UUID(int=5**50), UUID(int=7), UUID(int=7), None]
    texts = [None if i is None else str(i) for i in ids]
    return {
        "uuid": Example(_storage(pa.uuid(), [i and i.bytes for i in ids]), texts),
        "uuid from within": Example(
            _storage(pa.uuid(), [UUID(int=1).bytes, *(i and i.bytes for i in ids)])[1:], texts
        ),
        "json": Example(_storage(pa.json_(), WORDS), WORDS),
        "bool8": Example(_storage(pa.bool8(), [1, 0, 1, None]), [True, False, True, None]),
        "tensor": Example(_storage(pa.fixed_shape_tensor(pa.int32(), [2]), PAIRS), PAIRS, False),
        "opaque": Example(_storage(pa.opaque(pa.large_string(), "t", "v"), WORDS), WORDS),
    }


def examples() -> dict[str, Example]:
    """Every type by a name."""
    found = {
        name: _same(getattr(pa, name)(), WHOLE)
        for name in "int8 int16 int32 int64 uint8 uint16 uint32".split()
    }
    decimals = [None if n is None else Decimal(n) for n in WHOLE]
    floats = [None if n is None else float(n) for n in WHOLE]
    found["uint64"] = Example(pa.array(WHOLE, pa.uint64()), decimals)
    found["float16"] = Example(pa.array(floats).cast(pa.float16()), floats)
    found |= {name: _same(getattr(pa, name)(), floats) for name in ("float32", "float64")}
    for name in ("string", "large_string", "string_view"):
        found[name] = _same(getattr(pa, name)(), WORDS)
    for name in ("binary", "large_binary", "binary_view"):
        found[name] = _same(getattr(pa, name)(), BYTES)
    for bits in (32, 64, 128, 256):
        found[f"decimal{bits}"] = _same(getattr(pa, f"decimal{bits}")(7, 2), MONEY)
    days = [date(1970, 1, 2), date(1969, 12, 31), date(1970, 1, 2), None]
    return {
        **found,
        "bool": _same(pa.bool_(), [True, False, True, None]),
        "decimal of hundreds": Example(
            pa.array([100, 200, 100, None]).cast(pa.decimal128(20, 0)).cast(pa.decimal128(5, -2)),
            [None if n is None else 100 * n for n in decimals],
        ),
        "wide decimal": Example(pa.array(decimals, pa.decimal256(39, 0)), None),
        "decimal of wide hundreds": Example(pa.array([None] * 4, pa.decimal256(38, -2)), None),
        "fixed size binary": _same(pa.binary(1), BYTES),
        "date32": _same(pa.date32(), days),
        "date64": _same(pa.date64(), days),
        "null": Example(pa.nulls(ROWS), [None] * ROWS),
        "interval": Example(pa.array([pa.MonthDayNano([1, 2, 3])] * 4), None),
        **_units(),
        **_encoded(),
        **_nested(),
        **_extensions(),
    }
