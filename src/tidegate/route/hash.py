"""Places a tuple by the hash of its key: all tuples of a key are in one bucket."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tidegate.route.bucket import bucket_of
from tidegate.route.mapping import Mapping
from tidegate.route.partitioner import Int32s, Partitioner, Units


@dataclass(frozen=True)
class Hash(Partitioner):
    """Equal keys have one bucket, whatever the mapping; without keys it is bucket 0.

    Total work does not depend on the instances. A frequent key is not divided.
    """

    name: ClassVar[str] = "hash"
    splits_keys: ClassVar[bool] = False

    def buckets(self, units: Units, mapping: Mapping) -> Int32s:
        return bucket_of(units.keys, mapping.buckets, units.rows)

    @property
    def lines(self) -> tuple[str, ...]:
        """None: a state that says nothing about its placement was placed by hash."""
        return ()


BY_HASH = Hash()
