"""Writes plain values as JSON and reads them back without loss.

JSON has no tuples, bytes or times, and only texts as keys. Such a value becomes a JSON object with
one entry, whose name is its kind. Nothing else becomes a JSON object, so the two cannot be mixed
up. Arrow data and numpy arrays are buffers beside the JSON, which has their numbers. A value of an
unknown kind is refused: nothing is ever restored as something else.
"""

from __future__ import annotations

import base64
import io
import json
import math
import struct
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from itertools import accumulate, pairwise
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from tidegate.batch import from_bytes, to_bytes
from tidegate.operate.process.tuple import Tuple, rebuilt

_ATOMS = frozenset({type(None), bool, int, float, str})
"""The types that JSON has."""

FIXED = _ATOMS | {bytes, complex, Decimal, date, datetime, time, timedelta}
"""The types whose values cannot be changed in place."""

_CONTAINERS = frozenset({list, dict, set, bytearray, deque, defaultdict, Counter, OrderedDict})
"""The types whose values can be changed in place, except numpy arrays (`Encoder.ndarray`)."""

_FACTORIES: dict[str, Callable[[], Any]] = {
    f.__name__: f for f in (bool, int, float, str, list, dict, set, tuple, deque, Counter)
}

_HAS_BUFFERS = b"\0"
"""The first byte of JSON with buffers; JSON alone cannot begin so."""
_COUNT = struct.Struct("<cQ")


