"""Network packets, like those of the DEC trace of an hour of traffic."""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np
import pyarrow as pa

from tidegate.connector import Int64s
from tidegate.source.generate.draw import Words, below, field, shares
from tidegate.source.generate.flow import Keys, read_flow
from tidegate.source.generate.label import fixed, scattered
from tidegate.source.generate.span import Column, TimedSpan, column
from tidegate.source.generate.workload import SpanGenerator
from tidegate.source.parameter import Parameters

_SOURCE, _PACKET = range(1, 3)
_PROTOCOLS = fixed(("tcp", "udp"))
_PORTS = (80, 25, 119, 20, 53, 23, 513, 6000)
"""Services that packets go to, one draw of eight each."""
_EPHEMERAL = 1_024
_SIZE_BITS = 12
_ADDRESS_BITS = 24


def packets(parameters: Parameters) -> SpanGenerator:
    """Packets between the hosts of a network; sizes in bytes, most of them small or full."""
    hosts = Keys("hosts that send", 4_000, 1.0, low=2)
    return SpanGenerator(PacketSpan, read_flow(parameters, 1_000.0, "1995-03-08T00:00:00Z", hosts))


class PacketSpan(TimedSpan):
    """The columns of a range of packets."""

    FAMILY = 3

    @column(pa.string())
    def src(self) -> pa.Array:
        return _addresses(self.flow.keys, self.flow.seed).take(pa.array(self._sender))

    @column(pa.string())
    def dst(self) -> pa.Array:
        """Any other host, all alike."""
        keys = self.flow.keys
        receiver = self._sender + 1 + below(self._packet, 0, 24, keys - 1)
        receiver -= keys * (receiver >= keys)
        return _addresses(keys, self.flow.seed).take(pa.array(receiver))

    @column(pa.int32())
    def src_port(self) -> Column:
        port = _EPHEMERAL + below(self._packet, 24, 16, 65_536 - _EPHEMERAL)
        return port

    @column(pa.int32())
    def dst_port(self) -> Column:
        return np.array(_PORTS, np.int32)[field(self._packet, 40, 3)]

    @column(pa.string())
    def protocol(self) -> pa.Array:
        """One in sixteen is UDP."""
        return _PROTOCOLS.take((field(self._packet, 43, 4) == 0).astype(np.int64))

    @column(pa.int32())
    def size(self) -> Column:
        return _sizes()[field(self._packet, 47, _SIZE_BITS)]

    @cached_property
    def _sender(self) -> Int64s:
        return self.ranked(_SOURCE)

    @cached_property
    def _packet(self) -> Words:
        return self.words(_PACKET)


@lru_cache(maxsize=4)
def _addresses(keys: int, seed: int) -> pa.Array:
    """Distinct addresses of the network 10.0.0.0/8."""
    numbers = scattered(keys, 2**_ADDRESS_BITS, seed).tolist()
    return pa.array([f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}" for n in numbers])


@lru_cache(maxsize=1)
def _sizes() -> Int64s:
    """Acknowledgements of 40 bytes, segments of 552 and 1500, and everything between them."""
    part = shares(_SIZE_BITS, (0.4, 0.25, 0.2, 0.15))
    spread = 41 + np.arange(1 << _SIZE_BITS) * 977 % 1_459
    return np.choose(part, [40, 552, 1_500, spread])
