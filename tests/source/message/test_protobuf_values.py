"""Protobuf values beside what Protobuf's own library reads: fields, poison, other versions."""

from __future__ import annotations

import pickle
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

from tests.source.message.check import layout, read
from tests.source.message.event_proto import MANY, add, event_file
from tidegate.errors import GateError, OptionError, SourceError, UnavailableError
from tidegate.source.message.protobuf.descriptor import message_class, registered_files
from tidegate.source.message.value import ValueLayout

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def of_time() -> descriptor_pb2.FileDescriptorProto:
    proto = descriptor_pb2.FileDescriptorProto()
    Timestamp.DESCRIPTOR.file.CopyToProto(proto)
    return proto


def classes(*files: descriptor_pb2.FileDescriptorProto) -> Any:
    """The messages of files by their names, as another program has them."""
    pool = descriptor_pool.DescriptorPool()
    for file in files:
        pool.AddSerializedFile(file.SerializeToString())
    return lambda name: message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


Event = classes(of_time(), event_file())("shop.Event")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return described(tmp_path_factory.mktemp("proto"), of_time(), event_file())


def described(folder: Path, *files: descriptor_pb2.FileDescriptorProto) -> str:
    place = folder / "event.desc"
    place.write_bytes(descriptor_pb2.FileDescriptorSet(file=files).SerializeToString())
    return str(place)


def of(path: str, **options: Any) -> ValueLayout:
    return layout(format="protobuf", schema=path, **{"message": "shop.Event"} | options)


words = st.text(st.characters(codec="utf-8"), max_size=4)
events = st.builds(
    Event,
    id=st.integers(-(2**63), 2**63 - 1),
    ts=st.none()
    | st.fixed_dictionaries({"seconds": st.integers(0, 2**33), "nanos": st.just(1999)}),
    price=st.none() | st.floats(allow_nan=False),
    tags=st.lists(words, max_size=3),
    counts=st.dictionaries(words, st.integers(-(2**31), 2**31 - 1), max_size=3),
    kind=st.integers(0, 2),
    name=st.none() | words,
)


