"""HyperLogLog sketches by the column: hashed values in, estimates of distinct counts out.

A sketch is a function of the set of values put into it, and of nothing else: not of their order,
their repetition, or of how they were divided and merged. It is what Apache DataSketches keeps after
the same updates, without that library's estimator for sketches that were updated in one order.

A value becomes a **coupon** of 32 bits: an address of 26 bits, and above it the number of leading
zeros of another hash, plus one. A sketch of few coupons is their sorted list, four bytes each; one
of more is 2**lg_k **registers** of a byte, each with the largest number of those coupons whose
addresses end in its index. The length of its bytes tells the one from the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.operate.kernels.order import Floats, Ints, Mask

Words = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]

SKETCH = pa.large_binary()
"""The type of a column of sketches."""

LEAST_LG_K, MOST_LG_K = 8, 21

_ADDRESS_BITS = 26
_ADDRESS = np.uint64(2**_ADDRESS_BITS - 1)
_MOST_ZEROS = 62
_SEED = np.uint64(9001)
_C1, _C2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)
_BLOCK = 2**15
"""Values are hashed in blocks of this size, so that intermediate columns stay in the cache."""

_STEP = 2**20
"""About so many registers are summed at once, to bound memory."""

_POWERS = np.ldexp(1.0, -np.arange(64))
_LOW = np.where(np.arange(64) < 32, _POWERS, 0.0)
_HIGH = np.where(np.arange(64) < 32, 0.0, _POWERS)
_HEAD = np.dtype(
    [
        ("start", "u1", 8),
        ("hip", "<f8"),
        ("low", "<f8"),
        ("high", "<f8"),
        ("zeros", "<i4"),
        ("rest", "<i4"),
    ]
)
"""The bytes before the registers in a sketch as DataSketches serialises it."""

_COMPACT, _OUT_OF_ORDER = 8, 16
"""Flags of that: no gaps between coupons; use the estimator that needs the registers alone."""

_LISTED, _FULL = 9, 10
"""Modes of that: a set of coupons, and registers of a byte."""


def coupons_of(words: Words) -> Words:
    """The coupons of 64-bit values, as DataSketches makes them from integers.

    They come from MurmurHash3 (128 bits) of the eight bytes, with the seed of that library.
    """
    coupons = np.empty(len(words), np.uint64)
    for start in range(0, len(words), _BLOCK):
        part = slice(start, start + _BLOCK)
        coupons[part] = _coupons(words[part])
    return coupons


def _coupons(words: Words) -> Words:
    start = _SEED ^ np.uint64(8)
    low = (start ^ (_rotated(words * _C1) * _C2)) + start
    low, high = _mixed(low), _mixed(low + start)
    low = low + high
    high = high + low
    zeros = np.minimum(_leading_zeros(high), _MOST_ZEROS) + 1
    return (zeros.astype(np.uint64) << np.uint64(_ADDRESS_BITS)) | (low & _ADDRESS)


def _rotated(words: Words) -> Words:
    return (words << np.uint64(31)) | (words >> np.uint64(33))


def _mixed(words: Words) -> Words:
    words = (words ^ (words >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    words = (words ^ (words >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return words ^ (words >> np.uint64(33))


def _leading_zeros(words: Words) -> Ints:
    """The number of leading zeros, from the exponent of the word as a double.

    The conversion may round up to the next power of two. Clearing each bit below a set one keeps
    the first bit and prevents that.
    """
    exponents = np.frexp((words & ~(words >> np.uint64(1))).astype(np.float64))[1]
    return 64 - exponents.astype(np.int64)


@dataclass(frozen=True)
class Sketches:
    """Makes, merges and reads columns of sketches of 2**lg_k registers."""

    lg_k: int

    @property
    def registers(self) -> int:
        """The number of registers of a full sketch."""
        return 1 << self.lg_k

    @property
    def most_coupons(self) -> int:
        """The most coupons that a sketch lists; with one more it has registers."""
        return 3 << (self.lg_k - 5)

    def made(self, codes: Ints, words: Words, n: int) -> pa.Array:
        """The sketches of n groups; `words` are values, `codes` their groups. Costs a sort."""
        empty = np.empty((0, self.registers), np.uint8)
        return self._sketches(codes, coupons_of(words), codes[:0], empty, n)

    def merged(self, codes: Ints, sketches: pa.Array, n: int) -> pa.Array:
        """The sketches of n groups from other sketches; `codes` are the groups of these."""
        data, lengths = _bytes_of(sketches)
        full = lengths == self.registers
        inside = np.repeat(full, lengths)
        listed = data[~inside].view(np.uint32).astype(np.uint64)
        registers = data[inside].reshape(-1, self.registers)
        listed_codes = np.repeat(codes[~full], lengths[~full] // 4)
        return self._sketches(listed_codes, listed, codes[full], registers, n)

    def estimates(self, sketches: pa.Array) -> Floats:
        """The number of distinct values that each sketch has seen, as DataSketches estimates it."""
        data, lengths = _bytes_of(sketches)
        full = lengths == self.registers
        counts, which = np.unique(lengths[~full] // 4, return_inverse=True)
        of_counts = np.array([_of_coupons(self.lg_k, int(count)) for count in counts])
        result = np.empty(len(lengths))
        result[~full] = of_counts[which] if len(counts) else 0.0
        registers = data[np.repeat(full, lengths)].reshape(-1, self.registers)
        result[full] = np.fromiter(self._of_registers(registers), np.float64, len(registers))
        return result

    def _sketches(
        self, codes: Ints, coupons: Words, full_codes: Ints, registers: Bytes, n: int
    ) -> pa.Array:
        """Sketches of groups from coupons and from the registers of full sketches."""
        # Group and coupon in one word: one sort groups, orders and shows duplicates.
        both = np.sort((codes.astype(np.uint64) << np.uint64(32)) | coupons)
        both = both[np.append(both[1:] != both[:-1], True)] if len(both) else both
        codes = (both >> np.uint64(32)).astype(np.int64)
        coupons = both & np.uint64(2**32 - 1)
        counts = np.bincount(codes, minlength=n)
        full = counts > self.most_coupons
        full[full_codes] = True  # what was merged from registers cannot be a list again
        into = full[codes]
        filled = self._filled(codes[into], coupons[into], full_codes, registers, full)
        listed = coupons[~into].astype(np.uint32).view(np.uint8)
        lengths = np.where(full, self.registers, 4 * counts)
        inside = np.repeat(full, lengths)
        data = np.empty(int(lengths.sum()), np.uint8)
        data[inside], data[~inside] = filled.ravel(), listed
        return _binaries(data, lengths)

    def _filled(
        self, codes: Ints, coupons: Words, full_codes: Ints, registers: Bytes, full: Mask
    ) -> Bytes:
        """The registers of the full groups; coupons are sorted by group, then by value."""
        place = np.cumsum(full) - 1
        filled = np.zeros((int(full.sum()), self.registers), np.uint8)
        index = coupons & np.uint64(self.registers - 1)
        # Within a group coupons ascend, so that the last one written to a register is the largest.
        filled[place[codes], index.astype(np.int64)] = coupons >> np.uint64(_ADDRESS_BITS)
        order = np.argsort(full_codes, kind="stable")
        there, starts = np.unique(full_codes[order], return_index=True)
        if len(there):
            largest = np.maximum.reduceat(registers[order], starts, axis=0)
            filled[place[there]] = np.maximum(filled[place[there]], largest)
        return filled

    def _of_registers(self, registers: Bytes) -> Iterator[float]:
        """The estimates of full sketches, by the library, which gets each in serialised form."""
        from datasketches import hll_sketch

        step = max(1, _STEP // self.registers)
        for start in range(0, len(registers), step):
            part = registers[start : start + step]
            heads = np.zeros(len(part), _HEAD)
            heads["start"] = (10, 1, 7, self.lg_k, 0, _OUT_OF_ORDER, 0, _FULL)
            heads["low"], heads["high"] = _LOW[part].sum(axis=1), _HIGH[part].sum(axis=1)
            heads["zeros"] = self.registers - np.count_nonzero(part, axis=1)
            for head, row in zip(heads, part, strict=True):
                yield hll_sketch.deserialize(head.tobytes() + row.tobytes()).get_estimate()


@cache
def _of_coupons(lg_k: int, count: int) -> float:
    """The library's estimate for so many coupons, which does not depend on which they are.

    The cache has at most `most_coupons` entries for each size of sketches.
    """
    from datasketches import hll_sketch

    if count == 0:
        return 0.0
    places = max(5, ((4 * count + 2) // 3 - 1).bit_length())
    start = bytes((3, 1, 7, lg_k, places, _COMPACT, 0, _LISTED))
    coupons = np.arange(count, dtype=np.uint32) | np.uint32(1 << _ADDRESS_BITS)
    serialised = start + np.int32(count).tobytes() + coupons.tobytes()
    estimate: float = hll_sketch.deserialize(serialised).get_estimate()
    return estimate


def _bytes_of(column: pa.Array) -> tuple[Bytes, Ints]:
    """The bytes of a column of binaries without NULL, and the length of each."""
    if len(column) == 0:
        return np.empty(0, np.uint8), np.empty(0, np.int64)
    _, offsets, data = column.buffers()
    edges = np.frombuffer(offsets, np.int64)[column.offset :][: len(column) + 1]
    whole = np.frombuffer(data or b"", np.uint8)
    return whole[int(edges[0]) : int(edges[-1])], np.diff(edges)


def _binaries(data: Bytes, lengths: Ints) -> pa.Array:
    edges = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return pa.Array.from_buffers(
        SKETCH, len(lengths), [None, pa.py_buffer(edges), pa.py_buffer(data)]
    )
