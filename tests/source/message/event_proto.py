"""Descriptors of messages, made without a compiler."""

from __future__ import annotations

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

SINGLE, MANY = Field.LABEL_OPTIONAL, Field.LABEL_REPEATED


def add(message: descriptor_pb2.DescriptorProto, name: str, type_: int, **more: object) -> Field:
    """A field with the next number."""
    label = more.pop("label", SINGLE)
    return message.field.add(
        name=name, number=len(message.field) + 1, type=type_, label=label, **more
    )


def event_file() -> descriptor_pb2.FileDescriptorProto:
    """
    syntax = "proto3"; package shop; import "google/protobuf/timestamp.proto";
    message Outer { message Inner { int32 z = 1; } Inner inner = 1; }
    message Event { int64 id = 1; google.protobuf.Timestamp ts = 2; optional double price = 3;
      repeated string tags = 4; map<string, int32> counts = 5; enum Kind { A = 0; B = 1; }
      Kind kind = 6; oneof what { string name = 7; bytes blob = 8; } }
    """
    file = descriptor_pb2.FileDescriptorProto(name="ev.proto", package="shop", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    outer = file.message_type.add(name="Outer")
    add(outer.nested_type.add(name="Inner"), "z", Field.TYPE_INT32)
    add(outer, "inner", Field.TYPE_MESSAGE, type_name=".shop.Outer.Inner")
    event = file.message_type.add(name="Event")
    add(event, "id", Field.TYPE_INT64)
    add(event, "ts", Field.TYPE_MESSAGE, type_name=".google.protobuf.Timestamp")
    add(event, "price", Field.TYPE_DOUBLE, oneof_index=1, proto3_optional=True)
    add(event, "tags", Field.TYPE_STRING, label=MANY)
    entry = event.nested_type.add(name="CountsEntry")
    entry.options.map_entry = True
    add(entry, "key", Field.TYPE_STRING)
    add(entry, "value", Field.TYPE_INT32)
    add(event, "counts", Field.TYPE_MESSAGE, label=MANY, type_name=".shop.Event.CountsEntry")
    kind = event.enum_type.add(name="Kind")
    kind.value.add(name="A", number=0)
    kind.value.add(name="B", number=1)
    add(event, "kind", Field.TYPE_ENUM, type_name=".shop.Event.Kind")
    add(event, "name", Field.TYPE_STRING, oneof_index=0)
    add(event, "blob", Field.TYPE_BYTES, oneof_index=0)
    event.oneof_decl.add(name="what")
    event.oneof_decl.add(name="_price")
    return file
