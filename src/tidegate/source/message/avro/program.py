"""Turns a writer's schema into steps of the decoding loop, and runs values through them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from tidegate.connector import Int64s
from tidegate.source.message.avro import step
from tidegate.source.message.avro.schema import AvroType

_WIDTHS = {"boolean": (step.BOOLEAN, 1), "float": (step.FLOAT, 4), "double": (step.DOUBLE, 8)}
_VARIABLE = {"int": step.INT, "long": step.LONG, "bytes": step.BYTES, "string": step.TEXT}
_PAIRS = (step.TEXT, step.BYTES, step.FIXED, step.DECIMAL_BYTES, step.DECIMAL_FIXED)


@dataclass(frozen=True)
class Spot:
    """A type at its place in a schema, the stream of what is read there, and the places below.

    `slot` is the number of the stream. Texts, bytes and decimals have two: `slot` and the next one.
    Records and null have none, and -1.
    """

    type: AvroType
    slot: int
    below: tuple[Spot, ...] = ()


@dataclass(frozen=True)
class Program:
    """The steps for values of one schema; `looped` says whether they have arrays or maps."""

    root: Spot
    steps: Int64s
    jumps: Int64s
    slots: int
    looped: bool


@dataclass(frozen=True)
class Streams:
    """What the loop read: the numbers of each stream, and the bytes that some of them point into.

    `wrong` says, by the place of a value, why it was not taken; `rows` is how many were taken.
    """

    data: bytes
    numbers: Int64s
    base: Int64s
    counts: Int64s
    rows: int
    wrong: dict[int, str]

    def of(self, slot: int) -> Int64s:
        start = int(self.base[slot])
        return self.numbers[start : start + int(self.counts[slot])]

    def pieces(self, slot: int) -> tuple[pa.Buffer, pa.Buffer]:
        """The offsets and bytes of texts, in Arrow's layout; copies the bytes."""
        from tidegate.source.message.avro.decode_loop import gather

        starts, lengths = self.of(slot), self.of(slot + 1)
        offsets = np.zeros(len(starts) + 1, np.int32)
        np.cumsum(lengths, out=offsets[1:])
        out = np.empty(int(offsets[-1]), np.uint8)
        gather()(np.frombuffer(self.data, np.uint8), starts, lengths, out)
        return pa.py_buffer(offsets), pa.py_buffer(out)


@lru_cache(maxsize=256)
def program_of(record: AvroType) -> Program:
    """The steps for values of a record."""
    made = _Compiler()
    root = made.add(record)
    steps = np.array(made.steps or np.zeros((0, 4)), np.int64).reshape(-1, 4)
    looped = bool((steps[:, 0] == step.LOOP).any())
    return Program(root, steps, np.array(made.jumps, np.int64), made.slots, looped)


def run(program: Program, values: Sequence[bytes], skip: int) -> Streams:
    """Run values through the steps, without their first `skip` bytes, which must be there.

    Costs one pass where each stream gets at most one number per value. With arrays or maps a first
    pass counts the numbers.
    """
    from tidegate.source.message.avro.decode_loop import decode

    data = b"".join(values)
    stops = np.cumsum(np.fromiter(map(len, values), np.int64, len(values)))
    starts = np.concatenate([np.zeros(1, np.int64), stops[:-1]])[: len(values)] + skip
    places, faults = np.zeros(len(values), np.int64), np.zeros(len(values), np.int64)
    text = np.frombuffer(data, np.uint8)
    rooms = np.full(program.slots, len(values), np.int64)
    fixed = text, starts, stops, program.steps, program.jumps
    if program.looped:
        rooms = np.zeros(program.slots, np.int64)
        decode()(*fixed, rooms, rooms, np.empty(0, np.int64), places, faults)
    base = np.concatenate([np.zeros(1, np.int64), np.cumsum(rooms)])
    out, counts = np.empty(max(int(base[-1]), 1), np.int64), np.zeros(program.slots, np.int64)
    decode()(*fixed, base, counts, out, places, faults)
    wrong = {
        int(i): f"{step.REASONS[int(faults[i])]}, at byte {int(places[i]) + skip}"
        for i in np.flatnonzero(faults)
    }
    return Streams(data, out, base, counts, len(values) - len(wrong), wrong)


class _Compiler:
    def __init__(self) -> None:
        self.steps: list[list[int]] = []
        self.jumps: list[int] = []
        self.slots = 0

    def add(self, type_: AvroType) -> Spot:
        """Append the steps of a type."""
        kind = type_.kind
        if kind == "null":
            return Spot(type_, -1)
        if kind == "record":
            return Spot(type_, -1, tuple(self.add(f.type) for f in type_.fields))
        if kind == "union":
            return self._union(type_)
        if kind in ("array", "map"):
            return self._loop(type_)
        if kind == "enum":
            return self._step(type_, step.ENUM, len(type_.symbols))
        if kind == "fixed":
            of = step.DECIMAL_FIXED if type_.logical == "decimal" else step.FIXED
            return self._step(type_, of, type_.size)
        if kind in _WIDTHS:
            return self._step(type_, *_WIDTHS[kind])
        return self._step(
            type_, step.DECIMAL_BYTES if type_.logical == "decimal" else _VARIABLE[kind]
        )

    def _step(self, type_: AvroType, of: int, a: int = 0, b: int = 0) -> Spot:
        slot = self._slot(2 if of in _PAIRS else 1)
        self.steps.append([of, slot, a, b])
        return Spot(type_, slot)

    def _slot(self, count: int = 1) -> int:
        self.slots += count
        return self.slots - count

    def _union(self, type_: AvroType) -> Spot:
        """Add a step that reads the branch, then each branch with a jump behind the last one."""
        slot, table = self._slot(), len(self.jumps)
        self.steps.append([step.UNION, slot, len(type_.parts), table])
        self.jumps += [0] * len(type_.parts)
        below, leaps = [], []
        for i, part in enumerate(type_.parts):
            self.jumps[table + i] = len(self.steps)
            below.append(self.add(part))
            leaps.append(len(self.steps))
            self.steps.append([step.JUMP, 0, 0, 0])
        for leap in leaps:
            self.steps[leap][2] = len(self.steps)
        return Spot(type_, slot, tuple(below))

    def _loop(self, type_: AvroType) -> Spot:
        slot, begin = self._slot(), len(self.steps)
        self.steps.append([])
        below = [self._step(AvroType("string"), step.TEXT)] if type_.kind == "map" else []
        below.append(self.add(type_.parts[0]))
        end = len(self.steps) + 1
        self.steps[begin] = [step.LOOP, slot, begin + 1, end]
        self.steps.append([step.ITEM_END, slot, begin + 1, end])
        return Spot(type_, slot, tuple(below))
