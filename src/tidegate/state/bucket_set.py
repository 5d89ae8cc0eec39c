"""The buckets that a segment has rows of, a bit each, between segments and whoever owns buckets.

With thousands of buckets and of segments, what is asked of every segment in every batch must not
loop over numbers in Python: here it is a few operations on whole arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from tidegate.state.packed import pack, unpack

Flags = npt.NDArray[np.bool_]


class BucketSet:
    """An immutable set of buckets; made by `of`, `where` and `from_text`.

    Equal sets of a process are one object, also when they come out of a pickle: all segments of an
    instance share the set of its buckets, and a job that lists a thousand of them carries it once.
    Iterating gives whole numbers, ascending; it is for few buckets, `numbers` is for many.
    """

    __slots__ = ("__weakref__", "_bits", "_text")

    _bits: bytes
    _text: str | None

    @staticmethod
    def of(buckets: npt.ArrayLike) -> BucketSet:
        """The set of some buckets, in any order; below 0 there are none."""
        numbers = np.asarray(buckets, np.int64)
        if not len(numbers):
            return _shared(b"")
        if numbers.min() < 0:
            raise ValueError(f"buckets are numbered from 0 on, got {numbers.min()}")
        flags = np.zeros(int(numbers.max()) + 1, np.bool_)
        flags[numbers] = True
        return BucketSet.where(flags)

    @staticmethod
    def where(flags: Flags) -> BucketSet:
        """The buckets whose flag is set, by their number."""
        return _shared(np.packbits(flags, bitorder="little").tobytes().rstrip(b"\0"))

    @staticmethod
    def union(sets: Iterable[BucketSet]) -> BucketSet:
        """The buckets that are in any of some sets."""
        distinct = [s._bits for s in dict.fromkeys(sets)]
        every = np.zeros(max(map(len, distinct), default=0), np.uint8)
        for bits in distinct:
            every[: len(bits)] |= np.frombuffer(bits, np.uint8)
        return _shared(every.tobytes())

    @staticmethod
    def from_text(text: str) -> BucketSet:
        """The set whose `text` this is; anything else is a ValueError."""
        return _shared(unpack(text).rstrip(b"\0"))

    @property
    def text(self) -> str:
        """A short form for JSON: a hundred bytes for regular sets, at most 1/6 byte a bucket."""
        if self._text is None:
            self._text = pack(self._bits)
        return self._text

    def numbers(self) -> npt.NDArray[np.int64]:
        """The buckets, ascending. Costs microseconds per thousand, and is not kept."""
        raw = np.frombuffer(self._bits, np.uint8)
        return np.flatnonzero(np.unpackbits(raw, bitorder="little"))

    def flags(self, buckets: int) -> Flags:
        """For each of so many buckets whether it is in the set."""
        # Not unpackbits(count=): where there are no bits at all, it leaves what it adds undefined.
        raw = np.zeros(-(-buckets // 8), np.uint8)
        held = np.frombuffer(self._bits, np.uint8)[: len(raw)]
        raw[: len(held)] = held
        return np.unpackbits(raw, bitorder="little")[:buckets].astype(np.bool_)

    def within(self, flags: Flags) -> BucketSet:
        """Those of its buckets whose flag is set; beyond the flags there are none."""
        return BucketSet.where(self.flags(len(flags)) & flags)

    def owner(self, owners: npt.NDArray[np.integer[Any]]) -> int | None:
        """The instance that owns all of its buckets, None where there is no single one."""
        mine = owners[self.numbers()]
        return int(mine[0]) if len(mine) and (mine == mine[0]).all() else None

    def __iter__(self) -> Iterator[int]:
        return iter(self.numbers().tolist())

    def __len__(self) -> int:
        return int.from_bytes(self._bits, "little").bit_count()

    def __contains__(self, bucket: object) -> bool:
        if not isinstance(bucket, int | np.integer) or not 0 <= bucket < 8 * len(self._bits):
            return False
        return bool(self._bits[bucket // 8] >> int(bucket % 8) & 1)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return self.numbers().astype(np.int64 if dtype is None else dtype, copy=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BucketSet) and self._bits == other._bits

    def __hash__(self) -> int:
        return hash(self._bits)

    def __reduce__(self) -> tuple[Any, ...]:
        return _shared, (self._bits,)

    def __repr__(self) -> str:
        return f"BucketSet.of({self.numbers().tolist()})"


_known: WeakValueDictionary[bytes, BucketSet] = WeakValueDictionary()


def _shared(bits: bytes) -> BucketSet:
    """The set of these bits, which end with a set one: the one there is, or a new one.

    Two threads may make one each. They are equal all the same; only memory is lost.
    """
    found = _known.get(bits)
    if found is None:
        found = object.__new__(BucketSet)
        found._bits, found._text = bits, None
        _known[bits] = found
    return found
