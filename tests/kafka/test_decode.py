"""Rows that are decoded for all partitions at once, beside those of each record by itself."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tidegate.connector import Rows
from tidegate.schema import TIME
from tidegate.source.kafka.decode import CarriedRows, CarryLimits, TopicDecoder
from tidegate.source.kafka.record import RecordRange
from tidegate.source.kafka.shape import RecordShape, SharedShape
from tidegate.source.message.registry import open_values
from tidegate.source.message.value import ValueLook
from tidegate.source.subscription import Reading

SCHEMA = pa.schema([("ts", TIME), ("v", pa.int64())])
LAYOUT = open_values(ValueLook("r", "ts", Reading(schema=SCHEMA), list, "r-value"))
SHAPE = RecordShape(LAYOUT, ("_partition", "_offset"), "ts")

GOOD = [json.dumps({"ts": f"2024-01-01T00:00:0{n}Z", "v": n}).encode() for n in range(4)]
ODD = [None, b"", b"{", b'{"ts": "2024-01-01T00:00:05Z", "v": "x"}', b'{"v": 1}']

takes = st.lists(
    st.lists(  # the records of each partition, and whether an offset without one is before them
        st.tuples(st.booleans(), st.lists(st.sampled_from(GOOD * 5 + ODD), max_size=4)),
        min_size=2,
        max_size=2,
    ),
    max_size=5,
)


def records(first: int, gap: bool, values: list[bytes | None]) -> RecordRange:
    begin = first + gap
    offsets = np.arange(begin, begin + len(values))
    return RecordRange(first, begin + len(values), offsets, offsets * 10, values, (), ())


def plain(parts: list[RecordRange], partition: int, start: int, stop: int) -> Rows:
    """Record by record."""
    alone = [
        SHAPE.rows([(partition, part.cut(offset, offset + 1))])[0]
        for part in parts
        for offset in part.offsets.tolist()
        if start <= offset < stop
    ]
    return Rows.joined(alone, SHAPE.schema)


@given(takes=takes, asks=st.lists(st.booleans(), min_size=5, max_size=5), data=st.data())
def test_any_cut_of_what_came_in_any_takes_is_as_decoded_one_by_one(
    takes: list[list[tuple[bool, list[bytes | None]]]], asks: list[bool], data: st.DataObject
) -> None:
    decoder = TopicDecoder(SharedShape(SHAPE), CarryLimits())
    came: list[list[RecordRange]] = [[], []]
    ends = [0, 0]
    for take, asked in zip(takes, asks, strict=False):
        for partition, (gap, values) in enumerate(take):
            made = records(ends[partition], gap, values)
            if made.stop > made.first:
                decoder.add(partition, made)
                came[partition].append(made)
                ends[partition] = made.stop
        if asked:  # some takes are decoded together with the next
            decoder.rows(0, 0, ends[0])
    for partition, end in enumerate(ends):
        if not end:
            assert decoder.rows(partition, 0, 1) is None
            continue
        start = data.draw(st.integers(0, end - 1))
        stop = data.draw(st.integers(start + 1, end))
        found = decoder.rows(partition, start, stop)
        assert found is not None
        carried = pickle.loads(pickle.dumps(CarriedRows(found))).rows(SHAPE, partition)
        wanted = plain(came[partition], partition, start, stop)
        for rows in (found, carried):
            assert rows.table.to_pylist() == wanted.table.to_pylist()
            assert (rows.seq.tolist(), rows.rejects) == (wanted.seq.tolist(), wanted.rejects)
        times = SHAPE.times_of(found, start, stop)
        assert (times is None) == bool(wanted.rejects)
        if times is not None:
            cut = RecordRange.joined(came[partition]).cut(start, stop)
            for ours, plainly in zip(times, SHAPE.times(cut), strict=True):
                assert ours.tolist() == plainly.tolist()
        assert decoder.rows(partition, start, end + 1) is None
        decoder.drop(partition, end)
        assert decoder.rows(partition, start, stop) is None


def test_what_is_too_much_is_left_to_the_tasks_and_what_is_held_is_bounded() -> None:
    decoder = TopicDecoder(SharedShape(SHAPE), CarryLimits(records=6))
    decoder.add(0, records(0, False, GOOD))
    decoder.add(1, records(0, False, GOOD))
    assert decoder.rows(0, 0, 4) is None
    for first in (4, 8):
        decoder.add(0, records(first, False, GOOD))
        assert decoder.rows(0, first, first + 4) is not None
    assert decoder.rows(0, 4, 8) is None, "only the newest are held"
    large = CarryLimits(bytes=2_000)
    decoder = TopicDecoder(SharedShape(SHAPE), large)
    decoder.add(0, records(0, False, GOOD))
    assert decoder.rows(0, 0, 4) is None