class NotPlain(Exception):
    """A value that cannot be kept: where it is, and what is wrong with it."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(path, problem)


def pack(text: str, buffers: Sequence[bytes]) -> bytes:
    """Join JSON and its buffers into bytes; without buffers these are the JSON itself."""
    document = text.encode("ascii")
    if not buffers:
        return document
    sizes = [len(document), *map(len, buffers)]
    head = _COUNT.pack(_HAS_BUFFERS, len(sizes)) + struct.pack(f"<{len(sizes)}Q", *sizes)
    return b"".join([head, document, *buffers])


def unpack(data: bytes) -> tuple[str, list[bytes]]:
    """Undo `pack`; ValueError for bytes that it cannot have made."""
    if not data.startswith(_HAS_BUFFERS):
        return data.decode("ascii"), []
    try:
        _, count = _COUNT.unpack_from(data)
        sizes = struct.unpack_from(f"<{count}Q", data, _COUNT.size)
    except struct.error as error:
        raise ValueError(str(error)) from error
    starts = list(accumulate(sizes, initial=_COUNT.size + 8 * count))
    if starts[-1] != len(data):
        raise ValueError(f"{len(data)} bytes where {starts[-1]} were written")
    document, *buffers = (data[a:b] for a, b in pairwise(starts))
    return document.decode("ascii"), buffers


def encode(value: Any, root: str) -> tuple[str, list[bytes]]:
    """The JSON text of a value and its buffers; equal values give equal bytes.

    Messages call the value `root`.
    """
    simple = _simple_text(value)
    if simple is not None:
        return simple, []
    encoder = Encoder()
    return encoder.text(value, root), encoder.buffers


def decode(text: str, buffers: Sequence[bytes] = ()) -> Any:
    """The value that `encode` was given."""
    if not buffers:
        return _PLAIN.decode(text)

    def of_kind(tagged: dict[str, Any]) -> Any:
        ((tag, content),) = tagged.items()
        return _BUFFERED[tag](buffers[content]) if tag in _BUFFERED else _READERS[tag](content)

    return json.loads(text, object_hook=of_kind, parse_constant=float)


def unpacked(data: bytes) -> list[Any]:
    """The values that `Encoder.packed` was given."""
    values: list[Any]
    if data.startswith(_HAS_BUFFERS):
        values = decode(*unpack(data))
    else:
        values = _PLAIN.raw_decode(data.decode("ascii"))[0]
    return values


class Encoder:
    """Encodes values, and refuses an object that can be changed and is met twice.

    The reader would get two objects for it, so a change of one would not show in the other. The
    buffers of all calls of `text` come together; `packed` has its own. Messages call a value by its
    path.
    """

    def __init__(self) -> None:
        self.buffers: list[bytes] = []
        self._met: dict[int, str] = {}
        self._kept: list[Any] = []

    def text(self, value: Any, path: str) -> str:
        """A value as JSON; NotPlain where it cannot be kept."""
        simple = _simple_text(value)
        if simple is not None:
            return simple
        try:
            return _json(self.tree(value, path))
        except RecursionError:
            raise NotPlain(path, "is nested too deeply") from None

    def packed(self, values: Sequence[Any], path: str) -> bytes:
        """The bytes of a list of values with their own buffers, for `unpacked`."""
        others, self.buffers = self.buffers, []
        texts = ",".join([self.text(value, path) for value in values])
        data = pack(f"[{texts}]", self.buffers)
        self.buffers = others
        return data

    def tree(self, value: Any, path: str) -> Any:
        """A value as a tree of JSON types."""
        kind = type(value)
        if kind in _ATOMS:
            return value
        if kind in _CONTAINERS:
            self._meet(value, path)
        if kind is list:
            return self.items(value, path)
        known = _KINDS.get(kind)
        if known is not None:
            return {known.tag: known.write(self, value, path)}
        if isinstance(value, pa.Array):
            return {"array": self.buffer(to_bytes(pa.table({"": value})))}
        if isinstance(value, np.generic) and not value.dtype.hasobject:
            return {"scalar": [value.dtype.str, _base64(value.tobytes())]}
        raise NotPlain(path, f"is of the type {kind.__module__}.{kind.__qualname__}")

    def items(self, values: Sequence[Any], path: str) -> list[Any]:
        if set(map(type, values)) <= _ATOMS:
            return list(values)
        return [self.tree(v, f"{path}[{i}]") for i, v in enumerate(values)]

    def entries(self, mapping: Mapping[Any, Any], path: str) -> list[Any]:
        """Keys and values in the order of the mapping: that order must be restored."""
        keys = self.items(list(mapping), f"the keys of {path}")
        if set(map(type, mapping.values())) <= _ATOMS:
            return [keys, list(mapping.values())]
        return [keys, [self.tree(v, f"{path}[{k!r}]") for k, v in mapping.items()]]

    def members(self, values: Any, path: str) -> list[Any]:
        """The members of a set, in an order that does not depend on the process."""
        return sorted(self.items(list(values), path), key=json.dumps)

    def default(self, mapping: defaultdict[Any, Any], path: str) -> list[Any]:
        factory = mapping.default_factory
        name = None if factory is None else getattr(factory, "__name__", "")
        if name is not None and _FACTORIES.get(name) is not factory:
            raise NotPlain(path, "is a defaultdict of a function, which cannot be kept")
        return [name, *self.entries(mapping, path)]

    def row(self, value: Tuple, path: str) -> list[Any]:
        names, ts_us, values = value.parts()
        met, self._met = self._met, {}
        content = [names, ts_us, self.items(values, path)]
        self._met = met
        return content

    def clock(self, value: datetime | time, path: str) -> list[Any]:
        zone = _zone(value.tzinfo, path)
        return [value.replace(tzinfo=None, fold=0).isoformat(), zone, value.fold]

    def ndarray(self, value: Any, path: str) -> int:
        if value.dtype.hasobject:
            raise NotPlain(path, "is a numpy array of objects")
        owner = value
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        if value.flags.writeable:
            self._meet(owner, path)
        file = io.BytesIO()
        np.lib.format.write_array(file, value, allow_pickle=False)
        return self.buffer(file.getvalue())

    def buffer(self, data: bytes) -> int:
        self.buffers.append(data)
        return len(self.buffers) - 1

    def _meet(self, value: Any, path: str) -> None:
        """Refuse an object that was met before; keep it alive, so that its id is not used again."""
        if id(value) in self._met:
            raise NotPlain(path, f"is the same object as {self._met[id(value)]}")
        self._met[id(value)] = path
        self._kept.append(value)


def _base64(data: bytes | bytearray) -> str:
    return base64.b64encode(data).decode("ascii")


def _zone(zone: tzinfo | None, path: str) -> Any:
    if zone is None or zone is UTC:
        return None if zone is None else "UTC"
    if type(zone) is ZoneInfo and zone.key:
        return ["zone", zone.key]
    if type(zone) is timezone:
        offset, name = zone.utcoffset(None), zone.tzname(None)
        if timezone(offset).tzname(None) == name:
            return ["offset", offset.days, offset.seconds, offset.microseconds]
    raise NotPlain(path, f"has the time zone {zone!r}, which cannot be kept")


def _zone_of(content: Any) -> tzinfo | None:
    if content is None or content == "UTC":
        return None if content is None else UTC
    if content[0] == "zone":
        return ZoneInfo(content[1])
    return timezone(timedelta(*content[1:]))


def _clock_of(kind: type[datetime] | type[time]) -> Callable[[Any], Any]:
    def read(content: Any) -> Any:
        text, zone, fold = content
        return kind.fromisoformat(text).replace(tzinfo=_zone_of(zone), fold=fold)

    return read


def _default_of(content: Any) -> defaultdict[Any, Any]:
    name, keys, values = content
    return defaultdict(None if name is None else _FACTORIES[name], zip(keys, values))


def _scalar_of(content: Any) -> Any:
    return np.frombuffer(base64.b64decode(content[1]), np.dtype(content[0]), 1)[0]


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


class _Kind(NamedTuple):
    """How values of a type are written under a tag, and read again."""

    tag: str
    write: Callable[[Encoder, Any, str], Any]
    read: Callable[[Any], Any]
    buffered: bool = False
    """Whether `write` gives the number of a buffer, and `read` gets that buffer."""


_KINDS: dict[type, _Kind] = {
    tuple: _Kind("tuple", Encoder.items, tuple),
    dict: _Kind("dict", Encoder.entries, lambda c: dict(zip(*c))),
    OrderedDict: _Kind("ordereddict", Encoder.entries, lambda c: OrderedDict(zip(*c))),
    # By itself a Counter would add up the counts of equal keys.
    Counter: _Kind("counter", Encoder.entries, lambda c: Counter(dict(zip(*c)))),
    defaultdict: _Kind("defaultdict", Encoder.default, _default_of),
    set: _Kind("set", Encoder.members, set),
    frozenset: _Kind("frozenset", Encoder.members, frozenset),
    deque: _Kind("deque", lambda e, v, p: [e.items(list(v), p), v.maxlen], lambda c: deque(*c)),
    bytes: _Kind("bytes", lambda e, v, p: _base64(v), base64.b64decode),
    bytearray: _Kind(
        "bytearray", lambda e, v, p: _base64(v), lambda c: bytearray(base64.b64decode(c))
    ),
    complex: _Kind("complex", lambda e, v, p: [v.real, v.imag], lambda c: complex(*c)),
    Decimal: _Kind("decimal", lambda e, v, p: str(v), Decimal),
    datetime: _Kind("datetime", Encoder.clock, _clock_of(datetime)),
    date: _Kind("date", lambda e, v, p: v.isoformat(), date.fromisoformat),
    time: _Kind("time", Encoder.clock, _clock_of(time)),
    timedelta: _Kind(
        "timedelta", lambda e, v, p: [v.days, v.seconds, v.microseconds], lambda c: timedelta(*c)
    ),
    Tuple: _Kind("row", Encoder.row, lambda c: rebuilt(*c)),
    np.ndarray: _Kind(
        "ndarray",
        Encoder.ndarray,
        lambda b: np.lib.format.read_array(io.BytesIO(b), allow_pickle=False),
        buffered=True,
    ),
    pa.Table: _Kind(
        "table", lambda e, v, p: e.buffer(to_bytes(v.combine_chunks())), from_bytes, buffered=True
    ),
    pa.RecordBatch: _Kind(
        "recordbatch",
        lambda e, v, p: e.buffer(to_bytes(pa.Table.from_batches([v]))),
        lambda b: _one_batch(from_bytes(b)),
        buffered=True,
    ),
    pa.ChunkedArray: _Kind(
        "chunked",
        lambda e, v, p: e.buffer(to_bytes(pa.table({"": v}).combine_chunks())),
        lambda b: from_bytes(b).column(0),
        buffered=True,
    ),
}

_READERS = {kind.tag: kind.read for kind in _KINDS.values() if not kind.buffered}
_READERS["scalar"] = _scalar_of
_BUFFERED = {kind.tag: kind.read for kind in _KINDS.values() if kind.buffered}
_BUFFERED["array"] = lambda b: _one_array(from_bytes(b).column(0))


def _of_kind(tagged: dict[str, Any]) -> Any:
    ((tag, content),) = tagged.items()
    return _READERS[tag](content)


# By itself the decoder gives one NaN again and again, and two keys would become one.
_PLAIN = json.JSONDecoder(object_hook=_of_kind, parse_constant=float)
_json = json.JSONEncoder(separators=(",", ":")).encode


def _moment_text(value: datetime) -> str | None:
    """The text that `Encoder.clock` leads to, for UTC and for times without a zone."""
    if value.tzinfo is not None and value.tzinfo is not UTC:
        return None
    clock = value.replace(tzinfo=None, fold=0).isoformat()
    zone = "null" if value.tzinfo is None else '"UTC"'
    return f'{{"datetime":["{clock}",{zone},{value.fold}]}}'


def _simple_text(value: Any) -> str | None:
    """The text of a value that needs no walk; None for any other."""
    simple = _SIMPLE.get(type(value))
    return None if simple is None else simple(value)


_SIMPLE: dict[type, Callable[[Any], str | None]] = {
    type(None): _json,
    bool: _json,
    int: int.__repr__,
    float: lambda v: float.__repr__(v) if math.isfinite(v) else _json(v),
    str: json.encoder.encode_basestring_ascii,
    datetime: _moment_text,
}
"""Faster ways to the texts that the JSON encoder gives."""
