"""Avro values beside fastavro: any schema, any value, poison among them, and older writers."""

from __future__ import annotations

import io
import json
import pickle
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import fastavro
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.source.message.check import layout, read
from tidegate.errors import GateError, OptionError, SourceError
from tidegate.source.message.avro.column import columns_of, misfit
from tidegate.source.message.avro.format import AvroValues
from tidegate.source.message.avro.program import program_of, run
from tidegate.source.message.avro.schema import AvroSchemaError, parse_avro

LONGS = st.integers(-(2**63), 2**63 - 1)
INTS = st.integers(-(2**31), 2**31 - 1)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=5)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIMES = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))


class Kind(NamedTuple):
    """A type, the name of its branch in unions, and pairs of what is written and what is read."""

    schema: Any
    name: str
    pairs: st.SearchStrategy[tuple[Any, Any]]


def same(schema: Any, name: str, values: st.SearchStrategy[Any]) -> Kind:
    return Kind(schema, name, values.map(lambda v: (v, v)))


def logical(kind: str, name: str, pairs: st.SearchStrategy[tuple[Any, Any]], **more: Any) -> Kind:
    return Kind({"type": kind, "logicalType": name, **more}, kind, pairs)


def decimals(digits: int, scale: int) -> st.SearchStrategy[tuple[Any, Any]]:
    whole = st.integers(-(10**digits) + 1, 10**digits - 1)
    return whole.map(lambda n: (d := Decimal(f"{n}E-{scale}"), d))


