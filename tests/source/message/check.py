"""What tests of value formats share: layouts by options, and rows beside the faults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from tidegate.source.message.registry import open_values
from tidegate.source.message.value import ValueLayout, ValueLook, Values
from tidegate.source.subscription import Reading

INT, TEXT, NUMBER = pa.int64(), pa.string(), pa.float64()


def layout(
    sample: Values | Callable[[], Values] = (),
    columns: pa.Schema | None = None,
    time: str | None = None,
    **options: object,
) -> ValueLayout:
    reading = Reading.of(columns, options, "test")
    given = sample if callable(sample) else lambda: sample
    return open_values(ValueLook("test", time, reading, given, "test-value"))


def read(found: ValueLayout, values: Values) -> tuple[dict[int, dict[str, Any]], dict[int, str]]:
    """The rows and the reasons by the places of their values; each value is in one of them."""
    parsed = found.parse(values)
    parsed.table.validate(full=True)
    assert parsed.table.schema.equals(found.schema)
    places = range(len(values)) if parsed.places is None else parsed.places.tolist()
    rows = dict(zip(places, parsed.table.to_pylist(), strict=True))
    reasons = {fault.place: fault.why for fault in parsed.faults}
    assert sorted([*rows, *reasons]) == list(range(len(values)))
    return rows, reasons