def plain(event: Any) -> dict[str, Any]:
    """A message read field by field."""
    ts = EPOCH + timedelta(seconds=event.ts.seconds, microseconds=event.ts.nanos // 1000)
    return {
        "id": event.id,
        "ts": ts if event.HasField("ts") else None,
        "price": event.price if event.HasField("price") else None,
        "tags": list(event.tags),
        "counts": sorted(event.counts.items()),
        "kind": ["A", "B", "2"][event.kind],
        "name": event.name if event.HasField("name") else None,
        "blob": event.blob if event.HasField("blob") else None,
    }


@given(st.lists(events | st.none() | st.binary(max_size=5), max_size=6))
def test_messages_are_what_the_library_reads_and_poison_disturbs_no_neighbour(
    path: str, drawn: list[Any]
) -> None:
    values = [v.SerializeToString() if isinstance(v, Event) else v for v in drawn]
    rows, reasons = read(of(path), values)
    for place, value in enumerate(values):
        if value is None:
            assert rows[place] == dict.fromkeys(of(path).schema.names)
            continue
        try:
            wanted = Event.FromString(value)
        except DecodeError:
            assert reasons[place].startswith("not a message shop.Event")
            continue
        assert rows[place] == plain(wanted)


def test_all_kinds_of_fields_have_their_columns(tmp_path: Path) -> None:
    file = descriptor_pb2.FileDescriptorProto(name="all.proto", syntax="proto3")
    message = file.message_type.add(name="All")
    kinds = "DOUBLE FLOAT INT64 UINT64 INT32 FIXED64 FIXED32 BOOL STRING BYTES UINT32 SFIXED32 "
    for kind in (kinds + "SFIXED64 SINT32 SINT64").split():
        add(message, kind.lower(), getattr(Field, f"TYPE_{kind}"))
    for wrapped in "Duration DoubleValue StringValue".split():
        add(message, wrapped, Field.TYPE_MESSAGE, type_name=f".google.protobuf.{wrapped}")
    add(message.nested_type.add(name="Part"), "x", Field.TYPE_INT32, label=MANY)
    add(message, "parts", Field.TYPE_MESSAGE, type_name=".All.Part", label=MANY)
    file.dependency[:] = ["google/protobuf/duration.proto", "google/protobuf/wrappers.proto"]
    found = of(described(tmp_path, file), message="All")  # well-known imports may be left out
    types = {f.name: str(f.type) for f in found.schema}
    assert types["uint32"] == types["fixed32"] == "int64"
    assert types["uint64"] == types["fixed64"] == "decimal128(20, 0)"
    assert types["parts"] == "list<item: struct<x: list<item: int32>>>"
    assert types["Duration"] == "duration[us]"
    made = message_class(found.files, "All")()  # type: ignore[attr-defined]
    made.uint64, made.int32, made.bytes = 2**64 - 1, -5, b"\xff"
    made.Duration.FromTimedelta(timedelta(days=-1, microseconds=3))
    made.StringValue.value = ""
    made.parts.add(x=[1, 2])
    made.parts.add()
    rows, _ = read(found, [made.SerializeToString(), b""])
    assert (int(rows[0]["uint64"]), rows[0]["int32"], rows[0]["bytes"]) == (2**64 - 1, -5, b"\xff")
    assert rows[0]["Duration"] == timedelta(days=-1, microseconds=3)
    assert (rows[0]["StringValue"], rows[1]["StringValue"]) == ("", None)
    assert rows[0]["parts"] == [{"x": [1, 2]}, {"x": []}]
    assert MessageToDict(made)["uint64"] == str(rows[0]["uint64"])


def test_older_and_newer_messages_are_read_by_the_numbers_of_fields(path: str) -> None:
    newer = event_file()
    add(newer.message_type[1], "more", Field.TYPE_STRING)
    made = classes(of_time(), newer)("shop.Event")(id=3, more="new")
    older = event_file()
    del older.message_type[1].field[3:5]  # tags and counts
    small = classes(of_time(), older)("shop.Event")(id=4)
    rows, reasons = read(of(path), [made.SerializeToString(), small.SerializeToString()])
    assert [row["id"] for row in rows.values()] == [3, 4]
    assert not reasons


def test_a_timestamp_beyond_the_range_is_rejected_alone(path: str) -> None:
    far = Event(id=1, ts={"seconds": 2**62})
    values = [Event(id=n).SerializeToString() for n in range(3)] + [far.SerializeToString()]
    rows, reasons = read(of(path), [*values, values[0]])
    assert [row["id"] for row in rows.values()] == [0, 1, 2, 0]
    assert list(reasons) == [3]


def test_what_options_say_wrong_is_refused(path: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="need their descriptor; got neither a file nor"):
        layout(format="protobuf", message="shop.Event")
    with pytest.raises(SourceError, match=r"got the messages shop\.Outer, shop\.Event"):
        layout(format="protobuf", schema=path)
    with pytest.raises(SourceError, match=r"no message Event\. Did you mean shop\.Event"):
        of(path, message="Event")
    lone = event_file()
    lone.dependency[:] = ["other.proto"]
    with pytest.raises(SourceError, match=r"no other\.proto, which is imported\. Compile it with"):
        of(described(tmp_path, lone))
    (tmp_path / "event.desc").write_bytes(b"\xff\xff")
    with pytest.raises(SourceError, match="must be a set of descriptors"):
        of(str(tmp_path / "event.desc"))


def test_without_the_library_one_sentence_says_what_to_install(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "google.protobuf.descriptor_pool", None)
    with pytest.raises(UnavailableError, match=r"test: needs protobuf; got none\. Run pip install"):
        of(path)


def test_a_message_inside_itself_is_no_column(tmp_path: Path) -> None:
    file = descriptor_pb2.FileDescriptorProto(name="tree.proto", syntax="proto3")
    tree = file.message_type.add(name="Tree")
    add(tree, "id", Field.TYPE_INT64)
    add(tree, "below", Field.TYPE_MESSAGE, type_name=".Tree", label=MANY)
    path = described(tmp_path, file)
    with pytest.raises(SourceError, match="field below of message Tree, which is inside itself"):
        layout(format="protobuf", schema=path)
    found = layout(format="protobuf", schema=path, columns=pa.schema([("id", pa.int64())]))
    made = message_class(found.files, "Tree")(id=7)  # type: ignore[attr-defined]
    assert read(found, [made.SerializeToString()])[0] == {0: {"id": 7}}


def test_a_restart_needs_the_same_descriptor(path: str, tmp_path: Path) -> None:
    before = of(path)
    assert pickle.loads(pickle.dumps(before)) == before
    assert before.restored(before.saved()) == before
    other = event_file()
    add(other.message_type[1], "more", Field.TYPE_STRING)
    with pytest.raises(GateError, match="must be the one that the run began with"):
        of(described(tmp_path, of_time(), other)).restored(before.saved())
    with pytest.raises(ValueError, match=r"the source text of a \.proto file"):
        registered_files(['syntax = "proto3";'])
