"""Holds a set of buckets as the bits of one integer.

Every batch asks every segment about its buckets, and there may be thousands of both. So a question
must not loop over buckets in Python: here it is one operation on integers of as many bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from operator import or_
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from tidegate.state.short_text import pack, unpack


class BucketSet:
    """An immutable set of buckets with the operators of Python's sets; make it by `of` or `where`.

    Equal sets of a process are one object, also when unpickled: all segments of an instance share
    the set of its buckets, and a job that lists a thousand segments carries it once. Iteration is
    for few buckets, `numbers` is for many; both ascend.
    """

    __slots__ = ("__weakref__", "_bits", "_text")

    _bits: int
    _text: str | None

    @staticmethod
    def of(buckets: npt.ArrayLike) -> BucketSet:
        """The set of some buckets, in any order; a negative one is a ValueError."""
        numbers = np.asarray(buckets, np.int64)
        if not len(numbers):
            return _shared(0)
        if numbers.min() < 0:
            raise ValueError(f"buckets are numbered from 0 on, got {numbers.min()}")
        flags = np.zeros(int(numbers.max()) + 1, np.bool_)
        flags[numbers] = True
        return BucketSet.where(flags)

    @staticmethod
    def where(flags: npt.NDArray[np.bool_]) -> BucketSet:
        """The set of the buckets whose flag is set; flag i is that of bucket i."""
        return _shared(int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little"))

    @staticmethod
    def union(sets: Iterable[BucketSet]) -> BucketSet:
        """The buckets that are in any of some sets."""
        return _shared(reduce(or_, (s._bits for s in dict.fromkeys(sets)), 0))

    @staticmethod
    def from_text(text: str) -> BucketSet:
        """The set with this `text`; anything else is a ValueError."""
        return _shared(int.from_bytes(unpack(text), "little"))

    @property
    def text(self) -> str:
        """A short form for JSON: some thirty characters where the buckets follow a pattern.

        Never more than a sixth of a character for each bucket up to the last.
        """
        if self._text is None:
            self._text = pack(self._bytes())
        return self._text

    def numbers(self) -> npt.NDArray[np.int64]:
        """The buckets, ascending; costs a microsecond per thousand, and is not kept."""
        raw = np.frombuffer(self._bytes(), np.uint8)
        return np.flatnonzero(np.unpackbits(raw, bitorder="little"))

    def owner(self, owners: npt.NDArray[np.integer[Any]]) -> int | None:
        """The instance that owns all of its buckets, None where there is no single one."""
        mine = owners[self.numbers()]
        return int(mine[0]) if len(mine) and (mine == mine[0]).all() else None

    def _bytes(self) -> bytes:
        return self._bits.to_bytes(-(-self._bits.bit_length() // 8), "little")

    def __and__(self, other: BucketSet) -> BucketSet:
        return _shared(self._bits & other._bits)

    def __or__(self, other: BucketSet) -> BucketSet:
        return _shared(self._bits | other._bits)

    def __sub__(self, other: BucketSet) -> BucketSet:
        return _shared(self._bits & ~other._bits)

    def __iter__(self) -> Iterator[int]:
        return iter(self.numbers().tolist())

    def __len__(self) -> int:
        return self._bits.bit_count()

    def __contains__(self, bucket: object) -> bool:
        if not isinstance(bucket, int | np.integer) or bucket < 0:
            return False
        return bool(self._bits >> int(bucket) & 1)

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


_known: WeakValueDictionary[int, BucketSet] = WeakValueDictionary()


def _shared(bits: int) -> BucketSet:
    """The one set with these bits in this process.

    Without a lock: two threads may make one each. These are equal, and only memory is lost.
    """
    found = _known.get(bits)
    if found is None:
        found = object.__new__(BucketSet)
        found._bits, found._text = bits, None
        _known[bits] = found
    return found
