"""The wire format of Confluent's serializers: a zero byte and the id of a schema before the value.

In Protobuf the place of the message in its file follows, as a list of numbers.
"""

from __future__ import annotations

MAGIC = 0
HEADER_BYTES = 5


def header(schema_id: int) -> bytes:
    """The bytes before a value of a registered schema."""
    return bytes([MAGIC]) + schema_id.to_bytes(4, "big")


def schema_id(head: bytes) -> int | str:
    """The id in the first bytes of a value, or why there is none."""
    if len(head) < HEADER_BYTES:
        return f"a value of a schema registry must begin with {HEADER_BYTES} bytes, got {len(head)}"
    if head[0] != MAGIC:
        return f"a value of a schema registry must begin with byte 0, got {head[0]}"
    return int.from_bytes(head[1:HEADER_BYTES], "big")


def message_place(value: bytes) -> tuple[tuple[int, ...], int] | str:
    """Which message type of its file a Protobuf value has, and the offset of the message itself.

    The type is a path of indexes: of a message in the file, then of one nested in it, and so on. A
    count of zero stands for the path (0,). A text says why the value has no such path.
    """
    count, at = _number(value, HEADER_BYTES)
    if at < 0 or count < 0 or count > len(value):
        return "the place of the message in its file cannot be read"
    found = []
    for _ in range(count):
        number, at = _number(value, at)
        if at < 0 or number < 0:
            return "the place of the message in its file cannot be read"
        found.append(number)
    return tuple(found) or (0,), at


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A zigzag varint and the offset behind it; -1 where it does not end within 35 bits."""
    found = shift = 0
    while at < len(data) and shift < 35:
        found |= (data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            return (found >> 1) ^ -(found & 1), at
        shift += 7
    return 0, -1