def rounded(value: datetime) -> datetime:
    return value.replace(microsecond=value.microsecond // 1000 * 1000)


PLAIN = [
    same("boolean", "boolean", st.booleans()),
    same("int", "int", INTS),
    same("long", "long", LONGS),
    same("float", "float", st.floats(width=32, allow_nan=False)),
    same("double", "double", st.floats(allow_nan=False)),
    same("string", "string", TEXTS),
    same("bytes", "bytes", st.binary(max_size=5)),
    logical("int", "date", st.dates().map(lambda v: (v, v))),
    logical("long", "timestamp-micros", TIMES.map(lambda v: (v, v))),
    logical("long", "timestamp-millis", TIMES.map(lambda v: (rounded(v), rounded(v)))),
    logical("long", "time-micros", st.times().map(lambda v: (v, v))),
    logical("bytes", "decimal", decimals(12, 3), precision=12, scale=3),
    logical("bytes", "decimal", decimals(38, 0), precision=38),
    logical("string", "uuid", st.uuids().map(lambda v: (str(v), str(v)))),
    logical("bytes", "nobody-knows", st.binary(max_size=3).map(lambda v: (v, v))),
]


def named(draw: st.DrawFn, counter: list[int]) -> Kind:
    """A type with a name of its own."""
    counter[0] += 1
    name = f"N{counter[0]}"
    which = draw(st.sampled_from(["enum", "fixed", "uuid", "decimal"]))
    if which == "enum":
        schema = {"type": "enum", "name": name, "symbols": ["A", "B", "C"]}
        return same(schema, name, st.sampled_from("ABC"))
    if which == "fixed":
        return same(
            {"type": "fixed", "name": name, "size": 3}, name, st.binary(min_size=3, max_size=3)
        )
    if which == "uuid":
        pairs = st.uuids().map(lambda v: (v.bytes, str(v)))
        return Kind({"type": "fixed", "name": name, "size": 16, "logicalType": "uuid"}, name, pairs)
    own = {"type": "fixed", "logicalType": "decimal", "precision": 12, "scale": 3}
    return Kind(own | {"name": name, "size": 6}, name, decimals(12, 3))


@st.composite
def kinds(draw: st.DrawFn, counter: list[int], depth: int = 2) -> Kind:
    which = draw(st.integers(0, 9 if depth else 5))
    if which < 5:
        return draw(st.sampled_from(PLAIN))
    if which == 5:
        return named(draw, counter)
    if which == 6:
        items = draw(kinds(counter, depth - 1))
        pairs = st.lists(items.pairs, max_size=3).map(
            lambda found: ([w for w, _ in found], [r for _, r in found])
        )
        return Kind({"type": "array", "items": items.schema}, "array", pairs)
    if which == 7:
        values = draw(kinds(counter, depth - 1))
        pairs = st.dictionaries(TEXTS, values.pairs, max_size=3).map(
            lambda m: ({k: w for k, (w, _) in m.items()}, [(k, r) for k, (_, r) in m.items()])
        )
        return Kind({"type": "map", "values": values.schema}, "map", pairs)
    if which == 8:
        return draw(records(counter, depth - 1))
    return draw(unions(counter, depth - 1))


@st.composite
def unions(draw: st.DrawFn, counter: list[int], depth: int) -> Kind:
    members: list[Kind] = []
    for kind in draw(st.lists(kinds(counter, depth), min_size=1, max_size=3)):
        if kind.name != "union" and kind.name not in [m.name for m in members]:
            members.append(kind)
    assume(members)
    wide = {m.name for m in members} in ({"int", "long"}, {"float", "double"})
    assume(not wide or all(isinstance(m.schema, str) for m in members))
    single = len(members) == 1 or wide
    every = [f"member{i}" for i in range(len(members))]
    branches = []
    for i, member in enumerate(members):
        branches.append(
            member.pairs.map(
                lambda pair, i=i, m=member: (
                    (m.name, pair[0]),
                    pair[1] if single else dict.fromkeys(every) | {every[i]: pair[1]},
                )
            )
        )
    null = draw(st.integers(0, len(members)))
    schema: list[Any] = [m.schema for m in members]
    schema.insert(null, "null")
    return Kind(schema, "union", st.one_of(st.just((None, None)), *branches))


@st.composite
def records(draw: st.DrawFn, counter: list[int], depth: int) -> Kind:
    counter[0] += 1
    name = f"R{counter[0]}"
    fields = draw(st.lists(kinds(counter, depth), min_size=1, max_size=4))
    schema = {
        "type": "record",
        "name": name,
        "fields": [{"name": f"f{i}", "type": f.schema} for i, f in enumerate(fields)],
    }
    pairs = st.tuples(*(f.pairs for f in fields)).map(
        lambda row: (
            {f"f{i}": w for i, (w, _) in enumerate(row)},
            {f"f{i}": r for i, (_, r) in enumerate(row)},
        )
    )
    return Kind(schema, name, pairs)


def encoded(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema, _force=True), value)
    return out.getvalue()


def by_schema(schema: Any) -> AvroValues:
    """A layout as the format makes one of a file."""
    from tidegate.source.message.avro.arrow import arrow_schema

    record = parse_avro(json.dumps(schema))
    return AvroValues("test", arrow_schema(record), "as in test", 0, "", None, record)


@given(st.data())
def test_any_value_of_any_schema_is_read_as_it_was_written(data: st.DataObject) -> None:
    schema, _, pairs = data.draw(records([0], 2))
    rows = data.draw(st.lists(pairs, min_size=1, max_size=4))
    values = [encoded(schema, written) for written, _ in rows]
    found, reasons = read(by_schema(schema), values)
    assert not reasons
    assert list(found.values()) == [wanted for _, wanted in rows]


