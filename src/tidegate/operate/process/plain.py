"""Values as JSON and back without loss, between the state of the user's own code and bytes.

JSON has no tuples, bytes, times, or keys that are not texts; these become objects with one entry,
the name of their kind, and no value of the user ever becomes an object by itself. Arrow data and
numpy arrays are kept beside the JSON, as buffers that it numbers. What is of no known kind is
refused: nothing is ever restored to something else than it was.
"""

from __future__ import annotations

import base64
import io
import json
import math
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from tidegate.batch import from_bytes, to_bytes
from tidegate.operate.process.packed import HAS_BUFFERS, pack, unpack
from tidegate.operate.process.tuple import Tuple, rebuilt

ATOMS = frozenset({type(None), bool, int, float, str})
"""What JSON has by itself."""

FIXED = ATOMS | {bytes, complex, Decimal, date, datetime, time, timedelta}
"""What cannot be changed in place."""

FACTORIES: dict[str, Callable[[], Any]] = {
    f.__name__: f for f in (bool, int, float, str, list, dict, set, tuple, deque, Counter)
}


class NotPlain(Exception):
    """A value that cannot be kept: where it is, and what is wrong with it."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(path, problem)


def encode(value: Any, root: str) -> tuple[str, list[bytes]]:
    """The JSON text of a value and the buffers beside it; equal values give equal bytes.

    `root` is what messages call the value.
    """
    encoder = Encoder()
    return encoder.text(value, root), encoder.buffers


def decode(text: str, buffers: Sequence[bytes]) -> Any:
    """The value that `encode` was given."""
    if not buffers:
        return _PLAIN.decode(text)

    def of_kind(tagged: dict[str, Any]) -> Any:
        ((kind, content),) = tagged.items()
        return _BUFFERED[kind](buffers[content]) if kind in _BUFFERED else _TAGGED[kind](content)

    return json.loads(text, object_hook=of_kind, parse_constant=float)


def pack_one(value: Any, path: str) -> bytes:
    """A value with its buffers as bytes."""
    simple = simple_text(value)
    return Encoder().packed(value, path) if simple is None else simple.encode("ascii")


def unpack_one(data: bytes) -> Any:
    """The value of `pack_one`."""
    if data.startswith(HAS_BUFFERS):
        return decode(*unpack(data))
    return _PLAIN.raw_decode(data.decode("ascii"))[0]


def unpack_each(packed: Sequence[bytes]) -> list[Any]:
    """The values of many packed ones; those without buffers cost one call together."""
    together = b",".join(packed)
    if HAS_BUFFERS in together:
        return [unpack_one(data) for data in packed]
    values: list[Any] = _PLAIN.decode(f"[{together.decode('ascii')}]")
    return values


def simple_text(value: Any) -> str | None:
    """The text of a value that needs no walk, as JSON has it; None for any other."""
    simple = _SIMPLE.get(type(value))
    return None if simple is None else simple(value)


class Until(NamedTuple):
    """A value of declared state that expires."""

    until_us: int
    value: Any


class Encoder:
    """Walks values once; remembers what can be changed, to see when it is met a second time.

    Buffers of all that `text` is given come together; `packed` gives a value by itself. Messages
    call a value by its path.
    """

    def __init__(self) -> None:
        self.buffers: list[bytes] = []
        self._met: dict[int, str] = {}
        self._kept: list[Any] = []

    def text(self, value: Any, path: str) -> str:
        """A value as JSON; NotPlain where it cannot be kept."""
        simple = simple_text(value)
        if simple is not None:
            return simple
        try:
            return _json(self._tree(value, path))
        except RecursionError:
            raise NotPlain(path, "is nested too deeply") from None

    def packed(self, value: Any, path: str) -> bytes:
        """A value with its buffers as bytes of its own."""
        simple = simple_text(value)
        if simple is not None:
            return simple.encode("ascii")
        others, self.buffers = self.buffers, []
        data = pack(self.text(value, path), self.buffers)
        self.buffers = others
        return data

    def meet(self, value: Any, path: str) -> None:
        """Refuse an object that can be changed where it is not the first time that it is met."""
        if id(value) in self._met:
            raise NotPlain(path, f"is the same object as {self._met[id(value)]}")
        self._met[id(value)] = path
        self._kept.append(value)

    def _tree(self, value: Any, path: str) -> Any:
        if type(value) in ATOMS:
            return value
        if type(value) in _CONTAINERS:
            self.meet(value, path)
        writer = _WRITERS.get(type(value))
        if writer is not None:
            return writer(self, value, path)
        if isinstance(value, pa.Array):
            return self._buffer("array", to_bytes(pa.table({"": value})))
        if isinstance(value, np.generic) and not value.dtype.hasobject:
            return {"scalar": [value.dtype.str, _base64(value.tobytes())]}
        kind = type(value)
        raise NotPlain(path, f"is of the type {kind.__module__}.{kind.__qualname__}")

    def items(self, values: Sequence[Any], path: str) -> list[Any]:
        if set(map(type, values)) <= ATOMS:
            return list(values)
        return [self._tree(v, f"{path}[{i}]") for i, v in enumerate(values)]

    def entries(self, mapping: Mapping[Any, Any], path: str) -> list[Any]:
        """Keys and values in the order of the mapping, which is part of it."""
        keys = self.items(list(mapping), f"the keys of {path}")
        if set(map(type, mapping.values())) <= ATOMS:
            return [keys, list(mapping.values())]
        return [keys, [self._tree(v, f"{path}[{k!r}]") for k, v in mapping.items()]]

    def members(self, values: Any, path: str) -> list[Any]:
        """The members of a set, in an order that does not depend on the process."""
        return sorted(self.items(list(values), path), key=json.dumps)

    def default(self, mapping: defaultdict[Any, Any], path: str) -> Any:
        factory = mapping.default_factory
        name = None if factory is None else getattr(factory, "__name__", "")
        if name is not None and FACTORIES.get(name) is not factory:
            raise NotPlain(path, "is a defaultdict of a function, which cannot be kept")
        return {"defaultdict": [name, *self.entries(mapping, path)]}

    def tuple_of_stream(self, value: Tuple, path: str) -> Any:
        names, ts_us, values = value.parts()
        met, self._met = self._met, {}
        content = [names, ts_us, self.items(values, path)]
        self._met = met
        return {"row": content}

    def moment(self, value: datetime, path: str) -> Any:
        zone = self._zone(value.tzinfo, path)
        return {"datetime": [value.replace(tzinfo=None, fold=0).isoformat(), zone, value.fold]}

    def time(self, value: time, path: str) -> Any:
        zone = self._zone(value.tzinfo, path)
        return {"time": [value.replace(tzinfo=None, fold=0).isoformat(), zone, value.fold]}

    def duration(self, value: timedelta, path: str) -> Any:
        return {"timedelta": [value.days, value.seconds, value.microseconds]}

    def array(self, value: Any, path: str) -> Any:
        if value.dtype.hasobject:
            raise NotPlain(path, "is a numpy array of objects")
        owner = value
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        if value.flags.writeable:
            self.meet(owner, path)
        file = io.BytesIO()
        np.lib.format.write_array(file, value, allow_pickle=False)
        return self._buffer("ndarray", file.getvalue())

    def table(self, value: Any, path: str) -> Any:
        return self._buffer("table", to_bytes(value.combine_chunks()))

    def record_batch(self, value: Any, path: str) -> Any:
        return self._buffer("recordbatch", to_bytes(pa.Table.from_batches([value])))

    def chunked(self, value: Any, path: str) -> Any:
        return self._buffer("chunked", to_bytes(pa.table({"": value}).combine_chunks()))

    def _zone(self, zone: tzinfo | None, path: str) -> Any:
        if zone is None or zone is UTC:
            return None if zone is None else "UTC"
        if type(zone) is ZoneInfo and zone.key:
            return ["zone", zone.key]
        if type(zone) is timezone:
            offset, name = zone.utcoffset(None), zone.tzname(None)
            if timezone(offset).tzname(None) == name:
                return ["offset", offset.days, offset.seconds, offset.microseconds]
        raise NotPlain(path, f"has the time zone {zone!r}, which cannot be kept")

    def _buffer(self, kind: str, data: bytes) -> Any:
        self.buffers.append(data)
        return {kind: len(self.buffers) - 1}


_CONTAINERS = frozenset(
    {list, dict, set, bytearray, deque, defaultdict, Counter, OrderedDict}
)  # what can be changed in place; arrays of numpy are seen to by themselves

_Writer = Callable[[Encoder, Any, str], Any]
_WRITERS: dict[type, _Writer] = {
    list: lambda e, v, p: e.items(v, p),
    tuple: lambda e, v, p: {"tuple": e.items(v, p)},
    dict: lambda e, v, p: {"dict": e.entries(v, p)},
    OrderedDict: lambda e, v, p: {"ordereddict": e.entries(v, p)},
    Counter: lambda e, v, p: {"counter": e.entries(v, p)},
    defaultdict: Encoder.default,
    set: lambda e, v, p: {"set": e.members(v, p)},
    frozenset: lambda e, v, p: {"frozenset": e.members(v, p)},
    deque: lambda e, v, p: {"deque": [e.items(list(v), p), v.maxlen]},
    bytes: lambda e, v, p: {"bytes": _base64(v)},
    bytearray: lambda e, v, p: {"bytearray": _base64(v)},
    complex: lambda e, v, p: {"complex": [v.real, v.imag]},
    Decimal: lambda e, v, p: {"decimal": str(v)},
    datetime: Encoder.moment,
    date: lambda e, v, p: {"date": v.isoformat()},
    time: Encoder.time,
    timedelta: Encoder.duration,
    Tuple: Encoder.tuple_of_stream,
    Until: lambda e, v, p: {"until": [v.until_us, e.items([v.value], p)[0]]},
    np.ndarray: Encoder.array,
    pa.Table: Encoder.table,
    pa.RecordBatch: Encoder.record_batch,
    pa.ChunkedArray: Encoder.chunked,
}


def _base64(data: bytes | bytearray) -> str:
    return base64.b64encode(data).decode("ascii")


def _zone_of(content: Any) -> tzinfo | None:
    if content is None or content == "UTC":
        return None if content is None else UTC
    if content[0] == "zone":
        return ZoneInfo(content[1])
    return timezone(timedelta(*content[1:]))


def _default_of(content: Any) -> defaultdict[Any, Any]:
    name, keys, values = content
    return defaultdict(None if name is None else FACTORIES[name], zip(keys, values))


def _counter_of(content: Any) -> Counter[Any]:
    counts: Counter[Any] = Counter()
    for key, count in zip(*content):
        counts[key] = count
    return counts


def _moment_of(content: Any) -> datetime:
    text, zone, fold = content
    return datetime.fromisoformat(text).replace(tzinfo=_zone_of(zone), fold=fold)


def _time_of(content: Any) -> time:
    text, zone, fold = content
    return time.fromisoformat(text).replace(tzinfo=_zone_of(zone), fold=fold)


def _scalar_of(content: Any) -> Any:
    return np.frombuffer(base64.b64decode(content[1]), np.dtype(content[0]), 1)[0]


_TAGGED: dict[str, Callable[[Any], Any]] = {
    "tuple": tuple,
    "dict": lambda c: dict(zip(*c)),
    "ordereddict": lambda c: OrderedDict(zip(*c)),
    "counter": _counter_of,
    "defaultdict": _default_of,
    "set": set,
    "frozenset": frozenset,
    "deque": lambda c: deque(c[0], c[1]),
    "bytes": base64.b64decode,
    "bytearray": lambda c: bytearray(base64.b64decode(c)),
    "complex": lambda c: complex(*c),
    "decimal": Decimal,
    "datetime": _moment_of,
    "date": date.fromisoformat,
    "time": _time_of,
    "timedelta": lambda c: timedelta(*c),
    "row": lambda c: rebuilt(*c),
    "until": lambda c: Until(*c),
    "scalar": _scalar_of,
}

_BUFFERED: dict[str, Callable[[bytes], Any]] = {
    "ndarray": lambda b: np.lib.format.read_array(io.BytesIO(b), allow_pickle=False),
    "table": from_bytes,
    "recordbatch": lambda b: _one_batch(from_bytes(b)),
    "array": lambda b: _one_array(from_bytes(b).column(0)),
    "chunked": lambda b: from_bytes(b).column(0),
}


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _of_kind(tagged: dict[str, Any]) -> Any:
    ((kind, content),) = tagged.items()
    return _TAGGED[kind](content)


# By itself the decoder gives one NaN again and again, and two keys would become one.
_PLAIN = json.JSONDecoder(object_hook=_of_kind, parse_constant=float)
_json = json.JSONEncoder(separators=(",", ":")).encode


def _moment_text(value: datetime) -> str | None:
    """As `Encoder.moment` has it, of the times that tuples have."""
    if value.tzinfo is not None and value.tzinfo is not UTC:
        return None
    clock = value.replace(tzinfo=None, fold=0).isoformat()
    zone = "null" if value.tzinfo is None else '"UTC"'
    return f'{{"datetime":["{clock}",{zone},{value.fold}]}}'


_SIMPLE: dict[type, Callable[[Any], str | None]] = {
    type(None): _json,
    bool: _json,
    int: int.__repr__,
    float: lambda v: float.__repr__(v) if math.isfinite(v) else _json(v),
    str: json.encoder.encode_basestring_ascii,
    datetime: _moment_text,
}
"""How to do without the cost of a JSON encoder."""
