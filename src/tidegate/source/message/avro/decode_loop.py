"""The compiled loop that runs values through the steps of a writer's schema.

A step is a row of four numbers: what to read, the stream that receives it, and two more whose
meaning depends on the first. Streams hold 64-bit integers: the bits of a fraction, the start and
length of a text or of bytes, the branch of a union, the number of items of an array or a map. A
value that does not follow the steps to its last byte leaves nothing in the streams.

Importing this module imports Numba; see `machine_code`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from tidegate.machine_code import compiled, given, made, part
from tidegate.source.message.avro.step import (
    BAD_BOOLEAN,
    BAD_BRANCH,
    BAD_COUNT,
    BAD_DECIMAL,
    BAD_INT,
    BAD_LENGTH,
    BAD_SYMBOL,
    BAD_TEXT,
    BEHIND,
    BOOLEAN,
    BYTES,
    DECIMAL_BYTES,
    DECIMAL_FIXED,
    DOUBLE,
    ENUM,
    FIXED,
    FLOAT,
    INT,
    JUMP,
    LONG,
    LOOP,
    MOST_LOOPS,
    SPARE_ITEMS,
    TEXT,
    TOO_LONG,
    TOO_SHORT,
    UNION,
)


@part
def _varint(data: Any, at: Any, stop: Any) -> Any:
    """A zigzag varint and the place behind it; a negative place is a fault."""
    found, shift = np.uint64(0), np.uint64(0)
    while True:
        if at >= stop:
            return np.int64(0), np.int64(-TOO_SHORT)
        byte = np.uint64(data[at])
        at += 1
        if shift == np.uint64(63) and byte > np.uint64(1):
            return np.int64(0), np.int64(-TOO_LONG)
        found |= (byte & np.uint64(127)) << shift
        if byte < np.uint64(128):
            break
        shift += np.uint64(7)
    negative = np.uint64(0) - (found & np.uint64(1))
    return np.int64((found >> np.uint64(1)) ^ negative), at


@part
def _bits(data: Any, at: Any, width: Any) -> Any:
    """A little-endian number of `width` bytes."""
    found = np.uint64(0)
    for i in range(width):
        found |= np.uint64(data[at + i]) << np.uint64(8 * i)
    return np.int64(found)


@part
def _is_text(data: Any, at: Any, stop: Any) -> Any:
    """Whether bytes are UTF-8: shortest forms, no surrogates, nothing beyond U+10FFFF."""
    while at < stop:
        first = data[at]
        if first < 0x80:
            at += 1
            continue
        low, high, more = 0x80, 0xBF, 0
        if 0xC2 <= first <= 0xDF:
            more = 1
        elif 0xE0 <= first <= 0xEF:
            more = 2
            low = 0xA0 if first == 0xE0 else 0x80
            high = 0x9F if first == 0xED else 0xBF
        elif 0xF0 <= first <= 0xF4:
            more = 3
            low = 0x90 if first == 0xF0 else 0x80
            high = 0x8F if first == 0xF4 else 0xBF
        if more == 0 or at + more >= stop:
            return False
        if data[at + 1] < low or data[at + 1] > high:
            return False
        for i in range(2, more + 1):
            if data[at + i] < 0x80 or data[at + i] > 0xBF:
                return False
        at += more + 1
    return True


@part
def _decimal(data: Any, at: Any, stop: Any) -> Any:
    """A big-endian decimal as the low and high half of 128 bits, and whether it fits into them."""
    # Longer texts fit where all bytes in front only repeat the sign.
    fill = np.uint64(0)
    if at < stop and data[at] >= 128:
        fill = ~fill
    while stop - at > 16:
        if np.uint64(data[at]) != (fill & np.uint64(255)):
            return np.int64(0), np.int64(0), False
        at += 1
    low, high = fill, fill
    if at < stop and (data[at] >= 128) != (fill != np.uint64(0)):
        return np.int64(0), np.int64(0), False
    for i in range(at, stop):
        high = (high << np.uint64(8)) | (low >> np.uint64(56))
        low = (low << np.uint64(8)) | np.uint64(data[i])
    return np.int64(low), np.int64(high), True


@part
def _sized(op: Any, data: Any, first: Any, end: Any) -> Any:
    """The two stream numbers of a text, bytes or a decimal, and the fault, or 0."""
    if op == TEXT and not _is_text(data, first, end):
        return np.int64(0), np.int64(0), np.int64(BAD_TEXT)
    if op == DECIMAL_BYTES:
        low, high, fits = _decimal(data, first, end)
        return low, high, np.int64(0 if fits else BAD_DECIMAL)
    return first, end - first, np.int64(0)


@part
def _fixed(op: Any, data: Any, at: Any, width: Any) -> Any:
    """The stream numbers of a field of fixed width, whether there are two, and the fault, or 0."""
    if op == FIXED:
        return at, width, True, np.int64(0)
    if op == DECIMAL_FIXED:
        low, high, fits = _decimal(data, at, at + width)
        return low, high, True, np.int64(0 if fits else BAD_DECIMAL)
    value = _bits(data, at, width)
    why = BAD_BOOLEAN if op == BOOLEAN and value > 1 else 0
    return value, np.int64(0), False, np.int64(why)


@part
def _block(data: Any, at: Any, stop: Any) -> Any:
    """How many items the next block of an array has, and where they begin."""
    count, end = _varint(data, at, stop)
    if end >= 0 and count < 0:  # a negative count is followed by the size of the block in bytes
        count = -count
        _, end = _varint(data, end, stop)
    return count, end


@part
def _put(base: Any, counts: Any, out: Any, slot: Any, value: Any) -> None:
    """Append to a stream; only count where `out` is empty."""
    if len(out) > 0:
        out[base[slot] + counts[slot]] = value
    counts[slot] += 1


@part
def _one(
    data: Any,
    start: Any,
    stop: Any,
    steps: Any,
    jumps: Any,
    base: Any,
    counts: Any,
    out: Any,
    left: Any,
    total: Any,
) -> Any:
    """Run one value through all steps; the place where it ended, and the fault, or 0.

    For each level of arrays `left` has the items that remain in the block, `total` those so far.
    """
    at, pc, depth, items = start, 0, 0, 0
    while pc < len(steps):
        op, slot, a, b = steps[pc, 0], steps[pc, 1], steps[pc, 2], steps[pc, 3]
        pc += 1
        if op == JUMP:
            pc = a
            continue
        value, other, pair = np.int64(0), np.int64(0), False
        if op in (LONG, INT, ENUM, UNION, TEXT, BYTES, DECIMAL_BYTES):
            value, end = _varint(data, at, stop)
            if end < 0:
                return at, -end
            if op == INT and (value < -(2**31) or value >= 2**31):
                return at, BAD_INT
            if op == ENUM and (value < 0 or value >= a):
                return at, BAD_SYMBOL
            if op == UNION:
                if value < 0 or value >= a:
                    return at, BAD_BRANCH
                pc = jumps[b + value]
            if op in (TEXT, BYTES, DECIMAL_BYTES):
                if value < 0 or value > stop - end:
                    return at, BAD_LENGTH
                first, pair = end, True
                end += value
                value, other, why = _sized(op, data, first, end)
                if why != 0:
                    return at, why
            at = end
        elif op in (DOUBLE, FLOAT, BOOLEAN, FIXED, DECIMAL_FIXED):
            if stop - at < a:
                return at, TOO_SHORT
            value, other, pair, why = _fixed(op, data, at, a)
            if why != 0:
                return at, why
            at += a
        else:  # LOOP begins with no items, and ITEM_END goes on to the next one
            if op == LOOP:
                left[depth], total[depth] = 0, 0
                depth += 1
            here = depth - 1
            if left[here] == 0:
                count, end = _block(data, at, stop)
                if end < 0:
                    return at, -end
                items += count
                # Items of null take no bytes, so a value of a few bytes could claim 2**62 of them.
                # Items beyond the bytes of the value are limited, so that the loop must end.
                if count < 0 or items < 0 or items > stop - start + SPARE_ITEMS:
                    return at, BAD_COUNT
                at = end
                left[here] = count
                total[here] += count
            if left[here] > 0:
                left[here] -= 1
                pc = a
                continue
            value, pc = total[here], b
            depth -= 1
        _put(base, counts, out, slot, value)
        if pair:
            _put(base, counts, out, slot + 1, other)
    return at, (np.int64(0) if at == stop else np.int64(BEHIND))


def _decode(
    data: Any,
    starts: Any,
    stops: Any,
    steps: Any,
    jumps: Any,
    base: Any,
    counts: Any,
    out: Any,
    places: Any,
    faults: Any,
) -> None:
    """Run values [starts, stops) of `data` through the steps; only count where `out` is empty.

    All arrays are int64, except `data` (uint8). `steps` has shape (steps, 4). `base` has the first
    place in `out` of each stream; `counts`, zero at the call, receives their lengths. For each
    value `faults` receives 0 or why it was not taken, and `places` the byte. Values with a fault
    from an earlier pass are skipped.
    """
    before = np.zeros(len(counts), np.int64)
    left, total = np.zeros(MOST_LOOPS, np.int64), np.zeros(MOST_LOOPS, np.int64)
    for i in range(len(starts)):
        if faults[i] != 0:
            continue
        before[:] = counts
        at, end = starts[i], stops[i]
        place, why = _one(data, at, end, steps, jumps, base, counts, out, left, total)
        if why != 0:  # take back what this value has put into the streams
            counts[:] = before
            faults[i] = why
            places[i] = place - starts[i]


def _gather(data: Any, starts: Any, lengths: Any, out: Any) -> None:
    """Copy pieces of `data` one behind the other into `out`, which must have room for all."""
    to = 0
    for i in range(len(starts)):
        at = starts[i]
        for k in range(lengths[i]):
            out[to + k] = data[at + k]
        to += lengths[i]


@cache
def decode() -> Callable[..., Any]:
    read, write = given(types.int64), made(types.int64)
    steps = given(types.int64, 2)
    signature = (given(types.uint8), read, read, steps, read, read, write, write, write, write)
    return compiled(types.void(*signature), _decode)


@cache
def gather() -> Callable[..., Any]:
    read = given(types.int64)
    return compiled(types.void(given(types.uint8), read, read, made(types.uint8)), _gather)