@given(st.data())
def test_poison_disturbs_no_neighbour_and_is_what_fastavro_takes_it_for(
    data: st.DataObject,
) -> None:
    schema, _, pairs = data.draw(records([0], 2))
    rows = data.draw(st.lists(pairs, min_size=2, max_size=4))
    values = [encoded(schema, written) for written, _ in rows]
    whole = data.draw(st.sampled_from(values))
    cut = data.draw(st.integers(0, len(whole)))
    bad = whole[:cut] + data.draw(st.binary(max_size=4)) + whole[cut + 1 :]
    place = data.draw(st.integers(0, len(values)))
    simple = json.loads(_unlogical(schema))  # any number is a value, also beyond times of Python
    alone, _ = read(by_schema(simple), values)
    found, reasons = read(by_schema(simple), [*values[:place], bad, *values[place:]])
    own, _ = found.pop(place, None), reasons.pop(place, None)
    assert list(found.values()) == list(alone.values())
    assert not reasons
    if own is not None:  # then it is a value, and nothing is left of it
        stream = io.BytesIO(bad)
        parsed = fastavro.parse_schema(simple, _force=True)
        fastavro.schemaless_reader(stream, parsed, None)
        assert stream.read() == b""


def _unlogical(schema: Any) -> str:
    """Without logical types, whose values fastavro makes objects of that hold less."""
    return json.dumps(schema).replace("logicalType", "formerly")


WRITERS = {
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": LONGS,
    "float": st.floats(width=32, allow_nan=False),
    "string": TEXTS,
    "bytes": st.binary(max_size=4).filter(lambda b: b.isascii()),
}
READERS = {
    "int": ["int", "long", "float", "double", ["null", "int"], ["string", "double", "null"]],
    "long": ["long", "float", "double", ["null", "long"], ["null", "float"]],
    "float": ["float", "double", ["double", "null"]],
    "string": ["string", "bytes", ["null", "string"], ["null", "bytes"]],
    "bytes": ["bytes", "string", ["null", "bytes"]],
}
DEFAULTS = [
    ("int", 7, 7),
    (["null", "string"], None, None),
    ("string", "é", "é"),
    ("bytes", "\u00ff", b"\xff"),
    ({"type": "array", "items": "int"}, [1, 2], [1, 2]),
    ({"type": "map", "values": "double"}, {"k": 1}, [("k", 1.0)]),
    ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", "B"),
    ({"type": "long", "logicalType": "timestamp-millis"}, 1000, EPOCH + timedelta(seconds=1)),
    (
        {"type": "record", "name": "D", "fields": [{"name": "x", "type": "int", "default": 3}]},
        {},
        {"x": 3},
    ),
]


@given(st.data())
def test_values_of_older_and_newer_writers_are_read_by_the_rules_of_avro(
    data: st.DataObject,
) -> None:
    names = data.draw(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4, unique=True))
    kinds = [data.draw(st.sampled_from(sorted(WRITERS))) for _ in names]
    writer = {"type": "record", "name": "R"} | {
        "fields": [{"name": n, "type": k} for n, k in zip(names, kinds)]
    }
    fields: list[dict[str, Any]] = []
    for name, kind in zip(names, kinds):
        how = data.draw(st.sampled_from(["drop", "alias", "keep"]))
        if how != "drop":
            own = {"name": name} if how == "keep" else {"name": f"new_{name}", "aliases": [name]}
            fields.append(own | {"type": data.draw(st.sampled_from(READERS[kind]))})
    added = data.draw(st.lists(st.sampled_from(DEFAULTS), min_size=1, max_size=3))
    wanted = {}
    for i, (type_, default, value) in enumerate(added):
        if not any(f["type"] == type_ for f in fields):  # a name is defined once
            fields.append({"name": f"added{i}", "type": type_, "default": default})
            wanted[f"added{i}"] = value
    reader = {"type": "record", "name": "R", "fields": data.draw(st.permutations(fields))}
    rows = data.draw(
        st.lists(st.fixed_dictionaries({n: WRITERS[k] for n, k in zip(names, kinds)}), min_size=1)
    )
    made = {k: parse_avro(json.dumps(s)) for k, s in (("writer", writer), ("reader", reader))}
    assert misfit(made["writer"], made["reader"]) is None
    program = program_of(made["writer"])
    streams = run(program, [encoded(writer, row) for row in rows], 0)
    columns = columns_of(program, streams, made["reader"], [f["name"] for f in fields])
    found = pa.table(columns).to_pylist()
    of_fastavro = [f for f in fields if f["name"] not in wanted]
    for row, got in zip(rows, found, strict=True):
        assert {n: got[n] for n in wanted} == wanted
        for field in of_fastavro:
            name = field.get("aliases", [field["name"]])[0]
            assert _member(got[field["name"]]) == _resolved(row[name], field["type"])


def _member(value: Any) -> Any:
    return next(v for v in value.values() if v is not None) if isinstance(value, dict) else value


def _resolved(value: Any, reader: Any) -> Any:
    """What fastavro makes of one value by a reader's type."""
    kind = {int: "long", float: "double", str: "string", bytes: "bytes"}[type(value)]
    one = {"type": "record", "name": "O", "fields": [{"name": "v", "type": kind}]}
    two = {"type": "record", "name": "O", "fields": [{"name": "v", "type": reader}]}
    if kind == "long" and "int" in str(reader):
        return value
    if kind == "double" and "double" not in str(reader):
        return value
    data = io.BytesIO(encoded(one, {"v": value}))
    found = fastavro.schemaless_reader(data, one, two)["v"]
    narrow = "float" in str(reader) and isinstance(found, (int, float))
    return pa.array([float(found)], pa.float32())[0].as_py() if narrow else found


FIELDS = [
    {"name": "id", "type": "long"},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "kind", "type": {"type": "enum", "name": "K", "symbols": ["A", "B"]}},
]
EVENT = {"type": "record", "name": "Event", "namespace": "shop", "fields": FIELDS}


@pytest.fixture
def path(tmp_path: Path) -> str:
    place = tmp_path / "event.avsc"
    place.write_text(json.dumps(EVENT))
    return str(place)


def test_a_file_has_the_schema(path: str) -> None:
    found = layout(format="avro", schema=path)
    assert found.types_from == f"as in {path}"
    assert pickle.loads(pickle.dumps(found)) == found
    value = encoded(EVENT, {"id": 1, "at": EPOCH, "kind": "B"})
    rows, reasons = read(found, [value, None, b"", value + b"!", value[:-1] + b"\x08"])
    assert rows == {
        0: {"id": 1, "at": EPOCH, "kind": "B"},
        1: {"id": None, "at": None, "kind": None},
    }
    assert reasons == {
        2: "the value ends within a field, at byte 0",
        3: "bytes are left behind the record, at byte 3",
        4: "an enum has no such symbol, at byte 2",
    }
    assert found.parse([b"\xfe\xff"]).faults[0].raw == "feff"


def test_some_columns_are_read_and_a_time_beyond_the_range_is_rejected(path: str) -> None:
    found = layout(format="avro", schema=path, columns=pa.schema([("AT", found_time())]))
    good = encoded(EVENT, {"id": 1, "at": EPOCH, "kind": "B"})
    beyond = encoded(json.loads(_unlogical(EVENT)), {"id": 1, "at": 2**62, "kind": "A"})
    rows, reasons = read(found, [good, beyond, good])
    assert rows == {0: {"AT": EPOCH}, 2: {"AT": EPOCH}}
    assert reasons == {1: "a timestamp-millis does not fit into 64 bits of microseconds"}
    only_id = layout(format="avro", schema=path).parse(
        [good, beyond], pa.schema([("id", pa.int64())])
    )
    assert only_id.table.column("id").to_pylist() == [1, 1]


def test_a_time_of_day_is_within_a_day() -> None:
    fields = [{"name": "t", "type": {"type": "long", "logicalType": "time-micros"}}]
    schema = {"type": "record", "name": "R", "fields": fields}
    plain = json.loads(_unlogical(schema))
    values = [encoded(plain, {"t": t}) for t in (0, -1, 86_400_000_000, 1_000_000)]
    rows, reasons = read(by_schema(schema), values)
    assert rows == {0: {"t": time(0)}, 3: {"t": time(0, 0, 1)}}
    assert reasons == dict.fromkeys((1, 2), "a time-micros is not within a day")


def found_time() -> pa.DataType:
    return pa.timestamp("us", "UTC")


def test_a_restart_needs_the_same_file(path: str) -> None:
    before = layout(format="avro", schema=path)
    saved = json.loads(json.dumps(before.saved()))
    assert before.restored(saved) == before
    Path(path).write_text(json.dumps(EVENT | {"name": "Other"}))
    with pytest.raises(GateError, match="must be the one that the run began with"):
        layout(format="avro", schema=path).restored(saved)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "not JSON: "),
        ('"string"', "string at the top, where a record must be"),
        ('{"type": "record", "name": "R", "fields": []}', "record R without fields"),
        ('{"type": "record", "name": "R"}', "KeyError 'fields' where a type should be"),
        (
            '{"type":"record","name":"R","fields":[{"name":"r","type":["null","R"]}]}',
            "type R inside itself, which no column can hold",
        ),
        (
            '{"type":"record","name":"R","fields":[{"name":"r","type":"S"}]}',
            "type S, which is not defined",
        ),
    ],
)
def test_schemas_that_no_table_can_hold_are_refused(path: str, text: str, why: str) -> None:
    Path(path).write_text(text)
    with pytest.raises(SourceError) as raised:
        layout(format="avro", schema=path)
    assert str(raised.value.got).startswith(why)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "values in Avro need their schema; got neither a file nor a registry."),
        ({"schema": "absent.avsc"}, "the file of the option schema must be readable"),
        ({"subject": "s"}, "option subject names a schema of a registry; got no registry."),
        ({"version": 0}, "must be latest or a whole number from 1 on; got 0."),
        ({"message": "M"}, "option message is not for Avro values"),
        ({"registry": "localhost"}, "must be the address of a schema registry"),
        (
            {"registry": "http://h", "subject": "s", "schema": "f"},
            "the schema to read with must be one; got option schema and option subject.",
        ),
    ],
)
def test_what_options_say_wrong_is_refused(options: dict[str, object], says: str) -> None:
    with pytest.raises((OptionError, SourceError)) as raised:
        layout(format="avro", **options)
    assert says in str(raised.value)


def test_declared_columns_must_be_held_without_loss(path: str) -> None:
    with pytest.raises(SourceError, match="column id was declared INT"):
        layout(format="avro", schema=path, columns=pa.schema([("id", pa.int32())]))
    with pytest.raises(SourceError, match="no column ix"):
        layout(format="avro", schema=path, columns=pa.schema([("ix", pa.int32())]))


def test_lengths_and_counts_that_lie_cost_nothing() -> None:
    """A value that says it has a thousand million items is rejected before any is made."""
    schema = {"type": "record", "name": "R"} | {
        "fields": [{"name": "n", "type": {"type": "array", "items": "null"}}]
    }
    values = [b"\xfe\xff\xff\xff\x0f\x00", b"\x06\x00", b"\x01\x02\x00", b"\xff" * 12]
    rows, reasons = read(by_schema(schema), values)
    assert rows == {1: {"n": [None, None, None]}, 2: {"n": [None]}}
    assert reasons[0].startswith("an array or a map has more items than the value has bytes")
    assert reasons[3].startswith("a whole number has more than 64 bits")


def test_names_are_looked_up_in_their_namespace() -> None:
    fixed = {"type": "fixed", "name": "F", "size": 1}
    inner = {"type": "record", "name": "b.I", "fields": [{"name": "f", "type": fixed}]}
    fields = [{"name": "i", "type": inner}, {"name": "f", "type": "b.F"}]
    found = parse_avro(json.dumps({"type": "record", "name": "a.R", "fields": fields}))
    assert found.fields[1].type.name == "b.F"
    with pytest.raises(AvroSchemaError):
        parse_avro(json.dumps({"type": "record", "name": "a.R", "fields": [fields[1]]}))
